"""Where a response ends, whether its connection can carry the next one, and what is no response at all."""

import asyncio
import gzip
import tracemalloc
import zlib

import pytest

from tests.http.upstream import OK, Ask, Peer, answering, asked, clients, outbound, playing
from tests.waiting import PATIENCE, until
from toolchat.errors import UpstreamError, UpstreamInvalid, UpstreamTimeout, UpstreamUnavailable
from toolchat.http.client import OutboundHttp
from toolchat.http.pool import MAX_BODY_BYTES

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def sized(body: bytes, more: bytes = b"", status: bytes = b"200 OK") -> bytes:
    return b"HTTP/1.1 %b\r\nContent-Length: %d\r\n%b\r\n%b" % (status, len(body), more, body)


def encoded(coding: bytes, body: bytes) -> bytes:
    return sized(body, b"Content-Encoding: %b\r\n" % coding)


EMPTY = {
    "no body": sized(b""),
    "no content": b"HTTP/1.1 204 None\r\nX: y\r\n\r\n",
    "not modified": b"HTTP/1.1 304 Same\r\nContent-Length: 5\r\n\r\n",
    "gzip of nothing": encoded(b"gzip", b""),
}
KEPT = EMPTY | {
    "a length": sized(b"abc"),
    "chunks": CHUNKED + b"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
    "trailers": CHUNKED + b"3\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n",
    "hints and go-ahead before it": b"HTTP/1.1 103 Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 Go\r\n\r\n" + sized(b"abc"),
    "gzip": encoded(b"gzip", gzip.compress(b"abc")),
    "deflate": encoded(b"deflate", zlib.compress(b"abc")),
    "identity": encoded(b"identity", b"abc"),
}
LAST = {
    "close asked for": sized(b"abc", b"Connection: close\r\n"),
    "HTTP/1.0": b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc",
    "the connection's end": b"HTTP/1.1 200 OK\r\nX: y\r\n\r\nabc",
}
UNASKED = {
    "garbage": b"garbage",
    "a second response": sized(b"evil"),
    "hints": b"HTTP/1.1 103 Hints\r\n\r\n",
    "a part of a response": b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nev",
}
NONSENSE = {
    "no HTTP": b"<html>hello</html>",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nabc",
    "a length and chunks": b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a chunk without a size": CHUNKED + b"zz\r\n",
    "an upgrade": b"HTTP/1.1 101 Switch\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nabc",
    "too many headers": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 300 + b"Content-Length: 2\r\n\r\nok",
    "a redirect": b"HTTP/1.1 302 There\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
    "too long a body": sized(b"x" * (MAX_BODY_BYTES + 1)),
    "an unknown coding": encoded(b"br", b"abc"),
    "no gzip": encoded(b"gzip", b"abcdefghijklmnopqrst"),
}
CUT = {
    "in a length": b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
    "in a chunk": CHUNKED + b"9\r\nabc",
    "before the last chunk": CHUNKED + b"3\r\nabc\r\n",
}
ENDLESS = {
    "a header": (b"HTTP/1.1 200 OK\r\nX: ", b"x" * 8192),
    "hints": (b"", b"HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n" * 100),
    "trailers": (CHUNKED + b"2\r\nok\r\n0\r\n", b"X: y\r\n" * 1000),
}


@pytest.mark.parametrize("bytewise", [False, True], ids=["at once", "byte by byte"])
@pytest.mark.parametrize("name", KEPT)
async def test_a_complete_response_leaves_its_connection_to_the_next(name: str, bytewise: bool) -> None:
    answer = KEPT[name]
    pieces = [answer[at : at + 1] for at in range(len(answer))] if bytewise else [answer]

    async def play(peer: Peer) -> None:
        for _ in range(2):
            await peer.asked()
            await peer.send(*pieces)

    async with playing(play) as upstream, outbound() as http:
        replies = [await asked(http, upstream.url) for _ in range(2)]
        assert upstream.connections == 1
    assert [each.body for each in replies] == [b"" if name in EMPTY else b"abc"] * 2


@pytest.mark.parametrize("answer", LAST.values(), ids=LAST)
async def test_a_response_may_be_the_last_of_its_connection(answer: bytes) -> None:
    async with playing(answering(answer)) as upstream, outbound() as http:
        assert [(await asked(http, upstream.url)).body for _ in range(2)] == [b"abc", b"abc"]
        assert upstream.connections == 2


