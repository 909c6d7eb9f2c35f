"""Clients that read nothing, or little: they cost a bounded time and a bounded memory, and nobody else anything."""

import asyncio
import time
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.command_line import started
from tests.players.openai_player import delta, event
from tests.service.observability.reading import figures_of, grown
from tests.service.server.paced_model import Flood, PacedModel, Piece, text
from tests.service.server.raw_client import EVENTS, RawClient, connected
from tests.service.server.watching import assert_nothing_was_reported, in_flight, is_served, outcomes
from tests.serving import service
from tests.waiting import PATIENCE, until
from toolchat.service.settings.service_settings import Tuning

pytestmark = pytest.mark.usefixtures("logged")

JSON = "application/json"
MEBIBYTE = 2**20
QUICK = {"SERVER_CLIENT_TIMEOUT": "0.5"}
LONG = ["x" * MEBIBYTE] * 6
"""More than the kernel keeps for one connection, which is 4 MiB at most by Linux's defaults."""
FLOOD = Flood([(0, event(delta(content="x" * 2000)))])


async def test_a_model_that_never_stops_is_held_back_by_a_client_that_does_not_read() -> None:
    async with PacedModel(FLOOD) as model, service(OPENAI_BASE_URL=model.base_url) as client:
        async with RawClient(str(client.base_url), receive_buffer=4096) as stalled:
            await stalled.ask("/time/chat")
            await stalled.read_until(b"delta")
            written = -1
            async with asyncio.timeout(PATIENCE):
                while written != model.written:
                    written = model.written
                    await asyncio.sleep(0.3)
            assert (await client.get("/health/live")).status_code == 200
            assert await in_flight(client) == 1
            assert model.written < 64 * MEBIBYTE  # the kernel alone may keep 40, as some systems are set up
        await until(lambda: model.aborted == 1)


@pytest.mark.parametrize("pieces", [FLOOD, text([*LONG, "more"], ends=False)], ids=["flood", "then-silence"])
async def test_a_stream_that_is_not_read_ends_as_if_the_client_had_left(
    pieces: Sequence[Piece], caplog: pytest.LogCaptureFixture
) -> None:
    silence = Tuning(stream_keep_alive=0.1)
    async with PacedModel(pieces) as model, service(silence, OPENAI_BASE_URL=model.base_url, **QUICK) as client:
        async with RawClient(str(client.base_url), receive_buffer=4096) as stalled:
            await stalled.ask("/time/chat")
            await until(lambda: model.aborted == 1)
            assert await in_flight(client) == 0
            with suppress(ConnectionResetError):
                await stalled.read_to_end()
        assert b"event: done" not in stalled.received
    assert outcomes(caplog)["client_gone"] == 1
    assert_nothing_was_reported(caplog)


