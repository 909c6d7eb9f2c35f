"""Asking questions through the client: what the model is given, and the text or the object that comes back."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

import pytest
from pydantic import BaseModel

from tests.chat.scripted import ADD, add, calls, client_of, receipt, says, unfinished
from toolchat.errors import ContentFiltered, ProviderRateLimited, UpstreamInvalid
from toolchat.messages import AssistantMessage, SystemMessage, ToolResponseMessage, Usage, UserMessage
from toolchat.models.base import ChatOptions, ChatResponse, TextDelta
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.definition import tool
from toolchat.tool_calling.errors import ToolDefinitionError
from toolchat.tool_calling.events import ToolCallFinished, ToolCallStarted
from toolchat.tool_calling.function_callback import FunctionToolCallback


async def test_the_model_answers_from_the_result_of_its_call() -> None:
    client, model = client_of(calls(ADD), says("It is 3."))
    response = await client.prompt("1+2?").tools("add").call().response()
    assert response.message.text == "It is 3."
    assert (response.rounds, response.usage, response.last_usage) == (2, Usage(20, 4), Usage(10, 2))
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


async def test_leaving_a_stream_closes_the_model() -> None:
    client, model = client_of(says("long answer"))
    async with aclosing(client.prompt("?").stream().events()) as events:
        await anext(events)
    assert model.left.is_set()


async def test_a_model_is_at_most_a_few_events_ahead_of_the_iterator() -> None:
    text = "x" * 100
    client, model = client_of(says(text))
    async with aclosing(client.prompt("?").stream().events()) as events:
        await anext(events)
        for _ in range(1000):
            await asyncio.sleep(0)
        assert 1 <= len(model.told) < 10
        rest = [event async for event in events]
    assert len(rest) == len(text)


async def test_an_error_follows_the_events_emitted_before_it() -> None:
    client, _ = client_of(unfinished("abc", ProviderRateLimited("busy")))
    seen: list[object] = []
    with pytest.raises(ProviderRateLimited):
        await _collect(client.prompt("?").stream().events(), seen)
    assert seen == [TextDelta("a"), TextDelta("b"), TextDelta("c")]


async def _collect(events: AsyncGenerator[object, None], seen: list[object]) -> None:
    async for event in events:
        seen.append(event)


async def test_tools_may_be_names_callbacks_providers_and_objects() -> None:
    class Calculator:
        @tool()
        async def twice(self, a: int) -> int:
            return 2 * a

    client, model = client_of(says("ok"))
    prompt = client.prompt("?").tools("add", FunctionToolCallback.from_function(receipt), Calculator())
    await prompt.options(ChatOptions(temperature=0)).call().content()
    assert [each.name for each in model.prompts[0].tools] == ["add", "receipt", "twice"]
    assert model.prompts[0].options.temperature == 0
    with pytest.raises(ToolDefinitionError, match="no tool has the name nothing; known: add, receipt"):
        prompt.tools("nothing")
    with pytest.raises(ToolDefinitionError, match="two tools have the name add"):
        prompt.tools(FunctionToolCallback.from_function(add))


async def test_tools_get_the_context_and_the_history_and_the_model_neither() -> None:
    seen: list[ToolContext] = []

    async def look(context: ToolContext) -> str:
        seen.append(context)
        return "seen"

    client, model = client_of(calls(("look", "")), says("ok"))
    prompt = client.prompt("?").tools(FunctionToolCallback.from_function(look)).tool_context({"tenant": "acme"})
    await prompt.call().content()
    assert seen[0].get("tenant") == "acme"
    assert seen[0].history == (SystemMessage("Be brief."), UserMessage("?"), calls(("look", "")))
    assert "acme" not in repr(model.prompts)


async def test_system_messages_and_default_tools_make_the_prompt() -> None:
    client, model = client_of(says("ok"))
    client = replace(client, default_tools=(FunctionToolCallback.from_function(add),))
    await client.prompt("?").call().content()
    await client.prompt("?").system("Be long.").tools("receipt").call().content()
    await client.prompt("?").system("").call().content()
    talk = (UserMessage("a"), AssistantMessage("b"), UserMessage("c"))
    await client.prompt().messages(talk).call().content()
    await client.prompt().messages(talk).system("Now.").call().content()
    await replace(client, system_text="").prompt("?").call().content()
    assert [prompt.messages for prompt in model.prompts] == [
        (SystemMessage("Be brief."), UserMessage("?")),
        (SystemMessage("Be long."), UserMessage("?")),
        (UserMessage("?"),),
        talk,
        (SystemMessage("Now."), *talk),
        (UserMessage("?"),),
    ]
    assert [[each.name for each in prompt.tools] for prompt in model.prompts[:2]] == [["add"], ["add", "receipt"]]


@pytest.mark.parametrize(("reason", "error"), [("stop", UpstreamInvalid), ("content_filter", ContentFiltered)])
async def test_an_empty_answer_is_an_error_and_never_an_answer(reason: str, error: type[Exception]) -> None:
    client, _ = client_of(ChatResponse(says("  "), reason, Usage(), "m"))
    with pytest.raises(error):
        await client.prompt("?").call().content()


class City(BaseModel):
    name: str
    people: int


@pytest.mark.parametrize(
    "answers",
    [
        ['{"name":"杭州","people":12}'],
        ['```json\n{"name":"杭州","people":12}\n```'],
        ['Here it is:\n```\n{"name":"杭州","people":12}\n```\nAnything else?'],
        ["About twelve million.", '{"name":"杭州","people":12}'],
        ['{"name":"杭州","people":"many"}', '```json\n{"name":"杭州","people":12}\n```'],
    ],
    ids=["first", "fence", "fence in text", "second", "second with fence"],
)
async def test_an_answer_can_be_an_object_at_the_first_or_the_second_try(answers: list[str]) -> None:
    client, model = client_of(*(says(answer) for answer in answers))
    assert await client.prompt("杭州?").call().entity(City) == City(name="杭州", people=12)
    assert len(model.prompts) == len(answers)
    asked = model.prompts[0].messages[-1]
    assert isinstance(asked, UserMessage)
    assert asked.text.startswith("杭州?")
    assert '"people"' in asked.text


async def test_the_second_attempt_receives_the_validation_errors() -> None:
    client, model = client_of(says('{"name":"杭州","people":"many"}'), says('{"name":"杭州","people":12}'))
    await client.prompt("?").call().entity(City)
    *_, answer, fault = model.prompts[1].messages
    assert answer == says('{"name":"杭州","people":"many"}')
    assert isinstance(fault, UserMessage)
    assert "people: Input should be a valid integer" in fault.text


async def test_two_answers_that_do_not_fit_are_an_error_without_their_text() -> None:
    client, model = client_of(says("secret text"))
    with pytest.raises(UpstreamInvalid) as caught:
        await client.prompt("?").call().entity(City)
    assert "secret" not in caught.value.detail
    assert len(model.prompts) == 2