@pytest.mark.parametrize("later", [False, True], ids=["at once", "while idle"])
@pytest.mark.parametrize("unasked", UNASKED.values(), ids=UNASKED)
@clients
async def test_bytes_that_no_request_asked_for_are_no_response(ask: Ask, unasked: bytes, later: bool) -> None:
    idle, arrived = asyncio.Event(), asyncio.Event()

    async def play(peer: Peer) -> None:
        await peer.asked()
        if peer.number > 1:
            await peer.send(OK)
        elif later:
            await peer.send(OK)
            await idle.wait()
            await peer.send(unasked)
            arrived.set()
        else:
            await peer.send(OK + unasked)
        await peer.left()

    async with playing(play) as upstream, outbound() as http:
        try:
            assert await ask(http, upstream.url) == b"ok"
        except UpstreamInvalid:
            assert not later
        idle.set()
        if later:
            await arrived.wait()
            await asyncio.sleep(0.01)  # until the client has read them
        assert (await asked(http, upstream.url, "POST")).body == b"ok"
        await until(lambda: upstream.open <= 1)
        assert upstream.connections >= 2


async def test_all_that_arrived_of_a_compressed_body_is_read_before_more_is_awaited() -> None:
    size = 2**20  # several of the pieces in which a body is decompressed
    packer = zlib.compressobj()
    packed = packer.compress(bytes(size)) + packer.flush(zlib.Z_SYNC_FLUSH)

    async def play(peer: Peer) -> None:
        await peer.asked()
        await peer.send(CHUNKED.replace(b"OK\r\n", b"OK\r\nContent-Encoding: deflate\r\n"))
        await peer.send(b"%x\r\n%b\r\n" % (len(packed), packed))
        await peer.left()

    received = 0
    async with (
        playing(play) as upstream,
        outbound() as http,
        http.request("GET", upstream.url, upstream="Shop") as response,
    ):
        while received < size:
            received += len(await response.readany())
    assert received == size


async def error_of(ask: Ask, answer: bytes) -> UpstreamError:
    async with playing(answering(answer)) as upstream, outbound() as http:
        with pytest.raises(UpstreamError) as caught:
            await ask(http, upstream.url)
        return caught.value


@pytest.mark.parametrize("answer", NONSENSE.values(), ids=NONSENSE)
@clients
async def test_an_invalid_response_is_not_requested_again(ask: Ask, answer: bytes) -> None:
    error = await error_of(ask, answer)
    assert (type(error), error.retryable, error.detail[:5]) == (UpstreamInvalid, False, "Shop ")


@pytest.mark.parametrize("answer", CUT.values(), ids=CUT)
@clients
async def test_a_truncated_response_is_invalid_and_retryable(ask: Ask, answer: bytes) -> None:
    error = await error_of(ask, answer)
    told = "Shop was cut off in the middle of its answer"
    assert (type(error), error.retryable, error.detail) == (UpstreamInvalid, True, told)


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 2", b"HTTP/1.1 200 OK\r\nContent-Le"])
@clients
async def test_a_connection_that_is_lost_before_the_head_is_unavailable(ask: Ask, answer: bytes) -> None:
    assert type(await error_of(ask, answer)) is UpstreamUnavailable


@pytest.mark.parametrize(("begin", "more"), ENDLESS.values(), ids=ENDLESS)
async def test_an_endless_head_or_trailer_ends_in_little_memory(begin: bytes, more: bytes) -> None:
    async def play(peer: Peer) -> None:
        await peer.asked()
        await peer.send(begin)
        while True:
            await peer.send(more)

    async with playing(play) as upstream, outbound() as http:
        assert await peak_of(http, upstream.url, timeout=1) < 8 * 2**20
        await until(lambda: upstream.open == 0)


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_a_zip_bomb_is_decompressed_up_to_the_limit_of_a_body(coding: str) -> None:
    size = 24 * MAX_BODY_BYTES
    bomb = (gzip if coding == "gzip" else zlib).compress(bytes(size))
    async with playing(answering(encoded(coding.encode(), bomb))) as upstream, outbound() as http:
        assert await peak_of(http, upstream.url, timeout=PATIENCE) < size / 3


async def peak_of(http: OutboundHttp, url: str, timeout: float) -> int:
    """Bytes of memory that a request used at most, which fails."""
    tracemalloc.start()
    with pytest.raises((UpstreamInvalid, UpstreamTimeout)):
        await http.fetch("GET", url, upstream="Shop", timeout=timeout)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@clients
async def test_no_client_decompresses_a_body_twice(ask: Ask) -> None:
    async with playing(answering(encoded(b"gzip", gzip.compress(b"abc")))) as upstream, outbound() as http:
        assert await ask(http, upstream.url) == b"abc"
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
