"""Asking questions through the client: the tool loop, its limits, its streams."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

import pytest
from pydantic_core import from_json

from app.chat.advisors import Advisor, AdvisorChain, SandboxNoticeAdvisor
from app.chat.client import ChatClient
from app.chat.request import ChatEvent, ChatRequest, Notice
from app.chat_models.base import ChatModel, ChatOptions, ChatResponse, ModelEvent, Prompt, TextDelta
from app.chat_models.resilient import ResilientChatModel, RetryPolicy
from app.errors import ContentFiltered, ProviderRateLimited, ToolLoop, UpstreamInvalid, UpstreamTimeout
from app.messages import AssistantMessage, SystemMessage, ToolResponseMessage, Usage, UserMessage
from app.tool_calling.context import ToolContext
from app.tool_calling.errors import ToolDefinitionError
from app.tool_calling.events import ToolCallFinished, ToolCallStarted
from app.tool_calling.function_callback import FunctionToolCallback, tool
from tests.chat.scripted import ADD, ScriptedChatModel, Turn, add, calls, client_of, receipt, says


async def test_the_model_answers_from_the_result_of_the_call_that_it_asked_for() -> None:
    client, model = client_of(calls(ADD), says("It is 3."))
    response = await client.prompt("1+2?").tools("add").call().response()
    assert response.message.text == "It is 3."
    assert (response.rounds, response.usage) == (2, Usage(20, 4))
    assert [(each.call.name, each.result, each.round) for each in response.executions] == [("add", "3", 1)]
    first, second = model.prompts
    assert first.messages == (SystemMessage("Be brief."), UserMessage("1+2?"))
    assert [each.name for each in first.tools] == ["add"]
    assert second.messages[2] == calls(ADD)
    assert isinstance(second.messages[3], ToolResponseMessage)
    assert second.messages[3].responses[0].text == "3"


async def test_a_stream_shows_calls_and_text_as_they_come() -> None:
    client, _ = client_of(calls(ADD, text="hm"), says("3"))
    events = [event async for event in client.prompt("?").tools("add").stream().events()]
    kinds = [type(event) for event in events]
    assert kinds == [TextDelta, TextDelta, ToolCallStarted, ToolCallFinished, TextDelta, ChatResponse]
    assert [piece async for piece in client.prompt("?").stream().content()] == ["3"]


async def test_results_are_given_back_in_the_order_of_the_calls() -> None:
    release = asyncio.Event()

    async def first() -> str:
        await release.wait()
        return "1st"

    async def second() -> str:
        release.set()
        return "2nd"

    client, model = client_of(calls(("first", ""), ("second", "")), says("done"))
    tools = [FunctionToolCallback.of(first), FunctionToolCallback.of(second)]
    response = await client.prompt("?").tools(*tools).call().response()
    assert [each.result for each in response.executions] == ["1st", "2nd"]
    answered = model.prompts[1].messages[-1]
    assert isinstance(answered, ToolResponseMessage)
    assert [(each.id, each.text) for each in answered.responses] == [("call_0", "1st"), ("call_1", "2nd")]


async def test_only_offered_tools_can_run_even_when_others_exist() -> None:
    client, _ = client_of(calls(ADD), says("sorry"))
    response = await client.prompt("?").tools("receipt").call().response()
    assert response.executions[0].error_kind == "unknown-tool"
    assert response.message.text == "sorry"


async def test_a_model_that_asks_for_tools_for_ever_is_asked_once_more_without_them() -> None:
    def turn(prompt: Prompt) -> AssistantMessage:
        return calls(("add", f'{{"a":{len(prompt.messages)},"b":0}}')) if prompt.tools else says("enough")

    client, model = client_of(turn)
    response = await client.prompt("?").tools("add").call().response()
    assert response.message.text == "enough"
    assert len(model.prompts) == 4
    assert len(response.executions) == 3


async def test_a_model_that_cannot_stop_even_then_is_an_error() -> None:
    client, model = client_of(lambda prompt: calls(("add", f'{{"a":{len(prompt.messages)},"b":0}}')))
    with pytest.raises(ToolLoop):
        await client.prompt("?").tools("add").call().content()
    assert len(model.prompts) == 4


async def test_the_same_call_for_ever_is_run_three_times_and_then_ends() -> None:
    client, model = client_of(lambda prompt: calls(ADD) if prompt.tools else says("3 it is"), max_rounds=50)
    response = await client.prompt("?").tools("add").call().response()
    assert response.message.text == "3 it is"
    assert [each.error_kind for each in response.executions] == [None, None, None, "repeated-call"]
    assert len(model.prompts) == 5


async def test_a_tool_marked_return_direct_is_the_answer() -> None:
    client, model = client_of(calls(("receipt", '{"number":7}'), ("receipt", '{"number":8}')))
    response = await client.prompt("?").tools("receipt").call().response()
    assert response.message.text == "receipt 7\n\nreceipt 8"
    assert response.finish_reason == "return_direct"
    assert len(model.prompts) == 1


async def test_a_batch_that_mixes_direct_and_other_tools_goes_back_to_the_model() -> None:
    client, _ = client_of(calls(("receipt", '{"number":7}'), ADD), says("both"))
    assert await client.prompt("?").tools("receipt", "add").call().content() == "both"


async def test_tools_get_the_context_and_the_history_and_the_model_neither() -> None:
    seen: list[ToolContext] = []

    async def look(context: ToolContext) -> str:
        seen.append(context)
        return "seen"

    client, model = client_of(calls(("look", "")), says("ok"))
    prompt = client.prompt("?").tools(FunctionToolCallback.of(look)).tool_context({"tenant": "acme"})
    await prompt.call().content()
    assert seen[0].get("tenant") == "acme"
    assert seen[0].history == (SystemMessage("Be brief."), UserMessage("?"), calls(("look", "")))
    assert "acme" not in repr(model.prompts)


@pytest.mark.parametrize(("reason", "error"), [("stop", UpstreamInvalid), ("content_filter", ContentFiltered)])
async def test_an_empty_answer_is_an_error_and_never_an_answer(reason: str, error: type[Exception]) -> None:
    @dataclass
    class Silent(ScriptedChatModel):
        async def respond(self, prompt: Prompt) -> AsyncGenerator[ModelEvent, None]:
            yield ChatResponse(says("  "), reason, Usage(), "m")

    client, _ = client_of(says(""))
    silent = ChatClient(Silent([]), client.resolver, client.advisors)
    with pytest.raises(error):
        await silent.prompt("?").call().content()


async def test_tools_may_be_names_callbacks_providers_and_objects() -> None:
    class Calculator:
        @tool()
        async def twice(self, a: int) -> int:
            return 2 * a

    client, model = client_of(says("ok"))
    prompt = client.prompt("?").tools("add", FunctionToolCallback.of(receipt), Calculator())
    await prompt.options(ChatOptions(temperature=0)).call().content()
    assert [each.name for each in model.prompts[0].tools] == ["add", "receipt", "twice"]
    assert model.prompts[0].options.temperature == 0
    with pytest.raises(ToolDefinitionError, match="no tool has the name nothing; known: add, receipt"):
        prompt.tools("nothing")
    with pytest.raises(ToolDefinitionError, match="two tools have the name add"):
        prompt.tools(FunctionToolCallback.of(add))


async def test_advisors_wrap_whole_answers_and_streams_alike_in_their_order() -> None:
    @dataclass
    class Shouting(Advisor):
        order: int
        mark: str = ""

        async def advise(self, request: ChatRequest, chain: AdvisorChain) -> AsyncGenerator[ChatEvent, None]:
            async with aclosing(chain.proceed(request)) as events:
                async for event in events:
                    if isinstance(event, ChatResponse):
                        yield ChatResponse(says(event.message.text + self.mark), "stop", event.usage, event.model)
                    else:
                        yield event

    client, _ = client_of(says("hi"), advisors=[Shouting(1, "!"), Shouting(2, "?")])
    assert await client.prompt("").call().content() == "hi?!"
    *_, last = [event async for event in client.prompt("").stream().events()]
    assert isinstance(last, ChatResponse)
    assert last.message.text == "hi?!"


@pytest.mark.parametrize(
    "name",
    ["", "Todo", "to do", "a\n", "a\ndata: x", "todo1", "进度", "delta", "usage", "done", "error", "tool_call_started",
     "tool_call_finished"],
)  # fmt: skip
def test_a_notice_with_a_name_that_a_stream_cannot_carry_is_refused(name: str) -> None:
    """Other characters break the event's form, and the service's own names mean something else to clients."""
    with pytest.raises(ValueError, match="notice"):
        Notice(name, {})
    assert Notice("my_progress", {}).name == "my_progress"


async def test_an_answer_that_rests_on_a_sandbox_says_so_in_both_forms() -> None:
    invented = FunctionToolCallback.of(add).in_sandbox()
    client, _ = client_of(calls(ADD), says("3"), advisors=[SandboxNoticeAdvisor()])
    answer = await client.prompt("?").tools(invented).call().content()
    assert answer == "3" + SandboxNoticeAdvisor.notice
    client, _ = client_of(calls(ADD), says("3"), advisors=[SandboxNoticeAdvisor()])
    assert "".join([piece async for piece in client.prompt("?").tools(invented).stream().content()]) == answer
    client, _ = client_of(says("I need no tool"), advisors=[SandboxNoticeAdvisor()])
    assert await client.prompt("?").tools(invented).call().content() == "I need no tool"


async def test_leaving_a_stream_closes_the_model() -> None:
    client, model = client_of(says("long answer"))
    async with aclosing(client.prompt("?").stream().events()) as events:
        await anext(events)
    assert model.left.is_set()


def resilient(
    *turns: Turn, total: float = 5, idle: float = 5, attempts: int = 3
) -> tuple[ChatModel, ScriptedChatModel]:
    model = ScriptedChatModel(turns)
    policy = RetryPolicy(attempts, base_delay=0.001)
    return ResilientChatModel(model, total_timeout=total, idle_timeout=idle, retry=policy), model


async def asked(model: ChatModel, *, stream: bool = False) -> list[ModelEvent]:
    return [event async for event in model.respond(Prompt((UserMessage("?"),), stream=stream))]


async def test_a_passing_fault_is_tried_again_and_a_lasting_one_is_not() -> None:
    model, script = resilient(ProviderRateLimited("busy"), ProviderRateLimited("busy"), says("ok"))
    assert isinstance((await asked(model))[-1], ChatResponse)
    assert len(script.prompts) == 3
    model, script = resilient(ProviderRateLimited("busy"))
    with pytest.raises(ProviderRateLimited):
        await asked(model)
    assert len(script.prompts) == 3
    model, script = resilient(UpstreamInvalid("nonsense"))
    with pytest.raises(UpstreamInvalid):
        await asked(model)
    assert len(script.prompts) == 1


async def test_a_wait_that_would_pass_the_deadline_is_not_begun() -> None:
    model, script = resilient(ProviderRateLimited("busy", retry_after=30), says("ok"), total=5)
    with pytest.raises(ProviderRateLimited):
        await asked(model)
    assert len(script.prompts) == 1


async def test_retry_after_is_a_lower_bound_of_the_wait() -> None:
    model, script = resilient(ProviderRateLimited("busy", retry_after=0.1), says("ok"))
    before = time.monotonic()
    await asked(model)
    # The event loop's clock ticks in milliseconds.
    assert time.monotonic() - before >= 0.099
    assert len(script.prompts) == 2


@dataclass
class Stalling(ScriptedChatModel):
    """Gives its text and then nothing more."""

    async def respond(self, prompt: Prompt) -> AsyncGenerator[ModelEvent, None]:
        self.prompts.append(prompt)
        for piece in "abc" if prompt.stream else "":
            yield TextDelta(piece)
        await asyncio.Event().wait()


@pytest.mark.parametrize(("stream", "total", "idle"), [(False, 0.05, 5), (True, 5, 0.05), (True, 0.05, 5)])
async def test_silence_and_slowness_end_in_a_timeout(stream: bool, total: float, idle: float) -> None:
    script = Stalling([])
    model = ResilientChatModel(script, total_timeout=total, idle_timeout=idle)
    with pytest.raises(UpstreamTimeout):
        await asked(model, stream=stream)
    assert len(script.prompts) == 1


async def test_nothing_is_tried_again_once_text_has_gone_out() -> None:
    @dataclass
    class Breaking(ScriptedChatModel):
        async def respond(self, prompt: Prompt) -> AsyncGenerator[ModelEvent, None]:
            self.prompts.append(prompt)
            yield TextDelta("half")
            raise ProviderRateLimited("busy")

    script = Breaking([])
    model = ResilientChatModel(script, total_timeout=5, idle_timeout=5)
    with pytest.raises(ProviderRateLimited):
        await asked(model, stream=True)
    assert len(script.prompts) == 1


def test_an_error_result_is_json_that_a_model_can_read() -> None:
    from app.tool_calling.errors import ToolArgumentsError

    error = ToolArgumentsError("days: too many", [{"field": "days", "problem": "too many"}])
    assert from_json(error.as_result())["error"]["fields"] == [{"field": "days", "problem": "too many"}]
