"""What a client reads from a stream, by a reader that forgives nothing: hostile text, silence, and lying models."""

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx
import psutil
import pytest
from hypothesis import given, strategies as st
from pydantic_core import from_json

from tests.players.openai_player import OpenAIPlayer, delta, finish, sse
from tests.service.server.paced_model import PacedModel, Piece, calls, text
from tests.service.server.raw_client import EVENTS, RawClient
from tests.service.server.strict_sse import COMMENT, SentEvent, body_of, read_events
from tests.service.server.watching import in_flight
from tests.serving import service
from toolchat.service.settings.service_settings import Tuning

SILENCE = Tuning(stream_keep_alive=0.1)
HOSTILE = ["\n", "\r", "\r\n", "\n\n", "data:", "event: done\n", "data: {}\n\n", "[DONE]", ":", "id: 1\n", "retry: 0\n",
           "\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x00", "\ufeff", "😀", "é", "\\", '"', "\\u0000"]  # fmt: skip
PIECES = st.lists(st.lists(st.sampled_from(HOSTILE) | st.text(max_size=5), max_size=8).map("".join), max_size=6)


async def events_from(client: httpx.AsyncClient, path: str) -> list[SentEvent]:
    """Ask for a stream that begins well, and read it strictly."""
    answer = await client.get(path, headers={"Accept": EVENTS})
    assert answer.status_code == 200
    return read_events(answer.content)


def names(events: Sequence[SentEvent]) -> list[str]:
    return [event.name for event in events]


class Repeating:
    """A model that says what it was last told to."""

    words: Sequence[str] = ()

    def __call__(self, _: Mapping[str, Any]) -> Sequence[Piece]:
        return text(self.words)


@pytest.fixture(scope="module")
async def repeating() -> AsyncGenerator[tuple[Repeating, httpx.AsyncClient], None]:
    script = Repeating()
    async with PacedModel(script) as model, service(OPENAI_BASE_URL=model.base_url) as client:
        yield script, client


@pytest.mark.slow
@given(pieces=PIECES)
async def test_hostile_text_forges_no_event_and_arrives_exactly(
    pieces: list[str], repeating: tuple[Repeating, httpx.AsyncClient]
) -> None:
    script, client = repeating
    script.words = [f"[{number}{piece}]" for number, piece in enumerate(["", *pieces])]
    events = await events_from(client, "/time/chat")
    assert names(events[-2:]) == ["usage", "done"]
    assert set(names(events[:-2])) == {"delta"}
    assert "".join(from_json(event.data)["text"] for event in events[:-2]) == "".join(script.words)
    assert from_json(events[-1].data)["answer"] == "".join(script.words)
    assert len({event.last_id for event in events}) == 1


@pytest.mark.parametrize("ending", ["whole", "hang"])
async def test_an_error_in_the_middle_of_a_stream_ends_it_and_the_work_for_it(ending: Any) -> None:
    fault = {"error": {"message": "slow down", "code": "rate_limit_exceeded", "type": "requests"}}
    script = [sse(delta(content="half"), fault, delta(content="more"), finish("stop"), ending=ending)]
    async with OpenAIPlayer(script) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        events = await events_from(client, "/time/chat")
        assert names(events) == ["delta", "error"]
        assert from_json(events[-1].data)["code"] == "provider-rate-limited"
        assert await in_flight(client) == 0
        before, began = sum(psutil.Process().cpu_times()[:2]), time.monotonic()
        await asyncio.sleep(0.3)  # the time over which the work is measured
        worked = sum(psutil.Process().cpu_times()[:2]) - before
        assert worked < (time.monotonic() - began) / 2
    assert len(player.requests) == 1


@asynccontextmanager
async def slow_weather() -> AsyncGenerator[tuple[httpx.AsyncClient, PacedModel], None]:
    """The service, with a model that asks the weather service once; that one answers when its gate is opened."""

    def ask_once(body: Mapping[str, Any]) -> Sequence[Piece]:
        told = body["messages"][-1]["role"] == "tool"
        return text(["answered"]) if told else calls("getWeatherFunction", {"city": "Paris", "days": 1})

    async with PacedModel(text(["late"])) as weather, PacedModel(ask_once) as model:
        weather.gate.clear()
        settings = {"WEATHER_API_KEY": "key", "WEATHER_BASE_URL": weather.base_url}
        async with service(SILENCE, OPENAI_BASE_URL=model.base_url, **settings) as client:
            yield client, weather


async def read_after_comments(reader: RawClient, number: int, behind: bytes, gate: asyncio.Event) -> list[SentEvent]:
    """Read a stream to its end, and open a gate once so many comments came behind a mark."""
    while reader.received.partition(behind)[2].count(b"\n:") < number:
        await reader.read_piece()
    gate.set()
    return read_events(body_of(await reader.read_to_end()))


async def test_comments_keep_a_stream_open_while_a_tool_takes_its_time() -> None:
    async with slow_weather() as (client, weather), RawClient(str(client.base_url)) as reader:
        began = time.monotonic()
        await reader.ask("/weather/chat-tool-function", Connection="close")
        events = await read_after_comments(reader, 3, b"tool_call_started", weather.gate)
        took = time.monotonic() - began
    found = names(events)
    started, finished = found.index("tool_call_started"), found.index("tool_call_finished")
    assert set(found[started + 1 : finished]) == {COMMENT}
    assert 3 <= finished - started - 1 <= took / SILENCE.stream_keep_alive
    assert found[-1] == "done"
    assert from_json(events[-1].data)["answer"] == "answered"


async def test_comments_come_before_the_first_word_as_well() -> None:
    whole = b"".join(piece for _, piece in text(["late"]))
    async with (
        PacedModel([(0, whole)]) as model,
        service(SILENCE, OPENAI_BASE_URL=model.base_url) as client,
        RawClient(str(client.base_url)) as reader,
    ):
        model.gate.clear()
        await reader.ask("/time/chat", Connection="close")
        events = await read_after_comments(reader, 1, b"\r\n\r\n", model.gate)
    assert names(events)[0] == COMMENT
    assert [name for name in names(events) if name != COMMENT] == ["delta", "usage", "done"]
    assert len({event.last_id for event in events}) == 1
