"""POST /tools/{name}: one tool, run as a model's call would be, from its start to its end, and no model asked."""

import asyncio
from typing import Any

import httpx
import pytest

from tests.app.tools.examples.asking import SAID, calls
from tests.application import create_app
from tests.players.openai_player import OpenAIPlayer
from tests.service.api.assembled import assembled
from tests.service.api.sessions.conversing import JSON
from tests.service.api.tool_routes.folders.pottery import Yard
from tests.service.api.tool_routes.running import EVENTS, problem, streamed
from tests.service.server.watching import in_flight
from tests.serving import events_of, service
from tests.waiting import until


async def test_a_run_returns_an_entry_of_tool_calls_without_a_model_call(
    client: httpx.AsyncClient, nobody: OpenAIPlayer
) -> None:
    answer = await client.post("/tools/turnPots", json={"number": 2}, headers={"X-Request-ID": "r-1"})
    record = answer.json()
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert record.pop("id").startswith("run_")
    assert record.pop("duration_ms") >= 0
    assert record == {
        "name": "turnPots",
        "arguments": {"number": 2},
        "result": "turned 2",
        "outcome": "ok",
        "round": 1,
        "request_id": "r-1",
    }
    assert answer.headers["cache-control"] == "no-store"
    assert not {"x-chat-model", "x-finish-reason", "x-session-id"} & set(answer.headers)
    assert nobody.requests == []


async def test_a_stream_has_start_progress_and_end_and_the_same_document(client: httpx.AsyncClient) -> None:
    started, progress, finished, done = await streamed(client, "/tools/turnPots", {"number": 1})
    names = [each.name for each in (started, progress, finished, done)]
    assert names == ["tool_call_started", "tool_call_progress", "tool_call_finished", "done"]
    identifier = started.data["id"]
    assert progress.data == {"id": identifier, "name": "turnPots", "done": 1, "of": 1, "text": "pot 1", "round": 1}
    assert done.data == finished.data | {"request_id": done.data["request_id"]}


@pytest.mark.parametrize("accept", ["application/json", "*/*", "text/event-stream;q=0.1, application/json"])
async def test_json_is_the_default_unless_events_are_preferred(accept: str, client: httpx.AsyncClient) -> None:
    answer = await client.post("/tools/turnPots", json={"number": 1}, headers={"Accept": accept})
    assert answer.headers["content-type"] == "application/json"


async def test_a_form_that_there_is_not_is_refused(client: httpx.AsyncClient) -> None:
    answer = await client.post("/tools/turnPots", json={"number": 1}, headers={"Accept": "text/plain"})
    assert problem(answer) == (406, "not-acceptable")


async def test_without_a_body_there_are_no_arguments(client: httpx.AsyncClient) -> None:
    assert (await client.post("/tools/whose")).json()["arguments"] == {}


async def test_a_tool_receives_the_tenant_and_the_conversation_and_no_model_data(
    client: httpx.AsyncClient,
) -> None:
    plain = await client.post("/tools/whose")
    told = await client.post("/tools/whose?sessionId=s-1", headers={"X-Tenant-ID": "acme"})
    assert (plain.json()["result"], told.json()["result"]) == ("None None 1", "acme s-1 1")
    assert told.headers["x-session-id"] == "s-1"


async def test_a_todo_list_belongs_to_its_session(client: httpx.AsyncClient) -> None:
    items = [{"id": "1", "text": "clay", "status": "pending"}]
    await client.post("/tools/todoUpdate?sessionId=s-2", json={"items": items})
    assert (await client.get("/todo/s-2")).json()["items"] == items
    assert "clay" in (await client.post("/tools/todoRead?sessionId=s-2")).json()["result"]
    assert (await client.post("/tools/todoRead")).json()["error_kind"] == "no-conversation"


@pytest.mark.parametrize(
    ("name", "arguments", "kind"),
    [("crack", {"kind": "told"}, "crack"), ("crack", {"kind": "untold"}, "failed"), ("sleepLong", {}, "timeout")],
)
async def test_a_tools_failure_is_no_failure_of_http(
    name: str, arguments: Any, kind: str, client: httpx.AsyncClient
) -> None:
    answer = await client.post(f"/tools/{name}", json=arguments)
    record = answer.json()
    assert (answer.status_code, record["outcome"], record["error_kind"]) == (200, "error", kind)
    assert "secret" not in answer.text
    assert (await streamed(client, f"/tools/{name}", arguments))[-1].data["error_kind"] == kind


async def test_a_failure_that_ends_questions_ends_a_run_too() -> None:
    variables = {"CHAT_PROVIDER": "offline", "TOOL_THROW_EXCEPTION_ON_ERROR": "true"}
    async with service("tests.service.api.tool_routes.folders", **variables) as client:
        answer = await client.post("/tools/crack", json={"kind": "told"})
    assert problem(answer) == (502, "tool-failed")


