"""Tool calls with broken JSON go back to the model: what it is told, how often, and what stays of it."""

from typing import Any

import pytest
from pydantic_core import from_json

from tests.chat.played import EVENTS, USAGE, asked, asks, clock, results, says, turns, update
from tests.chat.scripted import ADD, add, calls, client_of, says as answers
from tests.players.openai_player import OpenAIPlayer
from tests.serving import events_of, service
from toolchat.chat.advisors.repair import ToolCallRepairAdvisor
from toolchat.errors import ToolLoop
from toolchat.messages import AssistantMessage, ToolResponseMessage, Usage
from toolchat.models.base import Prompt
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.errors import ToolArgumentsError
from toolchat.tool_calling.function_callback import FunctionToolCallback

CLOCK = "getCityTimeFunction"
BROKEN = asks((CLOCK, '{"timeZoneId": "Asia/Tokyo", "at": }'))
GOOD = asks(clock("Asia/Tokyo"))
DONE = says("It is late.")
BROKEN_ARGUMENTS = {
    "truncated": '{"a": 1, "b"',
    "single quotes": "{'a': 1, 'b': 2}",
    "no quotes": "{a: 1, b: 2}",
    "comment": '{"a": 1, /* one */ "b": 2}',
    "two objects": '{"a": 1, "b": 2}{"a": 1, "b": 2}',
    "array": "[1, 2]",
    "number": "3",
    "words": "a is 1 and b is 2",
    "too deep": "[" * 3000,
    "lone surrogate": '{"a": "\\ud800", "b": 2}',
}
READABLE_ARGUMENTS = {
    "whole": '{"a":1,"b":2}',
    "nothing": "",
    "blanks": " \n",
    "null": "null",
    "code fence": '```json\n{"a":1,"b":2}\n```',
    "encoded twice": '"{\\"a\\":1,\\"b\\":2}"',
    "trailing comma": '{"a":1,"b":2,}',
    "unfitting": '{"a":"one"}',
    "not a number": '{"a":NaN,"b":2}',
}


def error(result: str) -> dict[str, Any]:
    """The error that the model was told."""
    told: dict[str, Any] = from_json(result)["error"]
    return told


async def test_a_broken_call_is_returned_with_the_error_and_the_rules() -> None:
    document, requests = await asked(BROKEN, GOOD, DONE)
    broken, told = requests[1].body["messages"][-2:]
    assert broken["tool_calls"][0]["function"] == {"name": CLOCK, "arguments": "{}"}
    assert told["tool_call_id"] == "c0"
    fault = error(told["content"])
    assert fault["kind"] == "invalid-arguments"
    assert "line 1 column 36" in fault["message"]
    assert '"at": }' in fault["message"]
    assert "RFC 8259" in fault["hint"]
    assert [(each["outcome"], each["round"]) for each in document["tool_calls"]] == [("ok", 2)]
    assert document["answer"] == "It is late."


