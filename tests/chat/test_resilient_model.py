"""A chat model that is asked again after a passing fault, within its time."""

import asyncio

import pytest

from tests.chat.scripted import Turn, WatchedModel, says, turn_of, unfinished
from toolchat.errors import ProviderRateLimited, UpstreamInvalid, UpstreamTimeout, UpstreamUnavailable
from toolchat.messages import AssistantMessage, Usage, UserMessage
from toolchat.models.base import ChatModel, ChatResponse, EmitModelEvent, ModelEvent, Prompt, TextDelta
from toolchat.models.resilience import ResilientChatModel, RetryPolicy


def resilient(*turns: Turn, total: float = 60, idle: float = 60) -> tuple[ChatModel, WatchedModel]:
    model = WatchedModel(turns)
    retry = RetryPolicy(3, base_delay=0.001)
    return ResilientChatModel(model, total_timeout=total, idle_timeout=idle, retry=retry), model


async def test_a_passing_fault_is_tried_again() -> None:
    model, script = resilient(ProviderRateLimited("busy"), ProviderRateLimited("busy"), says("ok"))
    assert isinstance((await turn_of(model))[-1], ChatResponse)
    assert len(script.prompts) == 3


@pytest.mark.parametrize(
    ("fault", "tries"),
    [(ProviderRateLimited("busy"), 3), (UpstreamInvalid("nonsense"), 1)],
    ids=["stays", "cannot pass"],
)
async def test_a_fault_that_stays_is_tried_three_times_and_one_that_cannot_pass_once(
    fault: Exception, tries: int
) -> None:
    model, script = resilient(fault)
    with pytest.raises(type(fault)):
        await turn_of(model)
    assert len(script.prompts) == tries


@pytest.mark.parametrize(("wait", "total"), [(30, 5), (60, 600)], ids=["beyond the deadline", "a limit of the day"])
async def test_a_long_wait_is_not_begun(wait: float, total: float) -> None:
    model, script = resilient(ProviderRateLimited("busy", retry_after=wait), says("ok"), total=total)
    with pytest.raises(ProviderRateLimited):
        await turn_of(model)
    assert len(script.prompts) == 1


async def test_retry_after_is_a_lower_bound_of_the_wait() -> None:
    # A timer of as many seconds that was started before has rung when the model is asked again.
    rung = asyncio.Event()
    asyncio.get_running_loop().call_later(0.1, rung.set)
    model, script = resilient(ProviderRateLimited("busy", retry_after=0.1), lambda _: says(f"rung: {rung.is_set()}"))
    *_, last = await turn_of(model)
    assert isinstance(last, ChatResponse)
    assert (last.message.text, len(script.prompts)) == ("rung: True", 2)


@pytest.mark.parametrize(("stream", "total", "idle"), [(False, 0.05, 60), (True, 60, 0.05), (True, 0.05, 60)])
async def test_silence_and_slowness_end_in_a_timeout(stream: bool, total: float, idle: float) -> None:
    model, script = resilient(unfinished("abc"), total=total, idle=idle)
    with pytest.raises(UpstreamTimeout):
        await turn_of(model, stream=stream)
    assert len(script.prompts) == 1


async def test_nothing_is_tried_again_once_text_has_gone_out() -> None:
    model, script = resilient(unfinished("half", ProviderRateLimited("busy")))
    with pytest.raises(ProviderRateLimited):
        await turn_of(model, stream=True)
    assert len(script.prompts) == 1


class Distrustful(ChatModel):
    """Takes whatever happens while it reads for its upstream's fault, as providers do."""

    provider = name = "distrustful"

    def __init__(self) -> None:
        self.asked = 0

    async def respond(self, prompt: Prompt, emit: EmitModelEvent) -> ChatResponse:
        self.asked += 1
        try:
            await emit(TextDelta("word"))
        except Exception as error:
            raise UpstreamUnavailable("the connection was lost") from error
        return ChatResponse(AssistantMessage("word"), "stop", Usage(), self.name)


async def test_an_exception_of_the_listener_is_not_retried() -> None:
    async def breaks(event: ModelEvent) -> None:
        raise BrokenPipeError("nobody reads")

    script = Distrustful()
    model = ResilientChatModel(script, total_timeout=60, idle_timeout=60, retry=RetryPolicy(3, base_delay=0.001))
    with pytest.raises(BrokenPipeError, match="nobody reads"):
        await model.respond(Prompt((UserMessage("?"),), stream=True), breaks)
    assert script.asked == 1


async def test_a_listener_that_takes_longer_than_the_idle_limit_is_waited_for() -> None:
    async def slowly(event: ModelEvent) -> None:
        await asyncio.sleep(0.1)

    model, _ = resilient(says("ab"), idle=0.05)
    response = await model.respond(Prompt((UserMessage("?"),), stream=True), slowly)
    assert response.message.text == "ab"
