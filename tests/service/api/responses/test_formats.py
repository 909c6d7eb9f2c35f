"""A form of answers is one class and one entry in a list: negotiated, documented, streamed, and told its errors."""

from typing import ClassVar

import pytest
from fastapi import FastAPI, Response

from tests.application import create_app
from tests.chat.played import says, turns
from tests.players.openai_player import OpenAIPlayer, body, delta, finish, sse
from tests.service.api.assembled import assembled
from toolchat.chat.request import ChatEvent
from toolchat.errors import ToolchatError
from toolchat.models.base import ChatResponse, TextDelta
from toolchat.service.api.responses.active_request import ActiveRequest
from toolchat.service.api.responses.event_stream import ANSWER_FORMATS, StreamFormat, StreamWriter
from toolchat.service.api.responses.formats import BufferedFormat


class Loud(BufferedFormat):
    """A throw-away form: the answer in capitals, errors as well."""

    media_type = "text/x-loud"
    documentation: ClassVar = {"schema": {"type": "string"}}

    def render(self, active: ActiveRequest, response: ChatResponse) -> bytes:
        return response.message.text.upper().encode()

    def error_response(self, error: ToolchatError, request_id: str) -> Response:
        return Response(error.code.upper(), error.status, media_type=self.media_type)


class LineWriter(StreamWriter):
    def __init__(self, active: ActiveRequest) -> None:
        super().__init__(active)
        self.lines = 0

    def event(self, event: ChatEvent) -> bytes:
        if not isinstance(event, TextDelta):
            return b""
        self.lines += 1
        return b"%d %b\n" % (self.lines, event.text.encode())

    def done(self, response: ChatResponse) -> bytes:
        return b"end after %d lines\n" % self.lines

    def on_error(self, error: ToolchatError) -> bytes:
        return b"broken: %b\n" % error.code.encode()


class Lines(StreamFormat):
    """A throw-away form: numbered lines, as they come."""

    media_type = "text/x-lines"
    documentation: ClassVar = {"schema": {"type": "string"}}
    writer = LineWriter


FORMATS = (*ANSWER_FORMATS, Loud(), Lines())


def application(monkeypatch: pytest.MonkeyPatch, player: OpenAIPlayer) -> FastAPI:
    monkeypatch.setenv("OPENAI_BASE_URL", player.base_url)
    return create_app(answer_formats=FORMATS)


async def test_a_new_form_is_chosen_by_accept(monkeypatch: pytest.MonkeyPatch) -> None:
    async with OpenAIPlayer(turns(says("quiet"))) as player, assembled(application(monkeypatch, player)) as client:
        answer = await client.get("/time/chat", headers={"Accept": "text/x-loud"})
    assert (answer.status_code, answer.text) == (200, "QUIET")
    assert answer.headers["content-type"].startswith("text/x-loud")


async def test_a_new_stream_format_writes_its_events_and_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    script = [sse(delta(content="one"), delta(content="two"), finish("stop"))]
    async with OpenAIPlayer(script) as player, assembled(application(monkeypatch, player)) as client:
        answer = await client.get("/time/chat", headers={"Accept": "text/x-lines"})
    assert answer.text == "1 one\n2 two\nend after 2 lines\n"


async def test_a_new_format_has_its_own_error_response_before_the_first_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    async with OpenAIPlayer([body(b"{}", 401)]) as player, assembled(application(monkeypatch, player)) as client:
        answer = await client.get("/time/chat", headers={"Accept": "text/x-loud"})
    assert (answer.status_code, answer.text) == (503, "PROVIDER-AUTH")


async def test_a_form_without_words_of_its_own_answers_an_error_by_a_problem_document(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with OpenAIPlayer([body(b"{}", 401)]) as player, assembled(application(monkeypatch, player)) as client:
        answer = await client.get("/time/chat", headers={"Accept": "text/x-lines"})
    assert (answer.status_code, answer.json()["code"]) == (503, "provider-auth")


async def test_a_new_format_has_its_own_error_event_after_the_first_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    script = [sse(delta(content="one"), done=False, ending="cut")]
    async with OpenAIPlayer(script) as player, assembled(application(monkeypatch, player)) as client:
        answer = await client.get("/time/chat", headers={"Accept": "text/x-lines"})
    assert (answer.status_code, answer.text) == (200, "1 one\nbroken: upstream-invalid\n")


def test_a_new_form_is_documented_for_every_question_and_typed_json_comes_first() -> None:
    paths = create_app(answer_formats=FORMATS).openapi()["paths"]
    for path in ("/time/chat", "/chat", "/todo/chat", "/tool/control"):
        assert list(paths[path]["get"]["responses"]["200"]["content"]) == [
            "application/json",
            "text/plain",
            "text/event-stream",
            "text/x-loud",
            "text/x-lines",
        ]
