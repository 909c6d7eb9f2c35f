"""How long a turn's events are waited for, and when it is tried again."""

import asyncio
import selectors
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest

from tests.chat.scripted import Turn, WatchedModel, says, turn_of, unfinished
from tests.models.responding import events_of
from toolchat.errors import ProviderRateLimited, UpstreamInvalid, UpstreamTimeout, UpstreamUnavailable
from toolchat.messages import AssistantMessage, Message, ToolResponse, ToolResponseMessage, Usage, UserMessage
from toolchat.models.base import (
    ChatModel,
    ChatResponse,
    EmitModelEvent,
    ModelEvent,
    Progress,
    Prompt,
    TextDelta,
)
from toolchat.models.resilience import KEEPALIVE, ModelTimeouts, ResilientChatModel, RetryPolicy
from toolchat.tool_calling.definition import ToolDefinition

ASKED = Prompt((UserMessage("?"),), stream=True)


class Jump(selectors.DefaultSelector):
    """Looks for what is ready at once, and calls what should have been waited for the time that has passed."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout > 0:
            self.now += timeout + 1e-6  # a little late, as real timers are: never a rounding too early
            timeout = 0
        return super().select(timeout)


class JumpingLoop(asyncio.SelectorEventLoop):
    """For code that waits and does nothing else: between two timers no time passes, however slow the machine is."""

    def __init__(self) -> None:
        self._jump = Jump()
        super().__init__(self._jump)

    def time(self) -> float:
        return self._jump.now


@pytest.fixture(scope="module")
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "asyncio", {"loop_factory": JumpingLoop}


async def waited(*pauses: float, total: float = 30, idle: float = 30, reading: float = 0) -> None:
    """Wait for events that come after pauses; each is read for so many seconds."""
    with ModelTimeouts(deadline=asyncio.get_running_loop().time() + total, idle=idle) as timeouts:
        for pause in pauses:
            await asyncio.sleep(pause)
            timeouts.pause()
            await asyncio.sleep(reading)
            timeouts.resume()


@pytest.mark.parametrize(
    ("pauses", "limits"),
    [([0, 1], {"idle": 0.05}), ([0.03] * 100, {"total": 0.2}), ([0, 1], {"total": 0.05, "reading": 0.1})],
    ids=["silence", "a lively model at the deadline", "a deadline that passed while the reader was busy"],
)
async def test_a_limit_ends_the_wait(pauses: list[float], limits: dict[str, float]) -> None:
    with pytest.raises(UpstreamTimeout):
        await waited(*pauses, **limits)


async def test_events_that_keep_coming_and_the_time_of_the_reader_are_no_silence() -> None:
    await waited(*[0.05] * 8, idle=0.2)
    await waited(0, 0.01, 0.01, idle=0.05, reading=0.2)


async def test_a_cancelled_wait_stays_a_cancellation_although_a_limit_expires_while_it_tidies_up() -> None:
    tidied = asyncio.Event()

    async def turn() -> None:
        with ModelTimeouts(deadline=asyncio.get_running_loop().time() + 1, idle=30):
            try:
                await asyncio.sleep(30)
            finally:
                await asyncio.sleep(5)  # the deadline passes meanwhile
                tidied.set()

    for work in (waited(30), turn()):
        waiting = asyncio.create_task(work)
        await asyncio.sleep(0.5)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert tidied.is_set()


class Telling(ChatModel):
    """Sends its events, each after some seconds, then fails as often as it is told to, and answers."""

    provider = name = "telling"

    def __init__(self, events: Sequence[ModelEvent], pause: float = 0, faults: int = 0) -> None:
        self._events, self._pause, self._faults = events, pause, faults
        self.asked = 0

    async def respond(self, prompt: Prompt, emit: EmitModelEvent) -> ChatResponse:
        self.asked += 1
        for event in self._events:
            await asyncio.sleep(self._pause)
            await emit(event)
        if self.asked <= self._faults:
            raise UpstreamUnavailable("the connection was lost")
        await emit(TextDelta("ok"))
        return ChatResponse(AssistantMessage("ok"), "stop", Usage(), self.name)


@pytest.mark.parametrize("total", [300, 100])
async def test_signs_of_life_reset_the_idle_limit_only_and_are_not_passed_on(total: int) -> None:
    busy = ResilientChatModel(Telling([KEEPALIVE] * 10, pause=20), total_timeout=total, idle_timeout=30)
    if total == 100:
        with pytest.raises(UpstreamTimeout):
            await events_of(busy, ASKED)
    else:
        assert (await events_of(busy, ASKED))[:-1] == [TextDelta("ok")]


@pytest.mark.parametrize("stream", [True, False])
async def test_a_silent_model_is_given_up_at_the_idle_limit_and_not_asked_again(stream: bool) -> None:
    silent, began = Telling([KEEPALIVE], pause=1000), asyncio.get_running_loop().time()
    with pytest.raises(UpstreamTimeout):
        await events_of(
            ResilientChatModel(silent, total_timeout=600, idle_timeout=30), Prompt(ASKED.messages, stream=stream)
        )
    assert silent.asked == 1
    assert asyncio.get_running_loop().time() - began == pytest.approx(30)


async def test_a_model_that_has_only_thought_is_asked_again() -> None:
    thinks = Telling([KEEPALIVE, Progress("Hm.")], faults=2)
    *events, _ = await events_of(ResilientChatModel(thinks, total_timeout=600, idle_timeout=30), ASKED)
    assert (thinks.asked, events) == (3, [*[Progress("Hm.")] * 3, TextDelta("ok")])


RESULT = ToolResponseMessage((ToolResponse("call_0", "add", "3"),))


def resilient(*turns: Turn, total: float = 600) -> tuple[ChatModel, WatchedModel]:
    model = WatchedModel(turns)
    return ResilientChatModel(model, total_timeout=total, idle_timeout=60, retry=RetryPolicy(3)), model


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


@pytest.mark.parametrize(("last", "tries"), [(UserMessage("?"), 3), (RESULT, 1)], ids=["question", "result"])
async def test_an_empty_answer_is_tried_again_but_not_to_the_results_of_tools(last: Message, tries: int) -> None:
    model, script = resilient(says(""))
    with suppress(UpstreamInvalid):
        await events_of(model, Prompt((UserMessage("?"), last), (ToolDefinition("add", "Adds", {}),)))
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
    model = ResilientChatModel(script, total_timeout=60, idle_timeout=60)
    with pytest.raises(BrokenPipeError, match="nobody reads"):
        await model.respond(Prompt((UserMessage("?"),), stream=True), breaks)
    assert script.asked == 1


async def test_a_listener_that_takes_longer_than_the_idle_limit_is_waited_for() -> None:
    async def slowly(event: ModelEvent) -> None:
        await asyncio.sleep(100)

    model, _ = resilient(says("ab"))
    assert (await model.respond(ASKED, slowly)).message.text == "ab"
