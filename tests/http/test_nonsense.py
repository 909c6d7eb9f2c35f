"""What an upstream may send that is no answer: bounded, told in our words, and never taken for one."""

import asyncio
import gzip
import tracemalloc
import zlib

import pytest

from tests.http.test_framing import CHUNKED, encoded, sized
from tests.http.upstream import Peer, answering, asked, outbound, playing
from tests.waiting import until
from toolchat.errors import UpstreamError, UpstreamInvalid, UpstreamTimeout, UpstreamUnavailable
from toolchat.http.response_parser import MAX_BODY_BYTES

NONSENSE = {
    "no HTTP": b"<html>hello</html>",
    "another version": b"HTTP/2 200 OK\r\n\r\n",
    "a status of five digits": b"HTTP/1.1 20000 OK\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nabc",
    "a length and chunks": b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a length below nothing": b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    "a transfer coding": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc",
    "a chunk without a size": CHUNKED + b"zz\r\n",
    "a chunk beyond all size": CHUNKED + b"f" * 17 + b"\r\n",
    "an upgrade": b"HTTP/1.1 101 Switch\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nabc",
    "too many headers": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 300 + b"Content-Length: 2\r\n\r\nok",
    "a redirect": b"HTTP/1.1 302 There\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
    "too long a body": sized(b"x" * (MAX_BODY_BYTES + 1)),
    "an unknown coding": encoded(b"br", b"abc"),
    "no gzip": encoded(b"gzip", b"abcdefghijklmnopqrst"),
    "no deflate": encoded(b"deflate", b"\xff" * 20),
}
CUT = {
    "in a length": b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
    "in a chunk": CHUNKED + b"9\r\nabc",
    "before the last chunk": CHUNKED + b"3\r\nabc\r\n",
    "in gzip": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(b"abc" * 100)[:-4],
}
LOST = {"before a byte": b"", "in the status": b"HTTP/1.1 2", "in a header": b"HTTP/1.1 200 OK\r\nContent-Le"}
ENDLESS = {
    "a header": (b"HTTP/1.1 200 OK\r\nX: ", b"x" * 8192),
    "headers": (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * 10),
    "answers on the way": (b"", b"HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n" * 10),
    "trailers": (CHUNKED + b"2\r\nok\r\n0\r\n", b"X: y\r\n" * 1000),
    "a trailer": (CHUNKED + b"2\r\nok\r\n0\r\nX: ", b"x" * 8192),
    "a chunk's extension": (CHUNKED + b"2;", b"x" * 8192),
}


async def error_of(answer: bytes, *, reset: bool = False) -> UpstreamError:
    async def play(peer: Peer) -> None:
        await peer.asked()
        await peer.send(answer)
        if reset:
            peer.reset()

    async with playing(play) as upstream, outbound() as http:
        with pytest.raises(UpstreamError) as caught:
            await asked(http, upstream.url, "POST")
        return caught.value


@pytest.mark.parametrize("answer", NONSENSE.values(), ids=NONSENSE)
async def test_an_invalid_response_is_not_requested_again(answer: bytes) -> None:
    error = await error_of(answer)
    assert (type(error), error.retryable) == (UpstreamInvalid, False)


@pytest.mark.parametrize("answer", CUT.values(), ids=CUT)
async def test_a_truncated_response_is_invalid_and_retryable(answer: bytes) -> None:
    error = await error_of(answer)
    assert (type(error), error.retryable, error.detail) == (
        UpstreamInvalid,
        True,
        "Shop was cut off in the middle of its answer",
    )


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
@pytest.mark.parametrize("answer", LOST.values(), ids=LOST)
async def test_a_connection_that_is_lost_before_the_head_is_unavailable(answer: bytes, reset: bool) -> None:
    assert type(await error_of(answer, reset=reset)) is UpstreamUnavailable


async def test_a_reset_in_the_body_is_unavailable_even_where_the_body_ends_with_the_connection() -> None:
    assert type(await error_of(b"HTTP/1.1 200 OK\r\n\r\nabc", reset=True)) is UpstreamUnavailable


@pytest.mark.parametrize(("begin", "more"), ENDLESS.values(), ids=ENDLESS)
async def test_an_endless_head_or_trailer_is_invalid(begin: bytes, more: bytes) -> None:
    async def play(peer: Peer) -> None:
        await peer.asked()
        await peer.send(begin)
        while True:
            await peer.send(more)

    async with playing(play) as upstream, outbound() as http:
        with pytest.raises(UpstreamInvalid):
            await asked(http, upstream.url)


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_a_zip_bomb_is_decompressed_up_to_the_limit_of_a_body(coding: str) -> None:
    size = 24 * MAX_BODY_BYTES
    bomb = (gzip if coding == "gzip" else zlib).compress(bytes(size))
    async with playing(answering(encoded(coding.encode(), bomb))) as upstream, outbound() as http:
        tracemalloc.start()
        with pytest.raises(UpstreamInvalid, match="more than"):
            await asked(http, upstream.url)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < size / 3


async def test_httpx_does_not_decompress_a_body_twice() -> None:
    packed = gzip.compress(b"abc")
    async with playing(answering(encoded(b"gzip", packed), encoded(b"gzip", packed))) as upstream, outbound() as http:
        assert (await http.httpx.get(upstream.url)).content == b"abc"
        async with http.httpx.stream("GET", upstream.url) as response:
            assert b"".join([piece async for piece in response.aiter_bytes()]) == b"abc"
        assert b"Accept-Encoding: gzip, deflate\r\n" in upstream.requests[0]


async def test_a_trickling_response_ends_at_the_time_limit_and_closes_its_connection() -> None:
    async def play(peer: Peer) -> None:
        await peer.asked()
        await peer.send(CHUNKED)
        while True:
            await peer.send(b"1\r\nx\r\n")
            await asyncio.sleep(0.01)

    async with playing(play) as upstream, outbound() as http:
        with pytest.raises(UpstreamTimeout, match=r"Shop did not answer within 0\.1 s"):
            await http.fetch("GET", upstream.url, upstream="Shop", timeout=0.1)
        await until(lambda: upstream.open == 0)
