"""Open WebUI's requests, recorded from a real one: its 36 tools, its titles and tags, and an image in a chat."""

import json
from typing import Any

import httpx
import pytest

from tests.clients.conftest import PATIENCE, TIME, Model, calls, says
from tests.service.protocols.openai.recordings import recording

RECORDED = recording("open_webui")
TIMESTAMP = {"name": "get_current_timestamp", "arguments": "{}"}
"""One of its tools; it runs it itself."""


def post(base_url: str, kind: str, **changes: Any) -> httpx.Response:
    headers, body = RECORDED[kind]["headers"], RECORDED[kind]["body"] | changes
    return httpx.post(f"{base_url}/chat/completions", json=body, headers=headers, timeout=PATIENCE)


def deltas_of(answer: httpx.Response) -> list[dict[str, Any]]:
    """What the page reads of a stream."""
    assert answer.status_code == 200, answer.text
    lines = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: {")]
    return [choice["delta"] for line in lines for choice in json.loads(line)["choices"]]


def text_of(answer: httpx.Response) -> str:
    return "".join(each.get("content") or "" for each in deltas_of(answer))


def test_its_tools_do_not_hide_those_of_the_service(base_url: str, model: Model) -> None:
    model.plays(calls(TIME), says("现在五点。"))
    assert text_of(post(base_url, "chat")) == "现在五点。"
    own = [each["function"]["name"] for each in RECORDED["tools"]]
    offered = [each["function"]["name"] for each in model.requests[0].body["tools"]]
    assert len(own) == 36
    assert {TIME["name"], *own} <= set(offered)


@pytest.mark.parametrize("kind", ["title", "tags", "follow_ups"])
def test_its_tasks_are_answered_without_tools(kind: str, base_url: str, model: Model) -> None:
    model.plays(says("{}"))
    assert post(base_url, kind).json()["choices"][0]["message"]["content"] == "{}"
    assert "tools" not in model.requests[0].body


def test_a_chat_goes_on_after_its_own_tool_and_after_an_image(base_url: str, model: Model) -> None:
    def told(count: int) -> Any:
        text = json.dumps(RECORDED["conversation"]["body"]["messages"][:count])
        return json.loads(text.replace("CALL_ID", identifier))

    identifier = ""
    model.plays(calls(TIME, TIMESTAMP), says("That is 1795403800."), says("I see nothing."), says("In Rome it is ten."))
    (called,) = [
        each["tool_calls"]
        for each in deltas_of(post(base_url, "conversation", messages=told(3)))
        if "tool_calls" in each
    ]
    assert [each["function"] for each in called] == [TIMESTAMP]
    identifier = called[0]["id"]
    assert text_of(post(base_url, "conversation", messages=told(5))) == "That is 1795403800."
    assert text_of(post(base_url, "conversation", messages=told(7))) == "I see nothing."
    assert text_of(post(base_url, "conversation", messages=told(8))) == "In Rome it is ten."
    # In the later turn, too, the model sees what the service's own tool had found.
    names = [
        call["function"]["name"] for each in model.requests[-1].body["messages"] for call in each.get("tool_calls", ())
    ]
    assert names == [TIME["name"], TIMESTAMP["name"]]
    assert "[image left out]" in model.requests[-1].body["messages"][-2]["content"]
