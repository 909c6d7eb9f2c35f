"""The service is told to stop: probes and new questions hear so at once, running ones are answered or told."""

import asyncio
import signal
import socket
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
from pydantic_core import from_json

from tests.command_line import started
from tests.players.openai_player import delta, event
from tests.service.server.paced_model import Flood, PacedModel, Piece, calls, text
from tests.service.server.raw_client import EVENTS, RawClient, connected
from tests.service.server.strict_sse import SentEvent, body_of, read_events
from tests.serving import client_of
from tests.waiting import PATIENCE, until

WORDS = [f"word{number} " for number in range(30)]


def by_query(body: Mapping[str, Any]) -> Sequence[Piece]:
    """Play a model that never ends: silent at once, silent after a word, or waiting for a tool."""
    question = body["messages"][-1]["content"]
    if question == "silent":
        return text(["never"], first=3600)
    if question == "tool":
        return calls("getWeatherFunction", {"city": "Paris", "days": 1})
    return text(["begun"], ends=False)


async def told(url: str, path: str) -> httpx.Response:
    """Ask on a connection of its own."""
    async with client_of(url) as client:
        return await client.get(path, headers={"Accept": "application/json"})


async def not_ready_any_more(url: str) -> httpx.Response:
    """Probe until the signal, which is on its way, has arrived; gives the first answer that says so."""
    async with asyncio.timeout(PATIENCE):
        while (answer := await told(url, "/health/ready")).status_code == 200:
            pass
    return answer


def events_of(answer: bytes) -> list[SentEvent]:
    """The events of a whole answer that must be in order to its last byte."""
    assert answer.startswith(b"HTTP/1.1 200 ")
    return read_events(body_of(answer))


async def test_running_streams_are_finished_while_everybody_else_hears_that_the_service_stops(tmp_path: Path) -> None:
    async with PacedModel(text(WORDS)) as model:
        model.gate.clear()
        variables = {"OPENAI_BASE_URL": model.base_url, "LOG_LEVEL": "ERROR"}
        with started(cwd=tmp_path, **variables) as (process, url):
            async with connected(url, 50) as streams, RawClient(url) as kept:
                await kept.ask("/health/ready")
                await kept.read_until(b'"status":"ok"')
                for each in streams:
                    await each.ask("/time/chat")
                    await each.read_until(b"event: delta")
                reading = asyncio.gather(*(each.read_to_end() for each in streams))
                process.send_signal(signal.SIGTERM)
                refusals = [await not_ready_any_more(url), await told(url, "/time/chat")]
                await kept.ask("/time/chat")
                assert b'"code":"draining"' in await kept.read_to_end()
                alive = await told(url, "/health/live")
                assert (alive.status_code, alive.headers["connection"]) == (200, "close")
                model.gate.set()
                answers = await reading
                await asyncio.to_thread(process.wait, PATIENCE)
    for answer in refusals:
        assert (answer.status_code, answer.json()["code"]) == (503, "draining")
        assert (answer.headers["connection"], answer.headers["retry-after"]) == ("close", "1")
    for events in map(events_of, answers):
        assert (events[-1].name, from_json(events[-1].data)["answer"]) == ("done", "".join(WORDS))
    assert (model.asked, model.finished) == (50, 50)
    assert process.returncode == 0


async def test_streams_that_outlast_the_shutdown_timeout_end_with_an_error(tmp_path: Path) -> None:
    weather = PacedModel(text(["never"], first=3600))
    async with weather, PacedModel(by_query) as model:
        variables = {"OPENAI_BASE_URL": model.base_url, "WEATHER_BASE_URL": weather.base_url, "WEATHER_API_KEY": "key"}
        with started(cwd=tmp_path, LOG_LEVEL="ERROR", SHUTDOWN_TIMEOUT="1", **variables) as (process, url):
            async with connected(url, 45) as clients:
                silent, begun, running = clients[:15], clients[15:30], clients[30:]
                await asyncio.gather(
                    *(
                        each.ask("/time/chat?query=silent", form)
                        for each, form in zip(silent, cycle((EVENTS, "application/json")))
                    )
                )
                await asyncio.gather(*(each.ask("/time/chat?query=begun") for each in begun))
                await asyncio.gather(*(each.ask("/weather/chat-tool-function?query=tool") for each in running))
                await asyncio.gather(*(each.read_until(b"\ndata: ") for each in begun + running))
                await until(lambda: model.asked == 45 and weather.asked > 0)
                process.send_signal(signal.SIGTERM)
                answers = await asyncio.gather(*(each.read_to_end() for each in clients))
                await asyncio.to_thread(process.wait, PATIENCE)
        await until(lambda: (model.writing, weather.writing) == (0, 0))
    for answer in answers[:15]:
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"\r\nretry-after: 1\r\n" in answer
        assert b'"code":"draining"' in answer
    for events in map(events_of, answers[15:]):
        assert (events[-1].name, from_json(events[-1].data)["code"]) == ("error", "draining")
    assert process.returncode == 0


async def test_a_service_that_does_nothing_stops_at_once(tmp_path: Path) -> None:
    with started(cwd=tmp_path, SHUTDOWN_TIMEOUT="3600") as (process, url):
        async with RawClient(url) as idle:
            await idle.ask("/health/live", EVENTS)
            await idle.read_until(b"ok")
            process.send_signal(signal.SIGTERM)
            await asyncio.to_thread(process.wait, PATIENCE)
    assert process.returncode == 0


async def test_requests_on_open_connections_are_answered_although_the_service_has_stopped_listening(
    tmp_path: Path,
) -> None:
    with started(cwd=tmp_path, LOG_LEVEL="ERROR") as (process, url):
        async with RawClient(url) as kept, RawClient(url) as new:
            await kept.ask("/health/live")
            await kept.read_until(b"ok")
            await kept.send(b"GET /health/live HTTP/1.1\r\n")
            process.send_signal(signal.SIGTERM)
            await until(partial(is_refused, url))
            await kept.send(b"Host: 127.0.0.1\r\n\r\n")
            await new.ask("/health/live")
            answers = [await kept.read_to_end(), await new.read_to_end()]
            await asyncio.to_thread(process.wait, PATIENCE)
    assert [answer.count(b"HTTP/1.1 200 ") for answer in answers] == [2, 1]
    assert all(b"connection: close" in answer for answer in answers)


def is_refused(url: str) -> bool:
    parts = urlsplit(url)
    with socket.socket() as tried:
        return tried.connect_ex((parts.hostname, parts.port)) != 0


async def test_a_client_that_reads_nothing_does_not_hold_up_the_end(tmp_path: Path) -> None:
    flood = Flood([(0, event(delta(content="x" * 2000)))])
    async with PacedModel(flood) as model:
        variables = {"OPENAI_BASE_URL": model.base_url, "LOG_LEVEL": "ERROR", "SERVER_CLIENT_TIMEOUT": "600"}
        with started(cwd=tmp_path, SHUTDOWN_TIMEOUT="1", **variables) as (process, url):
            async with RawClient(url, receive_buffer=4096) as stalled:
                await stalled.ask("/time/chat")
                await stalled.read_until(b"delta")
                process.send_signal(signal.SIGTERM)
                await asyncio.to_thread(process.wait, PATIENCE)
        await until(lambda: model.aborted == 1)
    assert process.returncode == 0
