"""Limits of request bodies: how long one may be, how long it may take, and how many large ones there may be."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress

import httpx
import pytest

from tests.service.api.test_bad_input import problem_of
from tests.service.protocols.openai.asking import COMPLETIONS, error_of, played
from tests.service.server.raw_client import RawClient
from tests.serving import service
from tests.waiting import PATIENCE
from toolchat.service.access.keys import digest_of
from toolchat.service.api import body_limits as bodies

POST = b"POST /approvals/x HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
MEBIBYTE = 2**20


@pytest.fixture(scope="module")
async def client() -> AsyncGenerator[httpx.AsyncClient, None]:
    async with service(SERVER_CLIENT_TIMEOUT="0.3") as client:
        yield client


@pytest.mark.slow
async def test_a_slow_body_is_answered_and_the_connection_ends(client: httpx.AsyncClient) -> None:
    async with RawClient(str(client.base_url)) as slow, asyncio.timeout(PATIENCE):
        await slow.send(POST + b"Content-Length: 1000\r\n\r\n[")
        assert (await slow.read_until(b'"request-timeout"')).startswith(b"HTTP/1.1 408 ")
        assert b"connection: close" in slow.received
        await slow.read_to_end()
        with suppress(ConnectionError):
            while True:
                await slow.send(b"1")
                await asyncio.sleep(0.01)


async def test_of_a_body_that_is_too_long_little_is_read(client: httpx.AsyncClient) -> None:
    sent = 0
    async with RawClient(str(client.base_url)) as endless, asyncio.timeout(PATIENCE):
        await endless.send(POST + b"Transfer-Encoding: chunked\r\n\r\n")
        with suppress(ConnectionError):
            while sent < 128:
                await endless.send(b"100000\r\n" + b"1" * MEBIBYTE + b"\r\n")
                sent += 1
    assert sent < 64  # what the systems of both keep on the way is a few


async def test_a_body_that_is_announced_as_too_long_is_refused_before_it_comes(client: httpx.AsyncClient) -> None:
    async with RawClient(str(client.base_url)) as sender, asyncio.timeout(PATIENCE):
        await sender.send(POST + b"Content-Length: 1000000000000\r\nExpect: 100-continue\r\n\r\n")
        assert (await sender.read_until(b'"too-large"')).startswith(b"HTTP/1.1 413 ")
        await sender.read_to_end()


@pytest.mark.parametrize("path", [b"/approvals/x", b"/v1/chat/completions", b"/mcp", b"/never/there"])
async def test_a_stranger_is_refused_before_the_body_is_read(path: bytes) -> None:
    head = b"POST " + path + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2000000\r\n"
    async with service(API_KEYS=f"alice={digest_of('alice')}") as guarded:
        async with RawClient(str(guarded.base_url)) as stranger, asyncio.timeout(PATIENCE):
            await stranger.send(head + b"\r\n{")  # all further bytes stay away
            assert (await stranger.read_until(b"\r\n\r\n")).startswith(b"HTTP/1.1 401 ")
            assert b"connection: close" in stranger.received
        async with RawClient(str(guarded.base_url)) as invited:
            await invited.send(head + b"X-API-Key: alice\r\nExpect: 100-continue\r\n\r\n")
            async with asyncio.timeout(PATIENCE):
                received = await invited.read_until(b"\r\n\r\n")
    if path == b"/v1/chat/completions":  # which allows bodies of this length
        assert received.startswith(b"HTTP/1.1 100 ")
    else:
        assert received.startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        (b"POST /approvals/x?%ff HTTP/1.1", 400),
        (b"POST /approvals/x HTTP/1.1\r\nX-Long: " + b"x" * 70_000, 431),
        (b"POST /approvals/x HTTP/1.1\r\nHost: other", 400),
        (b"GET /health/live HTTP/1.1", 200),
    ],
)
async def test_an_answer_that_comes_before_the_body_reaches_who_is_still_sending(
    request_line: bytes, status: int, client: httpx.AsyncClient
) -> None:
    head = request_line + b"\r\nHost: 127.0.0.1\r\nContent-Length: 60000\r\n\r\n"
    async with RawClient(str(client.base_url)) as sender, asyncio.timeout(PATIENCE):
        await sender.send(head)
        await sender.read_until(b"\r\n\r\n")
        await sender.send(b"1" * 50_000)
        answer = await sender.read_to_end()
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert b"connection: close" in answer
    assert len(answer.partition(b"\r\n\r\n")[2]) == int(answer.partition(b"content-length: ")[2].split(b"\r\n")[0])


async def test_a_connection_is_kept_after_a_body_that_was_read(client: httpx.AsyncClient) -> None:
    async with RawClient(str(client.base_url)) as kept, asyncio.timeout(PATIENCE):
        for _ in range(2):
            kept.received.clear()
            await kept.send(POST + b"Content-Length: 2\r\n\r\n[]")
            assert (await kept.read_until(b'"validation"')).startswith(b"HTTP/1.1 422 ")
            assert b"connection: close" not in kept.received


async def test_a_body_beyond_the_limit_is_refused_before_it_is_parsed(offline: httpx.AsyncClient) -> None:
    answer = await offline.post("/approvals/x", content=b"[" * 400_000, headers={"Content-Type": "application/json"})
    assert (answer.status_code, problem_of(answer).code) == (413, "too-large")
    wrong = await offline.post("/approvals/x", content=b"{}", headers={"Content-Type": "text/plain"})
    assert problem_of(wrong).detail.startswith("body: ")


async def test_all_large_bodies_together_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "MAX_LARGE_BODIES", 100_000)
    async with played([]) as (client, _):
        for _ in range(2):  # the place of a refused one is free again
            assert error_of(await client.post(COMPLETIONS, content=b" " * 200_000))[:2] == (503, "overloaded")
        assert (
            error_of(
                await client.post(COMPLETIONS, content=b" " * 90_000, headers={"Content-Type": "application/json"})
            )[0]
            == 400
        )


@pytest.mark.parametrize("path", ["/time/chat", "/todo/chat"])
async def test_a_longer_body_than_any_question_needs_is_not_read(path: str, client: httpx.AsyncClient) -> None:
    # Images may come to /chat alone: test_images.py has its limit.
    answer = await client.post(path, json={"query": "a" * 400_000})
    assert (answer.status_code, answer.json()["detail"]) == (413, "the body is longer than 388096 bytes")