@pytest.mark.parametrize("connection", ["keep-alive", "close"])
@pytest.mark.parametrize("accept", [EVENTS, JSON], ids=["stream", "whole"])
async def test_a_finished_answer_that_is_not_read_does_not_hold_its_connection(
    accept: str, connection: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with PacedModel(text(LONG)) as model, service(OPENAI_BASE_URL=model.base_url, **QUICK) as client:
        assert await in_flight(client) == 0
        async with RawClient(str(client.base_url), receive_buffer=4096) as stalled:
            await stalled.ask("/time/chat", accept, Connection=connection)
            # Of a stream the systems on the way may not have room for the rest; then the model is left as well.
            await until(lambda: model.finished + model.aborted == 1)
            await until(lambda: not is_served(stalled))
            with suppress(ConnectionResetError):
                await stalled.read_to_end()
        assert len(stalled.received) < 6 * MEBIBYTE
        assert await in_flight(client) == 0
    assert_nothing_was_reported(caplog)


@pytest.mark.slow
@pytest.mark.parametrize("accept", [EVENTS, JSON], ids=["stream", "whole"])
async def test_a_client_that_reads_slowly_gets_everything(accept: str, caplog: pytest.LogCaptureFixture) -> None:
    script = text([*LONG, *LONG, " end"])
    async with (
        PacedModel(script) as model,
        service(OPENAI_BASE_URL=model.base_url, SERVER_CLIENT_TIMEOUT="1.5") as client,
        RawClient(str(client.base_url), receive_buffer=65536) as slow,
    ):
        await slow.ask("/time/chat", accept, Connection="close")
        began = time.monotonic()
        for read in range(2, 12):
            while len(slow.received) < read * MEBIBYTE:
                assert await slow.read_piece()
            await asyncio.sleep(0.2)  # together longer than the limit of each pause
        assert time.monotonic() - began > 1.5
        assert b'x end"' in await slow.read_to_end()
    assert outcomes(caplog)["ok"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("accept", [EVENTS, JSON], ids=["stream", "whole"])
async def test_a_client_that_reads_byte_by_byte_is_hung_up_on_when_the_time_of_its_question_is_over(
    accept: str, caplog: pytest.LogCaptureFixture
) -> None:
    settings = {"REQUEST_TIMEOUT": "1.5", "SERVER_CLIENT_TIMEOUT": "600"}  # the model must be done by then
    async with (
        PacedModel(text(["x" * 500_000])) as model,
        service(OPENAI_BASE_URL=model.base_url, **settings) as client,
    ):
        async with RawClient(str(client.base_url), receive_buffer=4096) as slow:
            await slow.ask("/time/chat", accept)
            await slow.read_until(b"\r\n\r\n")
            async with asyncio.timeout(PATIENCE):
                while is_served(slow):
                    await slow.read_piece(1)
                    await asyncio.sleep(0.01)  # reading what is there already gives nobody else a turn
        await until(lambda: outcomes(caplog)["client_gone"] == 1)
        assert await in_flight(client) == 0
    assert_nothing_was_reported(caplog)


async def test_long_answers_that_wait_for_their_readers_have_a_bound_together(caplog: pytest.LogCaptureFixture) -> None:
    settings = {"SERVER_CLIENT_TIMEOUT": "600"}
    async with (
        PacedModel(text(LONG)) as model,
        service(OPENAI_BASE_URL=model.base_url, **settings) as client,
        connected(str(client.base_url), 3) as stalled,
    ):
        before = await figures_of(client)
        for each in stalled:
            await each.ask("/time/chat", JSON)
            await each.read_until(b"\r\n\r\n")
        await until(lambda: not is_served(stalled[0]))
        left = grown(before, await figures_of(client), "toolchat_slow_readers_left_total")
        assert left == {(): 1}
        assert is_served(stalled[1])
        assert b'"finish_reason":"stop"' in await stalled[2].read_until(b'"request_id"')
    assert outcomes(caplog)["client_gone"] == 2
    assert outcomes(caplog)["ok"] == 1
    assert_nothing_was_reported(caplog)


async def test_slow_readers_take_little_memory_which_the_next_ones_use_again(tmp_path: Path) -> None:
    words = [f"{number:05}" * 4000 for number in range(100)]
    async with PacedModel(text(words)) as model:
        with started(cwd=tmp_path, OPENAI_BASE_URL=model.base_url, LOG_LEVEL="ERROR") as (process, url):
            memory = psutil.Process(process.pid).memory_info
            async with RawClient(url) as first:
                await first.ask("/time/chat", Connection="close")
                length = len(await first.read_to_end())
            before = memory().rss
            for part in (5, 4, 4):  # Python gives little back to the system, and uses again what others took
                async with connected(url, 50, receive_buffer=4096) as slow:
                    await asyncio.gather(*(each.ask("/time/chat") for each in slow))
                    await asyncio.gather(*(each.read_until(b"event: delta") for each in slow))
                    await asyncio.gather(*(each.read_piece(1) for each in slow))
                    await asyncio.to_thread(alive, url)
                    assert memory().rss - before < 50 * length / part


def alive(url: str) -> None:
    with urllib.request.urlopen(f"{url}/health/live") as answer:
        assert answer.status == 200
