"""Bytes that are no request: each is refused, and nothing is reported as a fault of the service."""

import logging
from contextlib import suppress

import httpx
import pytest

from tests.service.server.paced_model import PacedModel, text
from tests.service.server.raw_client import RawClient
from tests.service.server.watching import assert_nothing_was_reported
from tests.serving import service

HOST = b"Host: localhost\r\n"
QUESTION = b"GET /time/chat?query=hi HTTP/1.1\r\n" + HOST + b"\r\n"
HEALTHY = b"GET /health/live HTTP/1.1\r\n" + HOST + b"\r\n"


@pytest.fixture(autouse=True)
def _logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="toolchat")


@pytest.mark.parametrize(
    "sent",
    [
        b"X\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nbad header\r\n\r\n",
        b"POST /chat HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
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
