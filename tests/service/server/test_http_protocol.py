"""Bytes that are no request, and offers of another protocol: refused or answered, never a fault of the service."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import suppress

import httpx
import pytest

from tests.service.server.paced_model import PacedModel, text
from tests.service.server.raw_client import RawClient
from tests.service.server.watching import assert_nothing_was_reported
from tests.serving import service
from tests.waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("logged")

HOST = b"Host: localhost\r\n"
QUESTION = b"GET /time/chat?query=hi HTTP/1.1\r\n" + HOST + b"\r\n"
HEALTHY = b"GET /health/live HTTP/1.1\r\n" + HOST + b"\r\n"


@pytest.mark.parametrize(
    "sent",
    [
        b"X\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nbad header\r\n\r\n",
        b"POST /chat HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET /chat?query=what is it HTTP/1.1\r\n\r\n",
        b"GET /chat?query=a\x00b HTTP/1.1\r\n\r\n",
        b"GET http://[::1/secret HTTP/1.1\r\n" + HOST + b"\r\n",
    ],
)
async def test_what_is_no_request_is_answered_with_a_plain_400(sent: bytes, offline: httpx.AsyncClient) -> None:
    async with RawClient(str(offline.base_url)) as raw:
        await raw.send(sent)
        answer = await raw.read_to_end()
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.endswith(b"\r\n\r\nInvalid HTTP request received.")


@pytest.mark.parametrize(
    "sent",
    [
        HEALTHY + HEALTHY,
        QUESTION + QUESTION,
        b"X\r\n\r\n",
        HEALTHY + b"X\r\n\r\n",
        QUESTION + b"\x00\xff\x00",
        b"GET /time/chat HTTP/1.1\r\n" + HOST + b"Upgrade: websocket\r\nConnection: upgrade\r\n\r\n",
        b"GET /time/chat HTTP/1.1\r\n" + HOST + b"Upgrade: h2c\r\nConnection: upgrade\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
async def test_requests_of_a_client_cause_no_warning_and_no_error(
    sent: bytes, offline: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    async with RawClient(str(offline.base_url)) as raw:
        await raw.send(sent)
        assert (await raw.read_until(b"HTTP/1.1 ")).startswith(b"HTTP/1.1 ")
        raw.shut_sending_side()
        await raw.read_piece()
    assert (await offline.get("/health/live")).status_code == 200
    assert_nothing_was_reported(caplog)


@pytest.mark.parametrize("earlier", [HEALTHY * 2, QUESTION, QUESTION * 2])
async def test_nonsense_behind_unanswered_requests_ends_the_connection(
    earlier: bytes, offline: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    async with RawClient(str(offline.base_url)) as raw:
        await raw.send(earlier + b"X\r\n\r\n")
        with suppress(ConnectionResetError):
            await raw.read_to_end()
    assert (await offline.get("/health/live")).status_code == 200
    assert_nothing_was_reported(caplog)


async def test_a_question_whose_body_breaks_off_is_not_asked() -> None:
    # What has come of it is nothing, which as a whole body would mean the default question.
    head = b"POST /time/chat HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
    head += b"Transfer-Encoding: chunked\r\n\r\n"
    async with PacedModel(text(["Hi"])) as model, service(OPENAI_BASE_URL=model.base_url) as client:
        async with RawClient(str(client.base_url)) as raw:
            await raw.send(head)
            assert (await client.get("/health/live")).status_code == 200  # by now the body is waited for
            await raw.send(b"zz\r\n")
            assert b" 400 " in await raw.read_to_end()
            for _ in range(3):
                assert (await client.get("/time/chat")).status_code == 200
        assert model.finished + model.aborted == 3


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
