"""What a page sends beside its messages: tools that it runs itself, and instructions, as assistant-ui's transport does.

Their form is that of assistant-ui/assistant-ui, ``packages/react-ai-sdk/src/ui/use-chat/AssistantChatTransport.tsx``.
"""

from typing import Any

import httpx
import pytest

from tests.protocols.ai_sdk.asking import CHAT, SHIP_FOLDERS, asks, parts_of, said, says, sent, text, user
from tests.protocols.ai_sdk.test_approvals import decided, requests_of
from tests.protocols.openai.asking import call, played
from tests.serving import service

PARAMETERS = {"type": "object", "properties": {"sides": {"type": "integer"}}}
TOOLS = {"roll": {"description": "Roll a die", "parameters": PARAMETERS}}
TIME = call("getCityTimeFunction", '{"timeZoneId":"Asia/Shanghai"}', "call_time")
ROLLED = call("roll", '{"sides":6}', "call_roll")


def shown(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """The part of the page's tool, with its result, as the page stores it."""
    (asked,) = [each for each in parts if each["type"] == "tool-input-available" and each["toolName"] == "roll"]
    fields = {"type": "tool-roll", "state": "output-available", "output": 4}
    return fields | {"toolCallId": asked["toolCallId"], "input": asked["input"]}


@pytest.mark.parametrize("script", [[asks(TIME, ROLLED)], [asks(TIME), asks(ROLLED)]], ids=["one round", "two rounds"])
async def test_a_page_runs_its_tool_and_the_answer_goes_on_with_what_the_service_has_done(script: list[Any]) -> None:
    async with played([*script, says("Done.")]) as (client, player):
        first = parts_of(await sent(client, user("Roll"), tools=TOOLS))
        answer = await sent(client, user("Roll"), said(shown(first)), tools=TOOLS)
    asked = next(each for each in first if each.get("toolName") == "roll")
    assert (asked["input"], asked.keys() & {"dynamic", "providerExecuted"}) == ({"sides": 6}, set())
    assert [each["type"] for each in first].count("start-step") == len(script)
    assert first[-1] == {"type": "finish", "finishReason": "tool-calls"}
    assert "".join(each.get("delta", "") for each in parts_of(answer)) == "Done."
    offered = {each["function"]["name"]: each["function"] for each in player.requests[0].body["tools"]}
    assert (offered["roll"]["description"], offered["roll"]["parameters"]) == ("Roll a die", PARAMETERS)
    assert "getCityTimeFunction" in offered
    results = [each["content"] for each in player.requests[-1].body["messages"] if each["role"] == "tool"]
    assert (results[0].startswith("The current time zone is"), results[1:]) == (True, ["4"])


async def test_the_pages_tools_are_offered_after_an_approval_as_well() -> None:
    ship = call("ship", '{"number":1}')
    async with played([asks(ship), asks(ROLLED), says("Done.")], SHIP_FOLDERS) as (client, player):
        paused = await sent(client, user("Ship"), tools=TOOLS)
        (identifier,) = requests_of(paused).values()
        first = parts_of(await sent(client, user("Ship"), said(decided(identifier, True)), tools=TOOLS))
        shipped = decided(identifier, True) | {"state": "output-available", "output": "shipped 1"}
        history = said(shipped, {"type": "step-start"}, shown(first))
        answer = await sent(client, user("Ship"), history, tools=TOOLS)
    assert first[-1] == {"type": "finish", "finishReason": "tool-calls"}
    assert "".join(each.get("delta", "") for each in parts_of(answer)) == "Done."
    results = [each["content"] for each in player.requests[-1].body["messages"] if each["role"] == "tool"]
    assert results == ["shipped 1", "4"]


async def test_instructions_of_the_request_are_appended_to_those_of_the_service() -> None:
    system = {"id": "s", "role": "system", "parts": [text("In rhymes.")]}
    async with played([says("ok")], SYSTEM_PROMPT="Be kind.") as (client, player):
        parts_of(await sent(client, system, user("Hi"), system="Be brief.", tools={}))
    assert player.requests[0].body["messages"][0]["content"] == "Be kind.\n\nBe brief.\n\nIn rhymes."


async def test_a_page_that_resumes_learns_that_nothing_runs() -> None:
    async with service() as client:
        answer = await client.get(f"{CHAT}/c-1/stream")
    assert (answer.status_code, answer.content) == (204, b"")


@pytest.mark.parametrize(
    ("tools", "words"),
    [({"a b": {}}, "tools"), ({"roll": {"parameters": 5}}, "tools.roll.parameters"), (["roll"], "tools: ")],
)
async def test_tools_that_cannot_be_offered_are_named(tools: object, words: str) -> None:
    async with service() as client:
        answer: httpx.Response = await sent(client, user("?"), tools=tools)
    assert (answer.status_code, words in answer.text) == (400, True), answer.text
