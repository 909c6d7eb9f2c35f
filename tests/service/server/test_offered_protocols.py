"""Clients that offer another protocol, as Java's own does with every request, are answered in this one."""

import asyncio
import logging
from collections.abc import AsyncGenerator

import httpx
import pytest

from tests.service.server.raw_client import RawClient
from tests.serving import service
from tests.waiting import PATIENCE

BODY = b'{"query":"What time is it in Paris?"}'
POST = b"POST /time/chat-tool-function HTTP/1.1\r\n"
HEADERS = b"Host: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(BODY)
OFFERS = {
    "h2c": b"Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAEAAEAAAAIAAAAB\r\nUpgrade: h2c\r\n",
    "lower case": b"connection: upgrade\r\nupgrade: h2c\r\n",
    "websocket": b"Upgrade: websocket\r\nConnection: keep-alive, Upgrade\r\nSec-WebSocket-Version: 13\r\n",
}


@pytest.fixture(scope="module")
async def client() -> AsyncGenerator[httpx.AsyncClient, None]:
    async with service() as client:
        yield client


@pytest.mark.parametrize("offer", OFFERS.values(), ids=OFFERS)
@pytest.mark.parametrize("body_comes_later", [False, True])
async def test_the_body_of_who_offers_another_protocol_is_read_and_the_connection_kept(
    *, offer: bytes, body_comes_later: bool, client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    head = POST + offer + HEADERS
    async with RawClient(str(client.base_url)) as asking, asyncio.timeout(PATIENCE):
        for _ in range(2):
            asking.received.clear()
            for piece in [head, BODY] if body_comes_later else [head + BODY]:
                await asking.send(piece)
                await asyncio.sleep(0)
            assert (await asking.read_until(b"Europe/Paris")).startswith(b"HTTP/1.1 200 ")
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []


async def test_a_body_that_would_be_left_unread_is_refused_and_never_taken_for_no_question(
    client: httpx.AsyncClient,
) -> None:
    # The header itself comes in pieces, so that it is seen too late.
    async with RawClient(str(client.base_url)) as asking, asyncio.timeout(PATIENCE):
        first, second, third = OFFERS["h2c"].partition(b"Upgrade: h")
        await asking.send(POST + first + second[:4])
        await client.get("/health/live")
        await asking.send(second[4:] + third + HEADERS + BODY)
        assert (await asking.read_to_end()).startswith(b"HTTP/1.1 400 ")
