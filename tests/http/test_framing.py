"""Where an answer ends, and whether its connection can carry the next one."""

import asyncio
import gzip
import zlib

import pytest

from tests.http.upstream import OK, Peer, answering, asked, outbound, playing
from tests.waiting import PATIENCE

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def sized(body: bytes, more: bytes = b"", status: bytes = b"200 OK") -> bytes:
    return b"HTTP/1.1 %b\r\nContent-Length: %d\r\n%b\r\n%b" % (status, len(body), more, body)


def encoded(coding: bytes, body: bytes) -> bytes:
    return sized(body, b"Content-Encoding: %b\r\n" % coding)


KEPT = {
    "a length": sized(b"abc"),
    "no body": sized(b""),
    "chunks": CHUNKED + b"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
    "chunks with blanks and extensions": CHUNKED + b"2 \r\nab\r\n1;x=y\r\nc\r\n0\r\n\r\n",
    "trailers": CHUNKED + b"3\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n",
    "capitals": b"HTTP/1.1 200 OK\r\nCONTENT-LENGTH: 3\r\n\r\nabc",
    "bare line feeds": b"HTTP/1.1 200 OK\nContent-Length: 3\n\nabc",
    "no reason": b"HTTP/1.1 200\r\nContent-Length: 3\r\n\r\nabc",
    "hints and go-ahead before it": b"HTTP/1.1 103 Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 Go\r\n\r\n" + sized(b"abc"),
    "no content": b"HTTP/1.1 204 None\r\nX: y\r\n\r\n",
    "not modified": b"HTTP/1.1 304 Same\r\nContent-Length: 5\r\n\r\n",
    "an offer to upgrade": sized(b"abc", b"Upgrade: h2c\r\nConnection: upgrade\r\n"),
    "gzip": encoded(b"gzip", gzip.compress(b"abc")),
    "gzip in two members": encoded(b"x-GZIP", gzip.compress(b"a") + gzip.compress(b"bc")),
    "deflate": encoded(b"deflate", zlib.compress(b"abc")),
    "bare deflate": encoded(b"deflate", zlib.compress(b"abc", wbits=-15)),
    "gzip of nothing": encoded(b"gzip", b""),
    "identity": encoded(b"identity", b"abc"),
}
DROPPED = {
    "close asked for": sized(b"abc", b"Connection: close\r\n"),
    "HTTP/1.0": b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc",
    "garbage behind it": sized(b"abc") + b"garbage",
    "a second answer behind it": sized(b"abc") + sized(b"evil"),
    "data after close": sized(b"abc", b"Connection: close\r\n") + b"more",
}


@pytest.mark.parametrize("bytewise", [False, True], ids=["at once", "byte by byte"])
@pytest.mark.parametrize("answer", KEPT.values(), ids=KEPT)
async def test_a_complete_response_leaves_its_connection_to_the_next(answer: bytes, bytewise: bool) -> None:
    pieces = [answer[at : at + 1] for at in range(len(answer))] if bytewise else [answer]

    async def play(peer: Peer) -> None:
        for _ in range(2):
            await peer.asked()
            await peer.send(*pieces)

    async with playing(play) as upstream, outbound() as http:
        replies = [await asked(http, upstream.url) for _ in range(2)]
        assert upstream.connections == 1
    whole = b"" if replies[0].status in (204, 304) or b"\r\nContent-Length: 0" in answer else b"abc"
    assert [each.body for each in replies] == [whole, whole]


@pytest.mark.parametrize("answer", DROPPED.values(), ids=DROPPED)
async def test_a_response_of_doubtful_length_is_the_last_of_its_connection(answer: bytes) -> None:
    async with playing(answering(answer, answer)) as upstream, outbound() as http:
        replies = [await asked(http, upstream.url) for _ in range(2)]
        assert (upstream.connections, [each.body for each in replies]) == (2, [b"abc", b"abc"])


async def test_bytes_without_a_request_close_the_connection() -> None:
    async def play(peer: Peer) -> None:
        await peer.asked()
        await peer.send(OK)
        await peer.send(OK)
        await peer.left()

    async with playing(play) as upstream, outbound() as http:
        await asked(http, upstream.url)
        assert (await asked(http, upstream.url, "POST")).body == b"ok"


async def test_a_body_may_end_with_its_connection() -> None:
    async with playing(answering(b"HTTP/1.1 200 OK\r\nX: y\r\n\r\nabc")) as upstream, outbound() as http:
        assert (await asked(http, upstream.url)).body == b"abc"


@pytest.mark.parametrize("answer", [sized(b"", b"X: y\r\n"), OK[:-2], CHUNKED], ids=["none", "a length", "chunks"])
async def test_a_response_to_head_has_no_body_despite_its_headers(answer: bytes) -> None:
    async with playing(answering(answer, OK)) as upstream, outbound() as http:
        assert (await asked(http, upstream.url, "HEAD")).body == b""
        assert (await asked(http, upstream.url)).body == b"ok"
        assert upstream.connections == 1


async def test_headers_are_found_in_any_case() -> None:
    async with playing(answering(sized(b"abc", b"X-One: 1\r\nx-ONE: 2\r\n"))) as upstream, outbound() as http:
        headers = (await asked(http, upstream.url)).headers
    assert (headers["x-one"], headers["X-One"], headers.get("Content-LENGTH")) == ("1, 2", "1, 2", "3")
    assert (dict(headers), headers.get("none")) == ({"x-one": "1, 2", "content-length": "3"}, None)


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
        asyncio.timeout(PATIENCE),
        http.request("GET", upstream.url, upstream="Shop") as response,
    ):
        while received < size:
            received += len(await response.readany())
    assert received == size
