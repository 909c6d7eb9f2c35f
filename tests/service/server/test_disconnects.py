"""Clients that leave or close one half: what was done for them ends, and nothing of them stays."""

import asyncio
import logging
import random
from collections.abc import Mapping, Sequence
from typing import Any

import httpx
import pytest

from tests.service.server.paced_model import PacedModel, Piece, calls, text
from tests.service.server.raw_client import EVENTS, RawClient, connected
from tests.service.server.watching import (
    assert_nothing_was_reported,
    in_flight,
    living_objects,
    open_files,
    outcomes,
    tasks_are_back,
)
from tests.serving import service
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("logged")

JSON = "application/json"
FOR_EVER = text([f"word {number} " for number in range(1000)], pause=0.02)
SILENT = text(["never"], first=3600)


def by_query(body: Mapping[str, Any]) -> Sequence[Piece]:
    """Play a model that answers a question with ``quick`` in it at once, and any other one too late."""
    return text(["quick answer"]) if "quick" in body["messages"][-1]["content"] else SILENT


async def leave(base_url: httpx.URL, after: bytes, seconds: float, path: str = "/time/chat") -> None:
    """Ask for a stream, wait for something of the answer and then some time, and reset the connection."""
    async with RawClient(str(base_url)) as client:
        await client.ask(path)
        if after:
            await client.read_until(after)
        await asyncio.sleep(seconds)
        client.reset()


async def abandon(number: int, model: PacedModel, client: httpx.AsyncClient, accept: str) -> None:
    """Ask so many questions, and reset the connections when all of them are with the model."""
    asked = model.asked + number
    async with connected(str(client.base_url), number) as leavers:
        for each in leavers:
            await each.ask("/time/chat", accept)
        await until(lambda: model.asked == asked)
        assert await in_flight(client) == number
        for each in leavers:
            each.reset()


async def everything_ended(model: PacedModel, client: httpx.AsyncClient, asked: int, tasks: int) -> None:
    """Wait until the model was left as often as it was asked, and the service is as it was before."""
    await until(lambda: (model.asked, model.aborted) == (asked, asked))
    assert model.open_connections == 0
    assert await in_flight(client) == 0
    await tasks_are_back(tasks)


async def test_two_hundred_streams_that_are_reset_end_at_the_model_at_once(caplog: pytest.LogCaptureFixture) -> None:
    chance = random.Random(20)
    async with PacedModel(FOR_EVER) as model, service(OPENAI_BASE_URL=model.base_url) as client:
        await in_flight(client)
        tasks = len(asyncio.all_tasks())
        await asyncio.gather(*(leave(client.base_url, b"delta", chance.uniform(0, 0.2)) for _ in range(200)))
        await everything_ended(model, client, 200, tasks)
    assert outcomes(caplog)["client_gone"] == 200
    assert_nothing_was_reported(caplog)


@pytest.mark.parametrize("accept", [EVENTS, JSON], ids=["stream", "whole"])
async def test_leaving_before_the_first_word_ends_the_question(accept: str, caplog: pytest.LogCaptureFixture) -> None:
    async with PacedModel(SILENT) as model, service(OPENAI_BASE_URL=model.base_url) as client:
        await in_flight(client)
        tasks = len(asyncio.all_tasks())
        await abandon(50, model, client, accept)
        await everything_ended(model, client, 50, tasks)
    assert outcomes(caplog)["client_gone"] == 50
    assert_nothing_was_reported(caplog)


@pytest.mark.parametrize("accept", [EVENTS, JSON], ids=["stream", "whole"])
async def test_leaving_while_a_tool_runs_cancels_the_tool(accept: str, caplog: pytest.LogCaptureFixture) -> None:
    weather = PacedModel(SILENT)  # any server that does not answer will do
    asking = PacedModel(calls("getWeatherFunction", {"city": "Paris", "days": 1}))
    async with weather, asking, service(OPENAI_BASE_URL=asking.base_url, WEATHER_API_KEY="key",
                                        WEATHER_BASE_URL=weather.base_url) as client:  # fmt: skip
        await in_flight(client)
        async with RawClient(str(client.base_url)) as leaver:
            await leaver.ask("/weather/chat-tool-function", accept)
            await until(lambda: weather.open_connections == 1)
            leaver.reset()
        await until(lambda: weather.open_connections == 0)
        assert await in_flight(client) == 0
        assert asking.asked == 1
    assert outcomes(caplog)["client_gone"] == 1
    assert_nothing_was_reported(caplog)


