"""Runs that take their time: progress as it comes, clients who leave, a service that is full, late or stopping."""

import asyncio

import httpx
import pytest

from tests.api.assembled import assembled
from tests.application import create_app
from tests.manual_execution.folders.pottery import Yard
from tests.manual_execution.running import EVENTS, problem, streamed
from tests.players.openai_player import OpenAIPlayer
from tests.server.watching import in_flight
from tests.serving import events_of, service
from tests.sessions.conversing import JSON
from tests.tools.examples.asking import SAID, calls
from tests.waiting import until


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
        service("tests.manual_execution.folders", OPENAI_BASE_URL=player.base_url) as client,
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
    async with service("tests.manual_execution.folders", **variables) as client:
        first = asyncio.create_task(client.post("/tools/hang?sessionId=s-1"))
        await until(lambda: yard.hanging)
        second = await client.post("/tools/whose?sessionId=s-1")
        elsewhere = await client.post("/tools/whose?sessionId=s-2")
        yard.door.set()
        assert (await first).status_code == 200
    assert problem(second) == (409, "session-busy")
    assert elsewhere.status_code == 200


async def test_a_run_takes_a_place_as_a_question_does(yard: Yard) -> None:
    async with service("tests.manual_execution.folders", CHAT_PROVIDER="offline", MAX_QUESTIONS="1") as client:
        first = asyncio.create_task(client.post("/tools/hang"))
        await until(lambda: yard.hanging)
        refused = [await client.post("/tools/whose", headers=form) for form in (EVENTS, JSON)]
        yard.door.set()
        assert (await first).status_code == 200
    assert [problem(each) for each in refused] == [(503, "overloaded")] * 2


@pytest.mark.slow
@pytest.mark.usefixtures("yard")
async def test_a_run_ends_with_the_time_of_its_request() -> None:
    async with service("tests.manual_execution.folders", CHAT_PROVIDER="offline", REQUEST_TIMEOUT="0.5") as client:
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
