"""Histories in the forms in which clients and other providers write them: one conversation on both wires."""

from typing import Any

import pytest

from tests.protocols.openai.asking import ask, call, completion, output_of, played, result, says, user

ROLL = {"type": "function", "name": "roll", "parameters": {"type": "object", "properties": {}}}
ASKED, AGAIN = user("?"), user("And now?")


def said(text: str | None = None, *calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": text} | ({"tool_calls": list(calls)} if calls else {})


def item(call_id: str, name: str = "roll", **fields: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": "{}", **fields}


A, B = call("roll", identifier="a"), call("roll", identifier="b")
ANSWERED = [ASKED, said("", A), result("a", "4")]

THOUGHT = {"role": "assistant", "content": [{"type": "thinking", "thinking": "?"}, {"type": "text", "text": "4"}]}

ON_RESPONSES: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    # The AI SDK writes a message of the parts [tool-call, text] in this order.
    "call, text, output": (
        [ASKED, item("a"), said("One moment."), output_of("a")],
        [ASKED, said("One moment.", A), result("a", "4")],
    ),
    "call, question, output": ([ASKED, item("a"), AGAIN, output_of("a")], [*ANSWERED, AGAIN]),
    "an id that each turn uses": (
        [ASKED, item("a"), output_of("a"), AGAIN, item("a"), output_of("a", "5")],
        [*ANSWERED, AGAIN, said("", A), result("a", "5")],
    ),
    "parallel calls": (
        [ASKED, item("a"), item("b"), output_of("b", "5"), output_of("a")],
        [ASKED, said("", A, B), result("a", "4"), result("b", "5")],
    ),
    "a custom call": (
        [
            *(ASKED, {"type": "custom_tool_call", "call_id": "a", "name": "patch", "input": "x"}),
            *({"type": "custom_tool_call_output", "call_id": "a", "output": "4"}, AGAIN),
        ],
        [ASKED, said("", call("patch", '{"input":"x"}', "a")), result("a", "4"), AGAIN],
    ),
    # In OpenAI's documentation the output's id is the call's; Codex answered with a function_call_output.
    "a shell call": (
        [
            *(ASKED, {"type": "local_shell_call", "id": "lsh_1", "call_id": "a", "action": {"command": ["ls"]}}),
            *({"type": "local_shell_call_output", "id": "a", "call_id": None, "output": "4"}, AGAIN),
        ],
        [ASKED, said("", call("local_shell", '{"command":["ls"],"type":"exec"}', "a")), result("a", "4"), AGAIN],
    ),
    "a thought": (
        [ASKED, THOUGHT, AGAIN],
        [ASKED, said("4"), AGAIN],
    ),
    "items of other providers": (
        [
            *(ASKED, {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "?"}]}),
            {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}},
            {"type": "image_generation_call", "id": "ig_1", "result": "AAAA"},
            {"type": "file_search_call", "id": "fs_1", "queries": ["?"], "results": None},
            {"type": "code_interpreter_call", "id": "ci_1", "code": "1", "outputs": []},
            {"type": "computer_call", "call_id": "c", "action": {"type": "screenshot"}},
            {"type": "computer_call_output", "call_id": "c", "output": {"type": "computer_screenshot"}},
            {"type": "tool_search_call", "call_id": "t", "arguments": {"query": "?"}, "execution": "client"},
            {"type": "tool_search_output", "call_id": "t", "tools": [], "execution": "client"},
            {"type": "compaction", "encrypted_content": "AAAA"},
            *({"type": "of_tomorrow", "name": 1, "content": {"a": {}}, "id": 5}, said("4."), AGAIN),
        ],
        [ASKED, said("4."), AGAIN],
    ),
}


@pytest.mark.parametrize("name", ON_RESPONSES)
async def test_a_history_of_items_reaches_the_model_as_a_conversation(name: str) -> None:
    items, expected = ON_RESPONSES[name]
    async with played([says("ok"), says("ok")]) as (client, player):
        document = await ask(client, items, tools=[ROLL], model="toolchat-plain")
        await ask(client, "More?", previous_response_id=document["id"], model="toolchat-plain")
    first, later = (each.body["messages"] for each in player.requests)
    assert without_instructions(first) == expected
    assert without_instructions(later) == [*expected, said("ok"), user("More?")]


ON_COMPLETIONS: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "calls in two messages": (
        [ASKED, said(None, A), said(None, B), result("a", "4"), result("b", "5")],
        [ASKED, said("", A, B), result("a", "4"), result("b", "5")],
    ),
    "call, text, result": (
        [ASKED, said(None, A), said("One moment."), result("a", "4")],
        [ASKED, said("One moment.", A), result("a", "4")],
    ),
    "call, question, result": ([ASKED, said(None, A), AGAIN, result("a", "4")], [*ANSWERED, AGAIN]),
    "a thought": (
        [ASKED, THOUGHT, AGAIN],
        [ASKED, said("4"), AGAIN],
    ),
}


@pytest.mark.parametrize("name", ON_COMPLETIONS)
async def test_a_history_of_messages_reaches_the_model_as_a_conversation(name: str) -> None:
    messages, expected = ON_COMPLETIONS[name]
    async with played([says("ok")]) as (client, player):
        await completion(client, *messages, model="toolchat-plain")
    assert without_instructions(player.requests[0].body["messages"]) == expected


def without_instructions(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for each in messages if each["role"] != "system"]
