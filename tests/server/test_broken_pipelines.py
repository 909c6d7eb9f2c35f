"""Bytes that are no request, behind requests that are: no fault of the service, so the log calls it none."""

import asyncio
import logging
from contextlib import suppress

import httpx
import pytest

from tests.server.raw_client import RawClient
from tests.waiting import PATIENCE

GET = b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
QUESTION = b"GET /time/chat HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
CHUNKED = b"POST /chat HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("valid", [b"", GET, GET * 2, QUESTION, QUESTION * 2, CHUNKED])
async def test_nonsense_behind_requests_ends_the_connection_and_is_no_error_of_the_service(
    valid: bytes, offline: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="app")
    async with RawClient(str(offline.base_url)) as client, asyncio.timeout(PATIENCE):
        await client.send(valid + b"X\r\n\r\n")
        with suppress(ConnectionResetError):
            await client.read_to_end()
    assert (await offline.get("/health/live")).status_code == 200
    warnings = [each for each in caplog.records if each.levelno >= logging.ERROR]
    assert [each.getMessage() for each in warnings] == []