async def test_equal_calls_share_a_cached_result(client: httpx.AsyncClient) -> None:
    calls: list[Any] = [{"pot": "vase"}, {"unit": "kg", "pot": "vase"}, {"pot": "bowl"}]
    first, again, other = [(await client.post("/tools/weigh", json=each)).json() for each in calls]
    assert "cached" not in first
    assert (again["result"], again["cached"]) == (first["result"], True)
    assert "cached" not in other


@pytest.mark.parametrize(
    ("name", "arguments", "fault"),
    [
        ("turnPots", {}, "number: Field required"),
        ("turnPots", {"number": 0}, "number: Input should be greater than or equal to 1"),
        ("turnPots", {"number": 1, "speed": 3}, "speed"),
        ("weigh", {"pot": "vase", "unit": "stone"}, "unit"),
        ("nest", {"pot": {"name": "amphora", "lids": [{"name": "x"}]}}, "pot.lids.0.name"),
        ("whose", {"context": {"values": {"tenantId": "victim"}}}, "context"),
    ],
)
async def test_invalid_arguments_are_rejected_with_the_error_that_a_model_receives(
    name: str, arguments: Any, fault: str, client: httpx.AsyncClient
) -> None:
    for form in ({}, EVENTS):
        answer = await client.post(f"/tools/{name}", json=arguments, headers=form)
        assert problem(answer) == (422, "validation")
        assert fault in answer.json()["detail"]


@pytest.mark.parametrize(
    ("body", "kind", "told"),
    [
        (b"{", "application/json", (400, "invalid-request")),
        (b'{"number": NaN}', "application/json", (400, "invalid-request")),
        (b'{"number": "\xff"}', "application/json", (400, "invalid-request")),
        (b'{"number": "\\ud800"}', "application/json", (422, "validation")),
        (b"[" * 30_000, "application/json", (400, "invalid-request")),
        (b"[1]", "application/json", (422, "validation")),
        (b"null", "application/json", (422, "validation")),
        (b'"x"', "application/json", (422, "validation")),
        (b"number=1", "application/x-www-form-urlencoded", (415, "unsupported-media-type")),
        (b'{"number": 1}', "text/plain", (415, "unsupported-media-type")),
        (b'{"number": 1}' + b" " * 400_000, "application/json", (413, "too-large")),
    ],
    ids=lambda given: repr(given)[:30],
)
async def test_a_body_that_is_no_object_is_refused(
    body: bytes, kind: str, told: tuple[int, str], client: httpx.AsyncClient
) -> None:
    answer = await client.post("/tools/turnPots", content=body, headers={"Content-Type": kind})
    assert problem(answer) == told


async def test_a_tool_that_is_not_there_is_not_found(client: httpx.AsyncClient) -> None:
    answer = await client.post("/tools/throwPot")
    assert problem(answer) == (404, "not-found")
    assert "turnPots" in answer.json()["detail"]


@pytest.mark.parametrize("name", ["openDoor", "open_window"])
async def test_a_tool_of_an_unconfigured_module_names_the_variable(name: str, client: httpx.AsyncClient) -> None:
    answer = await client.post(f"/tools/{name}")
    assert problem(answer) == (503, "not-configured")
    assert "LOCKED_API_KEY" in answer.json()["detail"]


@pytest.mark.parametrize(
    "path", ["whose?session_id=s-1", "whose?sessionId=a&sessionId=b", "whose?sessionId=a%20b", "whose?sessionId=chat"]
)
async def test_a_session_that_cannot_be_meant_is_refused(path: str, client: httpx.AsyncClient) -> None:
    assert problem(await client.post(f"/tools/{path}")) == (422, "validation")


async def test_a_run_counts_among_the_calls_of_its_conversation(nobody: OpenAIPlayer) -> None:
    variables = {"OPENAI_BASE_URL": nobody.base_url, "TOOL_MAX_CALLS_PER_SESSION": "1"}
    async with service("tests.service.api.tool_routes.folders", **variables) as client:
        runs = [(await client.post("/tools/whose?sessionId=s-1")).json() for _ in range(2)]
        elsewhere = (await client.post("/tools/whose")).json()
    assert [each["outcome"] for each in (*runs, elsewhere)] == ["ok", "error", "ok"]
    assert runs[1]["error_kind"] == "limit"


async def test_the_log_has_the_call(client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="toolchat.request")
    await client.post("/tools/crack", json={"kind": "told"})

    def lines() -> list[dict[str, Any]]:
        return [vars(each) for each in caplog.records if each.message == "request finished"]

    await until(lines)
    (call,) = lines()[-1]["tool_calls"]
    assert (call["name"], call["outcome"]) == ("crack", "crack")