@pytest.mark.parametrize("stream", ["true", "false"])
async def test_leaving_a_response_of_openais_format_ends_it(stream: str, caplog: pytest.LogCaptureFixture) -> None:
    async with PacedModel(SILENT) as model, service(OPENAI_BASE_URL=model.base_url) as client:
        await in_flight(client)
        tasks = len(asyncio.all_tasks())
        async with RawClient(str(client.base_url)) as leaver:
            await leaver.post("/v1/responses", b'{"model":"toolchat","input":"?","stream":%b}' % stream.encode())
            await until(lambda: model.asked == 1)
            leaver.reset()
        await everything_ended(model, client, 1, tasks)
    assert outcomes(caplog)["client_gone"] == 1
    assert_nothing_was_reported(caplog)


async def test_after_two_hundred_clients_that_reset_at_once_every_place_is_free(
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = {"MAX_QUESTIONS": "40"}  # 20 of one client
    async with PacedModel(FOR_EVER) as model, service(OPENAI_BASE_URL=model.base_url, **settings) as client:
        await in_flight(client)
        tasks = len(asyncio.all_tasks())
        await asyncio.gather(*(leave(client.base_url, b"", 0) for _ in range(200)))
        await until(lambda: model.asked == model.aborted)
        await tasks_are_back(tasks)
        async with connected(str(client.base_url), 20) as staying:
            for each in staying:
                await each.ask("/time/chat")
                assert (await each.read_until(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
        await until(lambda: model.asked == model.aborted)
    assert_nothing_was_reported(caplog)


async def test_a_client_that_leaves_the_second_of_two_requests_in_a_row_is_seen_to_leave() -> None:
    async with PacedModel(by_query) as model, service(OPENAI_BASE_URL=model.base_url) as client:
        async with RawClient(str(client.base_url)) as leaver:
            await leaver.ask("/time/chat?query=quick")
            await leaver.ask("/time/chat?query=slow")
            await until(lambda: model.asked == 2)
            leaver.reset()
        await until(lambda: (model.finished, model.aborted) == (1, 1))
        assert await in_flight(client) == 0


@pytest.mark.slow
async def test_a_thousand_clients_who_come_and_go_leave_nothing_behind(caplog: pytest.LogCaptureFixture) -> None:
    chance = random.Random(7)
    async with PacedModel(FOR_EVER) as model, service(OPENAI_BASE_URL=model.base_url) as client:

        async def come_and_go(cycles: int) -> None:
            for _ in range(cycles):
                path = chance.choice(["/time/chat", "/health/live", "/health/ready"])
                await leave(client.base_url, chance.choice([b"", b"\r\n\r\n"]), chance.uniform(0, 0.01), path)

        async def at_rest() -> None:
            await until(lambda: model.asked == model.aborted and model.open_connections == 0)
            await tasks_are_back(tasks)

        await in_flight(client)
        tasks = len(asyncio.all_tasks())
        await asyncio.gather(*(come_and_go(10) for _ in range(20)))
        await at_rest()
        files, objects = open_files(), living_objects()
        await asyncio.gather(*(come_and_go(50) for _ in range(20)))
        await at_rest()
        assert open_files() - files <= 5
        grown = living_objects() - objects
        assert {kind: count for kind, count in grown.items() if count > 5} == {}
    assert_nothing_was_reported(caplog)


@pytest.mark.parametrize("accept", [EVENTS, "application/json"], ids=["stream", "whole"])
@pytest.mark.parametrize("script", [SILENT, text(["begun"], ends=False)], ids=["silent", "begun"])
async def test_a_client_that_shuts_its_sending_side_ends_its_question(
    script: Sequence[Piece], accept: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="toolchat")
    async with PacedModel(script) as model, service(OPENAI_BASE_URL=model.base_url) as client:
        await in_flight(client)
        files = open_files()
        async with RawClient(str(client.base_url)) as half:
            await half.ask("/time/chat", accept)
            await until(lambda: model.asked == 1)
            if script is not SILENT and accept == EVENTS:
                await half.read_until(b"begun")
            half.shut_sending_side()
            answer = await half.read_to_end()
            await until(lambda: model.aborted == 1)
            assert await in_flight(client) == 0
        assert b"event: done" not in answer
        await until(lambda: open_files() <= files)
    assert outcomes(caplog)["client_gone"] == 1
    assert_nothing_was_reported(caplog)
