"""Errors for pages: a problem document with a status before the first byte, and an event after it."""

from typing import Any

import httpx
import pytest

from tests.players.openai_player import body, delta, sse
from tests.protocols.ag_ui.asking import ROLL, RUN, events_of, played, says, sent, user
from toolchat.service.protocols.ag_ui.routes import AG_UI
from toolchat.service.settings.service_settings import Tuning

FILE = {"type": "document", "source": {"type": "data", "value": "AA==", "mimeType": "application/pdf"}}
PDF = {"type": "binary", "mimeType": "application/pdf", "data": "AA=="}
SVG = {"type": "image", "source": {"type": "data", "value": "AA==", "mimeType": "image/svg+xml"}}
CALLED = {"id": "", "type": "function", "function": {"name": "look", "arguments": "{}"}}
ENTRY = {"interruptId": "x/y", "status": "resolved"}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"messages": []}, "messages: none has a text"),
        ({"messages": None}, "messages: "),
        ({"messages": [user(" ")]}, "messages[0].content: must not be blank"),
        ({"messages": [user([FILE])]}, "messages[0].content[0]: document is not supported"),
        ({"messages": [user([PDF])]}, "messages[0].content[0]: binary is not supported"),
        ({"messages": [user([{"type": "text", "text": "?"}, PDF])]}, "messages[0].content[1]: binary is not supported"),
        ({"messages": [user([SVG])]}, "messages[0].content[0]: image is not supported"),
        ({"messages": [{"id": "m", "role": "robot", "content": "?"}]}, "messages[0].role: "),
        ({"messages": [user("?"), {"role": "assistant", "toolCalls": [CALLED]}]}, "messages[1].toolCalls[0].id: "),
        ({"messages": [user("?")] * 4097}, "messages: "),
        ({"threadId": None}, "threadId: "),
        ({"tools": [ROLL, ROLL]}, "tools: the name roll occurs twice"),
        ({"tools": [ROLL | {"name": "a b"}]}, "tools[0].name: "),
        ({"context": [{"description": "x"}]}, "context[0].value: "),
        ({"resume": [ENTRY]}, "resume: a resolved interrupt needs a payload"),
        ({"resume": [ENTRY | {"payload": {"approved": "yes"}}]}, "resume[0].payload.approved: "),
        (
            {"resume": [{"interruptId": each, "status": "cancelled"} for each in ("a/b", "c/d")], "messages": []},
            "decide about the calls of one answer only",
        ),
    ],
)
async def test_an_invalid_request_gets_400_with_the_field(
    fields: dict[str, Any], words: str, offline: httpx.AsyncClient
) -> None:
    answer = await sent(offline, **{"messages": [user("?")], **fields})
    assert (answer.status_code, answer.headers["content-type"]) == (400, "application/problem+json")
    assert answer.json()["detail"].startswith(words)
    assert answer.json()["code"] == "invalid-request"


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 100_000, b"null"])
async def test_a_malformed_body_gets_400(content: bytes, offline: httpx.AsyncClient) -> None:
    headers = {"Content-Type": "application/json"}
    assert (await offline.post(RUN, content=content, headers=headers)).status_code == 400


@pytest.mark.parametrize("identifier", ["", "x", "x/", "/call_1", "../../x/call_1", "\u0000/\u0000", "字" * 500])
async def test_an_unknown_interrupt_is_rejected(identifier: str, offline: httpx.AsyncClient) -> None:
    entry = {"interruptId": identifier, "status": "resolved", "payload": {"approved": True}}
    assert (await sent(offline, user("?"), resume=[entry])).status_code == 404


async def test_a_page_of_another_site_gets_403(offline: httpx.AsyncClient) -> None:
    answer = await sent(offline, user("?"), headers={"Sec-Fetch-Site": "cross-site"})
    assert (answer.status_code, answer.json()["code"]) == (403, "cross-site")


async def test_an_error_before_the_first_byte_has_its_status() -> None:
    async with played([body(b"{}", 500)]) as (client, _):
        answer = await sent(client, user("?"))
    assert (answer.status_code, answer.headers["content-type"]) == (502, "application/problem+json")


async def test_an_error_during_the_stream_is_its_last_event() -> None:
    async with played([sse(delta(content="Hel"), done=False, ending="cut")]) as (client, _):
        last = events_of(await sent(client, user("?")))[-1]
    assert (last["type"], last["code"]) == ("RUN_ERROR", "upstream-invalid")
    assert last["message"]


async def test_a_run_begins_although_the_model_is_silent() -> None:
    hangs = sse(done=False, ending="hang")
    async with played([hangs], Tuning(stream_keep_alive=0.05), REQUEST_TIMEOUT="1") as (client, _):
        answer = await sent(client, user("?"))
    assert ": keep-alive\n\n" in answer.text
    assert [each["type"] for each in events_of(answer)] == ["RUN_STARTED", "RUN_ERROR"]


async def test_a_long_conversation_is_accepted_and_a_longer_one_rejected() -> None:
    async with played([says("ok")]) as (client, _):
        events_of(await sent(client, user("字" * 200_000)))
        answer = await client.post(RUN, content=b" " * (AG_UI.max_body_bytes + 1))
    assert (answer.status_code, answer.headers["content-type"]) == (413, "application/problem+json")