async def test_repair_exchanges_are_not_part_of_the_conversation() -> None:
    # The turn after the repair is given the good call and its result, and nothing else; nor is more remembered.
    async with (
        OpenAIPlayer(turns(BROKEN, BROKEN, GOOD, DONE)) as player,
        service(OPENAI_BASE_URL=player.base_url, MEMORY_TOOL_ROUNDS="true") as client,
    ):
        await client.get("/todo/chat", params={"sessionId": "s-1"})
        conversation = (await client.get("/chat/s-1")).json()
    roles = [[each["role"] for each in request.body["messages"]] for request in player.requests]
    assert roles == [
        ["system", "user"],
        ["system", "user", "assistant", "tool"],
        ["system", "user", "assistant", "tool", "assistant", "tool"],
        ["system", "user", "assistant", "tool"],
    ]
    assert from_json(player.requests[3].body["messages"][2]["tool_calls"][0]["function"]["arguments"]) == {
        "timeZoneId": "Asia/Tokyo"
    }
    assert [each["role"] for each in conversation["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert "RFC 8259" not in str(conversation)


async def test_the_tokens_of_the_last_try_are_known_alone() -> None:
    client, _ = client_of(calls(("add", "{'a'")), answers("3"), advisors=[ToolCallRepairAdvisor()])
    response = await client.prompt("1+2?").tools("add").call().response()
    assert (response.usage, response.last_usage) == (Usage(20, 4), Usage(10, 2))


async def test_a_stream_shows_the_text_of_every_try_and_only_calls_that_ran() -> None:
    broken = {**BROKEN, "content": "Let me see. "}
    async with (
        OpenAIPlayer(turns(broken, {**GOOD, "content": "Again. "}, DONE)) as player,
        service(OPENAI_BASE_URL=player.base_url) as client,
    ):
        events = events_of((await client.get("/todo/chat", headers=EVENTS)).text)
    assert "".join(each.data["text"] for each in events if each.name == "delta") == "Let me see. Again. It is late."
    shown = [(each.name, each.data["round"]) for each in events if each.name.startswith("tool_call")]
    assert shown == [("tool_call_started", 2), ("tool_call_finished", 2)]
    assert (events[-1].data["answer"], events[-1].data["rounds"]) == ("It is late.", 3)
    assert events[-1].data["usage"]["total_tokens"] == 3 * USAGE["total_tokens"]


async def test_valid_calls_beside_a_broken_one_do_not_run() -> None:
    # Each call of the message has one answer, in the order of the calls; the list shows that none ran.
    plan = update(("a", "pending"))
    mixed = asks(plan, (CLOCK, '{"timeZoneId"'), ("todoRead", ""))
    document, requests = await asked(mixed, asks(("todoRead", "")), DONE)
    told = requests[1].body["messages"][-3:]
    assert [each["tool_call_id"] for each in told] == ["c0", "c1", "c2"]
    assert [error(each)["kind"] for each in results(requests[1])] == ["not-run", "invalid-arguments", "not-run"]
    assert "send it again" in error(results(requests[1])[0])["hint"]
    assert [each["result"] for each in document["tool_calls"]] == ["No todos."]


async def test_after_three_repairs_the_broken_call_is_answered_as_any_failed_call() -> None:
    # The loop then tells the model its ordinary, short error; the question still gets its answer.
    document, requests = await asked(BROKEN, BROKEN, BROKEN, BROKEN, DONE)
    record = document["tool_calls"][0]
    assert (record["outcome"], record["error_kind"], record["round"]) == ("error", "invalid-arguments", 4)
    assert "RFC 8259" not in record["result"]
    assert ["RFC 8259" in str(each.body) for each in requests] == [False, True, True, True, False]
    assert (document["answer"], document["rounds"]) == ("It is late.", 5)


async def test_repairs_use_up_the_rounds_of_a_question() -> None:
    # A model that never writes whole JSON costs no more turns than the loop's own limit and one set of repairs.
    document, requests = await asked(*[BROKEN] * 4, says("enough"), TOOL_MAX_ROUNDS="4")
    assert requests[4].body["tool_choice"] == "none"
    assert (document["answer"], document["rounds"]) == ("enough", 5)


async def test_a_tools_own_failure_is_not_a_broken_call() -> None:
    # Neither a failed look-up, nor arguments that do not fit, nor an unknown tool costs a repair.
    others = [asks(clock("Mars/Base")), asks((CLOCK, {"zone": 1})), asks(("nonsense", "{}")), asks((CLOCK, ""))]
    document, requests = await asked(*others, BROKEN, BROKEN, BROKEN, GOOD, DONE)
    assert len(document["tool_calls"]) == 5
    assert ["RFC 8259" in str(each.body) for each in requests] == [False] * 5 + [True] * 3 + [False]
    assert [each["outcome"] for each in document["tool_calls"]] == ["error"] * 4 + ["ok"]


async def test_calls_are_not_repaired_unless_the_settings_say_so() -> None:
    path = "/time/chat-tool-function"
    off, requests = await asked(BROKEN, DONE, path=path)
    assert [each["error_kind"] for each in off["tool_calls"]] == ["invalid-arguments"]
    assert "RFC 8259" not in str(requests[1].body)
    on, _ = await asked(BROKEN, GOOD, DONE, path=path, TOOL_CALL_REPAIRS="1")
    assert [each["outcome"] for each in on["tool_calls"]] == ["ok"]
    once, _ = await asked(BROKEN, BROKEN, DONE, path=path, TOOL_CALL_REPAIRS="1")
    assert [each["outcome"] for each in once["tool_calls"]] == ["error"]


async def test_the_setting_also_holds_where_a_route_would_repair_three_times() -> None:
    # There is one advisor, not one within another.
    _, requests = await asked(BROKEN, BROKEN, DONE, TOOL_CALL_REPAIRS="1")
    assert ["RFC 8259" in str(each.body) for each in requests] == [False, True, False]


async def repaired(arguments: str) -> bool:
    """Whether arguments go back to the model before anything runs."""
    client, model = client_of(calls(("add", arguments)), calls(ADD), answers("3"), advisors=[ToolCallRepairAdvisor()])
    await client.prompt("?").tools("add").call().response()
    told = model.prompts[1].messages[-1]
    assert isinstance(told, ToolResponseMessage)
    return "RFC 8259" in told.responses[0].text


async def is_about_form(arguments: str) -> bool:
    """Whether the tool itself finds that arguments are no JSON object, rather than that a field does not fit."""
    try:
        await FunctionToolCallback.from_function(add).call(arguments, ToolContext())
    except ToolArgumentsError as fault:
        return not fault.fields
    return False


@pytest.mark.parametrize("name", BROKEN_ARGUMENTS)
async def test_arguments_that_a_tool_cannot_parse_are_repaired(name: str) -> None:
    arguments = BROKEN_ARGUMENTS[name]
    assert (await repaired(arguments), await is_about_form(arguments)) == (True, True)


@pytest.mark.parametrize("name", READABLE_ARGUMENTS)
async def test_arguments_that_a_tool_can_parse_are_left_to_it(name: str) -> None:
    arguments = READABLE_ARGUMENTS[name]
    assert (await repaired(arguments), await is_about_form(arguments)) == (False, False)


async def test_a_turn_without_tools_is_not_repaired() -> None:
    # When the tools have been taken away, asking again would only cost another turn.

    def stubborn(prompt: Prompt) -> AssistantMessage:
        return calls(("add", "{" + f'"a":{len(prompt.messages)}'))

    client, model = client_of(stubborn, advisors=[ToolCallRepairAdvisor(1)], max_rounds=2)
    with pytest.raises(ToolLoop):
        await client.prompt("?").tools("add").call().response()
    assert [bool(each.tools) for each in model.prompts] == [True, True, True, False]