async def test_progress_comes_while_the_tool_still_runs(client: httpx.AsyncClient, yard: Yard) -> None:
    body = ""
    async with client.stream("POST", "/tools/hang", headers=EVENTS) as answer:
        async for piece in answer.aiter_text():
            body += piece
            if "tool_call_progress" in body and not yard.door.is_set():
                assert (yard.hanging, yard.ended) == (1, 0)
                yard.door.set()
    names = [each.name for each in events_of(body)]
    assert names == ["tool_call_started", "tool_call_progress", "tool_call_finished", "done"]


async def test_a_thousand_reports_of_a_thread_are_few_events_and_the_last_is_among_them(
    client: httpx.AsyncClient,
) -> None:
    events = await streamed(client, "/tools/turnPots", {"number": 1000})
    told = [each.data["done"] for each in events if each.name == "tool_call_progress"]
    assert told[-1] == 1000
    assert told == sorted(set(told))
    assert len(told) <= 2 + 9 * events[-1].data["duration_ms"] / 1000


async def test_a_chat_stream_has_the_progress_of_its_tools() -> None:
    script = [calls(("turnPots", {"number": 3})), SAID]
    async with (
        OpenAIPlayer(script) as player,
        service("tests.service.api.tool_routes.folders", OPENAI_BASE_URL=player.base_url) as client,
    ):
        answer = await client.get("/pottery/chat-tool-function", headers=EVENTS)
    events = events_of(answer.text)
    names = list(dict.fromkeys(each.name for each in events))
    assert names == ["tool_call_started", "tool_call_progress", "tool_call_finished", "delta", "usage", "done"]
    reports = [each.data for each in events if each.name == "tool_call_progress"]
    assert (reports[-1]["done"], reports[-1]["of"], reports[-1]["round"]) == (3, 3, 1)


async def test_a_client_that_disconnects_cancels_the_tool(client: httpx.AsyncClient, yard: Yard) -> None:
    leaving = [asyncio.create_task(client.post("/tools/hang", headers=form)) for form in (EVENTS, JSON)]
    await until(lambda: yard.hanging == 2)
    for each in leaving:
        each.cancel()
    await until(lambda: yard.ended == 2)

    async def is_over() -> bool:
        return await in_flight(client) == 0

    await until(is_over)


async def test_a_run_waits_for_the_question_of_its_session_or_is_refused(yard: Yard) -> None:
    variables = {"CHAT_PROVIDER": "offline", "SESSION_WAIT": "0.1"}
    async with service("tests.service.api.tool_routes.folders", **variables) as client:
        first = asyncio.create_task(client.post("/tools/hang?sessionId=s-1"))
        await until(lambda: yard.hanging)
        second = await client.post("/tools/whose?sessionId=s-1")
        elsewhere = await client.post("/tools/whose?sessionId=s-2")
        yard.door.set()
        assert (await first).status_code == 200
    assert problem(second) == (409, "session-busy")
    assert elsewhere.status_code == 200


async def test_a_run_takes_a_place_as_a_question_does(yard: Yard) -> None:
    async with service("tests.service.api.tool_routes.folders", CHAT_PROVIDER="offline", MAX_QUESTIONS="1") as client:
        first = asyncio.create_task(client.post("/tools/hang"))
        await until(lambda: yard.hanging)
        refused = [await client.post("/tools/whose", headers=form) for form in (EVENTS, JSON)]
        yard.door.set()
        assert (await first).status_code == 200
    assert [problem(each) for each in refused] == [(503, "overloaded")] * 2


@pytest.mark.slow
@pytest.mark.usefixtures("yard")
async def test_a_run_ends_with_the_time_of_its_request() -> None:
    async with service(
        "tests.service.api.tool_routes.folders", CHAT_PROVIDER="offline", REQUEST_TIMEOUT="0.5"
    ) as client:
        late = await client.post("/tools/hang")
        events = await streamed(client, "/tools/hang")
    assert problem(late) == (504, "deadline")
    assert [each.name for each in events] == ["tool_call_started", "tool_call_progress", "error"]
    assert events[-1].data["code"] == "deadline"


async def test_a_service_that_stops_runs_nothing_more() -> None:
    app = create_app()
    async with assembled(app) as client:
        app.state.service.admission.draining = True
        refused = [await client.post("/tools/todoRead", headers=form) for form in (EVENTS, JSON)]
    assert [problem(each) for each in refused] == [(503, "draining")] * 2


async def test_a_stream_that_a_browser_reconnects_to_runs_nothing(client: httpx.AsyncClient, yard: Yard) -> None:
    answer = await client.post("/tools/hang", headers=EVENTS | {"Last-Event-ID": "r-1"})
    assert (answer.status_code, yard.ended) == (204, 0)
