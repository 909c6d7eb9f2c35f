"""The chat model is dead, slow, lying or cut: the client learns the truth in the form that it asked for."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import NamedTuple

import httpx
import pytest

from tests.players.openai_player import Answer, OpenAIPlayer, body, delta, message, sse, whole
from tests.ports import silent_port
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
    expected = [] if status < 500 else [(status, code, answer.json()["detail"], "openai_compatible", "gpt-4o-mini")]
    said = ("status", "outcome", "detail", "provider", "model")
    assert [tuple(each[name] for name in said) for each in logged] == expected
    assert SECRET not in caplog.text


@pytest.mark.parametrize("headers", [{}, EVENTS], ids=["whole", "stream"])
async def test_the_log_says_what_the_provider_answered_and_who_asked(
    headers: dict[str, str], trying_again: Replay, caplog: pytest.LogCaptureFixture
) -> None:
    fault = whole({"error": {"message": SECRET, "code": "internal_error"}}, 500)
    trying_again.answers[:] = [fault] * 3
    answer = await trying_again.client.get("/time/chat", headers=headers)
    [line] = [vars(each) for each in caplog.records if each.levelname == "WARNING"]
    expected = {
        "request_id": None,
        "route": "/time/chat",
        "detail": answer.json()["detail"],
        "upstream_status": 500,
        "provider_code": "internal_error",
        "retries": 2,
        "tokens": 0,
        "worker": os.getpid(),
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
async def test_a_dead_upstream_is_reported_quickly(headers: dict[str, str]) -> None:
    with silent_port() as port:
        async with service(OPENAI_BASE_URL=f"http://127.0.0.1:{port}/v1", **ONCE) as client:
            answer = await client.get("/time/chat", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (502, "upstream-unavailable")


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


async def test_a_rate_limit_is_waited_out_and_the_answer_comes() -> None:
    busy = whole({"error": {"message": "x", "code": "rate_limit_exceeded"}}, 429)
    script = [busy, busy, whole(message(content="at last"))]
    async with OpenAIPlayer(script) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        answer = await client.get("/time/chat")
    assert answer.text == "at last"
    assert len(player.requests) == 3


async def test_a_lost_connection_is_tried_again() -> None:
    script = [Answer(ending="reset"), whole(message(content="again"))]
    async with OpenAIPlayer(script) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        answer = await client.get("/time/chat")
    assert answer.text == "again"


@pytest.mark.parametrize("headers", [{}, EVENTS], ids=["whole", "stream"])
@pytest.mark.parametrize(
    "garbled",
    [
        body(b'{"choices": [{"mess', Content_Type="application/json"),
        body(b"\x00\xff\x17", Content_Type="application/json"),
        body(b""),
        sse(b"data: {no json\n\n"),
        sse(b"data: \xff\xff\n\n"),
        sse(done=False),
    ],
    ids=["half", "bytes", "nothing", "event", "no text", "no end"],
)
async def test_an_answer_with_invalid_json_is_requested_again(
    garbled: Answer, headers: dict[str, str], trying_again: Replay
) -> None:
    trying_again.answers[:] = [garbled, whole(message(content="again"))]
    answer = await trying_again.client.get("/time/chat", headers=headers)
    assert answer.status_code == 200
    assert "again" in answer.text
    assert trying_again.answers == []


def asks(*calls: tuple[str, str]) -> Answer:
    named = [{"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": text}}
             for n, (name, text) in enumerate(calls)]  # fmt: skip
    return whole(message("tool_calls", content=None, tool_calls=named))


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (("inventedTool", "{}"), "unknown-tool"),
        (("getCityTimeFunction", '{"zone": 1}'), "invalid-arguments"),
        (("getCityTimeFunction", '{"timeZoneId": "Mars/Olympus"}'), "unknown-time-zone"),
        (("getCityTimeFunction", '{"timeZoneId": '), "invalid-arguments"),
    ],
)
async def test_a_bad_call_is_answered_to_the_model_which_then_answers_the_user(
    call: tuple[str, str], kind: str
) -> None:
    script = [asks(call), whole(message(content="The look-up failed."))]
    async with OpenAIPlayer(script) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        answer = await client.get("/time/chat-tool-function", headers={"Accept": "application/json"})
    assert answer.json()["answer"] == "The look-up failed."
    assert answer.json()["tool_calls"][0]["error_kind"] == kind
    told = player.requests[1].body["messages"][-1]
    assert told["role"] == "tool"
    assert kind in told["content"]


async def test_the_same_call_for_ever_ends_in_an_answer() -> None:
    call = asks(("getCityTimeFunction", '{"timeZoneId": "UTC"}'))
    script = [call] * 4 + [whole(message(content="It is noon."))]
    async with OpenAIPlayer(script) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        answer = await client.get("/time/chat-tool-function")
    assert answer.text == "It is noon."
    assert player.requests[-1].body["tool_choice"] == "none"


async def test_different_calls_for_ever_end_in_an_error() -> None:
    script = [asks(("getCityTimeFunction", f'{{"timeZoneId": "UTC+{n % 14}"}}')) for n in range(20)]
    async with OpenAIPlayer(script) as player, service(OPENAI_BASE_URL=player.base_url, TOOL_MAX_ROUNDS="4") as client:
        answer = await client.get("/time/chat-tool-function")
    assert (answer.status_code, answer.json()["code"]) == (502, "tool-loop")
    assert ["tools" in each.body for each in player.requests] == [True] * 5 + [False]


@pytest.mark.parametrize("headers", [{}, EVENTS], ids=["whole", "stream"])
async def test_a_client_that_disconnects_cancels_the_model_call(headers: dict[str, str]) -> None:
    script = [sse(delta(content="a"), done=False, ending="hang") if headers else Answer(ending="hang")]
    async with OpenAIPlayer(script) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        leaving = asyncio.create_task(client.get("/time/chat", headers=headers))
        await until(player.asked.is_set)
        leaving.cancel()
        await until(player.aborted.is_set)
        assert (await client.get("/health/live")).status_code == 200


def test_every_error_has_a_code_and_a_status_of_its_own_kind() -> None:
    pending, codes = [ToolchatError], []
    while pending:
        kind = pending.pop()
        pending += kind.__subclasses__()
        codes.append((kind.code, kind.status))
        assert 400 <= kind.status < 600
    assert len(codes) == len(set(codes))


@pytest.mark.parametrize("headers", [{}, EVENTS], ids=["whole", "stream"])
async def test_a_page_at_a_wrong_address_is_not_requested_again(headers: dict[str, str], trying_again: Replay) -> None:
    page, unused = body(b"<html>hello</html>", Content_Type="text/html"), whole(message(content="again"))
    trying_again.answers[:] = [page, unused]
    answer = await trying_again.client.get("/time/chat", headers=headers)
    assert (answer.status_code, answer.json()["retryable"]) == (502, False)
    assert "check OPENAI_BASE_URL" in answer.json()["detail"]
    assert trying_again.answers == [unused]
