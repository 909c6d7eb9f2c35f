"""The chat model is dead, slow, lying or cut: the client learns the truth in the form that it asked for."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import NamedTuple

import httpx
import pytest

from tests.players.openai_player import Answer, OpenAIPlayer, body, delta, message, sse, whole
from tests.serving import events_of, service
from tests.waiting import until
from toolchat.errors import ToolchatError

EVENTS = {"Accept": "text/event-stream"}
ONCE = {"MODEL_MAX_ATTEMPTS": "1"}
SECRET = "sk-canary-1234567890"

FAULTS = [
    (body(b"<html>Bad Gateway</html>", 502, Content_Type="text/html"), 502, "upstream-unavailable", True),
    (body(b"<html>hello</html>", Content_Type="text/html"), 502, "upstream-invalid", False),
    (body(b""), 502, "upstream-invalid", True),
    (whole({"error": {"message": "bad key " + SECRET, "code": "invalid_api_key"}}, 401), 503, "provider-auth", False),
    (whole({"error": {"message": "x", "code": "insufficient_quota"}}, 429), 503, "provider-quota", False),
    (
        whole({"error": {"message": "slow down", "code": "rate_limit_exceeded"}}, 429),
        503,
        "provider-rate-limited",
        True,
    ),
    (whole({"error": {"message": "x", "code": "context_length_exceeded"}}, 400), 422, "context-too-long", False),
    (whole({"error": {"message": "x", "code": "data_inspection_failed"}}, 400), 422, "content-filtered", False),
    (whole({"error": {"message": "x", "code": "model_not_found"}}, 404), 503, "not-configured", False),
    (whole({"error": {"message": "x"}}, 500), 502, "upstream-unavailable", True),
    (whole(message(content="")), 502, "upstream-invalid", True),
    (Answer(ending="cut", headers={"Content-Type": "application/json"}), 502, "upstream-invalid", True),
]


class Replay(NamedTuple):
    """A service that the tests of this module share; its model gives the answers of a list, which they fill."""

    client: httpx.AsyncClient
    answers: list[Answer]


@asynccontextmanager
async def replayed(**variables: str) -> AsyncGenerator[Replay, None]:
    answers: list[Answer] = []
    async with (
        OpenAIPlayer(lambda _: answers.pop(0)) as player,
        service(OPENAI_BASE_URL=player.base_url, BREAKER_FAILURES="0", **variables) as client,
    ):
        yield Replay(client, answers)


@pytest.fixture(scope="module")
async def trying_once() -> AsyncGenerator[Replay, None]:
    async with replayed(OPENAI_API_KEY=SECRET, **ONCE) as shared:
        yield shared


@pytest.fixture(scope="module")
async def trying_again() -> AsyncGenerator[Replay, None]:
    async with replayed() as shared:
        yield shared


@pytest.mark.parametrize("headers", [{}, EVENTS], ids=["whole", "stream"])
@pytest.mark.parametrize(("fault", "status", "code", "retryable"), FAULTS)
async def test_a_fault_before_the_first_byte_has_its_own_status_and_code(
    fault: Answer,
    status: int,
    code: str,
    retryable: bool,
    headers: dict[str, str],
    trying_once: Replay,
    caplog: pytest.LogCaptureFixture,
) -> None:
    trying_once.answers[:] = [fault]
    answer = await trying_once.client.get("/time/chat", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.json()["retryable"] is retryable
    assert ("retry-after" in answer.headers) is (status == 503 and retryable)
    assert SECRET not in answer.text
    assert "<html>" not in answer.text
    logged = [vars(each) for each in caplog.records if each.levelname == "WARNING"]
    assert [(each["status"], each["outcome"]) for each in logged] == ([] if status < 500 else [(status, code)])
    assert SECRET not in caplog.text


async def test_the_log_says_what_the_provider_answered_and_who_asked(
    trying_again: Replay, caplog: pytest.LogCaptureFixture
) -> None:
    trying_again.answers[:] = [whole({"error": {"message": SECRET, "code": "internal_error"}}, 500)] * 3
    answer = await trying_again.client.get("/time/chat")
    [line] = [vars(each) for each in caplog.records if each.levelname == "WARNING"]
    expected = {
        "route": "/time/chat",
        "detail": answer.json()["detail"],
        "provider": "openai_compatible",
        "model": "gpt-4o-mini",
        "upstream_status": 500,
        "provider_code": "internal_error",
        "retries": 2,
        "client": "127.0.0.1",
    }
    assert {name: line.get(name) for name in expected} == expected


async def test_a_question_of_an_open_circuit_may_be_asked_again_after_its_pause() -> None:
    async with (
        OpenAIPlayer(lambda _: whole({"error": {}}, 500)) as player,
        service(OPENAI_BASE_URL=player.base_url, BREAKER_FAILURES="1", **ONCE) as client,
    ):
        answers = [await client.get("/time/chat") for _ in range(2)]
    assert [(each.status_code, each.headers.get("retry-after")) for each in answers] == [(502, None), (502, "10")]


@pytest.mark.parametrize("headers", [{}, EVENTS], ids=["whole", "stream"])
async def test_a_silent_upstream_is_a_timeout(headers: dict[str, str]) -> None:
    async with OpenAIPlayer([Answer(ending="hang")]) as player:
        async with service(OPENAI_BASE_URL=player.base_url, MODEL_TIMEOUT="0.3", **ONCE) as client:
            answer = await client.get("/time/chat", headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (504, "upstream-timeout")
        await until(player.aborted.is_set)


async def test_the_whole_question_has_a_deadline() -> None:
    async with OpenAIPlayer([Answer(ending="hang")]) as player:
        async with service(OPENAI_BASE_URL=player.base_url, REQUEST_TIMEOUT="0.2") as client:
            answer = await client.get("/time/chat")
        assert (answer.status_code, answer.json()["code"]) == (504, "deadline")


@pytest.mark.parametrize(
    ("rest", "code", "variables"),
    [
        (sse(delta(content="half"), done=False), "upstream-invalid", {}),
        (sse(delta(content="half"), done=False, ending="cut"), "upstream-invalid", {}),
        (sse(delta(content="half"), done=False, ending="hang"), "upstream-timeout", {"MODEL_TIMEOUT": "1"}),
        (
            sse(delta(content="half"), {"error": {"message": "x", "code": "rate_limit_exceeded"}}),
            "provider-rate-limited",
            {},
        ),
    ],
)
async def test_a_fault_after_the_first_byte_is_an_error_event_and_there_is_no_done(
    rest: Answer, code: str, variables: dict[str, str]
) -> None:
    async with OpenAIPlayer([rest]) as player, service(OPENAI_BASE_URL=player.base_url, **ONCE, **variables) as client:
        answer = await client.get("/time/chat", headers=EVENTS)
    assert answer.status_code == 200
    events = events_of(answer.text)
    assert [event.name for event in events] == ["delta", "error"]
    assert events[-1].data["code"] == code
    assert events[-1].data["request_id"] == answer.headers["x-request-id"]


@pytest.mark.parametrize("headers", [{}, EVENTS], ids=["whole", "stream"])
@pytest.mark.parametrize(
    "garbled", [body(b'{"mess', Content_Type="application/json"), sse(b"data: {no json\n\n"), sse(done=False)]
)
async def test_an_answer_that_cannot_be_read_is_requested_again(
    garbled: Answer, headers: dict[str, str], trying_again: Replay
) -> None:
    trying_again.answers[:] = [garbled, whole(message(content="again"))]
    answer = await trying_again.client.get("/time/chat", headers=headers)
    assert (answer.status_code, "again" in answer.text, trying_again.answers) == (200, True, [])


def asks(*calls: tuple[str, str]) -> Answer:
    named = [{"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": text}}
             for n, (name, text) in enumerate(calls)]  # fmt: skip
    return whole(message("tool_calls", content=None, tool_calls=named))


async def test_different_calls_for_ever_end_in_an_error() -> None:
    script = [asks(("getCityTimeFunction", f'{{"timeZoneId": "UTC+{n % 14}"}}')) for n in range(20)]
    async with OpenAIPlayer(script) as player, service(OPENAI_BASE_URL=player.base_url, TOOL_MAX_ROUNDS="4") as client:
        answer = await client.get("/time/chat-tool-function")
    assert (answer.status_code, answer.json()["code"]) == (502, "tool-loop")
    assert ["tools" in each.body for each in player.requests] == [True] * 5 + [False]


def test_every_error_has_a_code_and_a_status_of_its_own_kind() -> None:
    pending, codes = [ToolchatError], []
    while pending:
        kind = pending.pop()
        pending += kind.__subclasses__()
        codes.append((kind.code, kind.status))
        assert 400 <= kind.status < 600
    assert len(codes) == len(set(codes))
