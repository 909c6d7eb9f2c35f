"""How connections are opened, shared, used again and closed, and where a response ends."""

import asyncio
import gzip
import os
import signal
import time
import tracemalloc
import zlib

import psutil
import pytest

from tests.http.upstream import OK, Ask, Peer, answering, asked, clients, forever, holding, outbound, playing
from tests.waiting import PATIENCE, until
from toolchat.errors import UpstreamError, UpstreamInvalid, UpstreamTimeout, UpstreamUnavailable
from toolchat.http.client import OutboundHttp
from toolchat.http.pool import MAX_BODY_BYTES


async def hangs_up(peer: Peer) -> None:
    """Answer the first request of the first connection; take any other, and hang up."""
    await peer.asked()
    if peer.number == 1:
        await peer.send(OK)
        await peer.asked()


@pytest.mark.parametrize(("method", "most"), [("GET", 2), ("PUT", 2), ("DELETE", 2), ("POST", 1), ("PATCH", 1)])
async def test_only_an_idempotent_request_is_repeated_and_only_once(method: str, most: int) -> None:
    async with playing(hangs_up) as upstream, outbound() as http:
        await asked(http, upstream.url, method)
        for _ in range(2):  # the first on a connection that was used before, the second on a new one
            upstream.requests.clear()
            with pytest.raises(UpstreamUnavailable):
                await asked(http, upstream.url, method)
            assert len(upstream.requests) == most


@pytest.mark.parametrize("method", ["GET", "OPTIONS", "PUT", "DELETE"])
async def test_an_idempotent_request_survives_a_stale_connection(method: str) -> None:
    async def stale(peer: Peer) -> None:
        await peer.asked()
        await peer.send(OK)
        await peer.asked()

    async with playing(stale) as upstream, outbound() as http:
        for _ in range(2):
            assert (await asked(http, upstream.url, method)).status == 200
        assert (len(upstream.requests), upstream.connections) == (3, 2)


async def test_a_connection_that_the_upstream_closed_meanwhile_is_not_used() -> None:
    async with playing(answering(OK)) as upstream, outbound() as http:
        await asked(http, upstream.url, "POST")
        await until(lambda: not http.connections)
        await asked(http, upstream.url, "POST")
        assert upstream.connections == 2


HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"


@pytest.mark.parametrize("begun", [b"", b"HTTP/1.1 2", HEAD, HEAD + b"abc"], ids=["none", "status", "head", "body"])
async def test_cancelling_closes_the_connection_at_once(begun: bytes) -> None:
    async with playing(holding(begun)) as upstream, outbound() as http:
        task = asyncio.create_task(asked(http, upstream.url))
        await until(lambda: upstream.requests)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: upstream.open == 0)


async def test_an_unread_response_closes_its_connection() -> None:
    async with playing(holding(HEAD)) as upstream, outbound() as http:
        async with http.request("GET", upstream.url, upstream="Shop") as response:
            assert response.status == 200
        await until(lambda: upstream.open == 0)


async def test_a_refusal_before_the_end_of_the_request_body_is_read() -> None:
    async def play(peer: Peer) -> None:
        await peer.reader.readuntil(b"\r\n\r\n")
        await peer.send(b"HTTP/1.1 413 Too large\r\nContent-Length: 2\r\n\r\nno")
        await peer.left()

    async with playing(play) as upstream, outbound() as http:
        reply = await asked(http, upstream.url, "POST", bytes(64 * 2**20))
        assert (reply.status, reply.body) == (413, b"no")
        await until(lambda: upstream.open == 0)


async def test_a_slow_reader_pauses_the_upstream() -> None:
    sent = 0

    async def play(peer: Peer) -> None:
        nonlocal sent
        await peer.asked()
        await peer.send(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(1024):
            peer.writer.write(bytes(2**16))
            await peer.writer.drain()
            sent += 2**16

    async with playing(play) as upstream, outbound() as http:
        async with http.request("GET", upstream.url, upstream="Shop") as response:
            size = len(await response.readany())
            while piece := await response.readany():
                size += len(piece)
                assert sent - size < 32 * 2**20
        assert size == 64 * 2**20


async def test_the_number_of_connections_is_limited_and_every_request_gets_one() -> None:
    most = 0

    async def play(peer: Peer) -> None:
        nonlocal most
        while True:
            await peer.asked()
            most = max(most, peer.upstream.open)
            await asyncio.sleep(0.001)
            await peer.send(OK)

    async with playing(play) as upstream, outbound(max_connections=3) as http:
        replies = await asyncio.gather(*(asked(http, upstream.url) for _ in range(30)))
        assert ({each.body for each in replies}, most, upstream.connections) == ({b"ok"}, 3, 3)


async def test_requests_get_their_connections_in_the_order_in_which_they_came() -> None:
    async with playing(forever) as upstream, outbound(max_connections=1) as http:
        await asyncio.gather(*(asked(http, f"{upstream.url}{number}") for number in range(20)))
        assert [int(each.split()[1][1:]) for each in upstream.requests] == list(range(20))


async def test_connections_can_be_limited_per_upstream() -> None:
    async with playing(holding()) as one, playing(forever) as other, outbound(max_per_host=1) as http:
        stuck = asyncio.create_task(asked(http, one.url))
        await until(lambda: one.requests)
        second = asyncio.create_task(asked(http, one.url))
        assert (await asked(http, other.url)).body == b"ok"
        assert one.connections == 1
        await given_up(stuck, second)


async def test_the_wait_for_a_connection_is_limited() -> None:
    async with playing(holding()) as upstream, outbound(max_connections=1, max_wait=0.05) as http:
        stuck = asyncio.create_task(asked(http, upstream.url))
        await until(lambda: upstream.requests)
        with pytest.raises(UpstreamTimeout, match="no connection to Shop came free in time"):
            await asked(http, upstream.url)
        await given_up(stuck)


@pytest.mark.parametrize("waiting", [False, True], ids=["while asking", "while waiting"])
async def test_a_cancelled_wait_passes_its_slot_on(waiting: bool) -> None:
    async with (
        playing(holding()) as upstream,
        playing(forever) as other,
        outbound(max_connections=1, max_per_host=1) as http,
    ):
        stuck = asyncio.create_task(asked(http, upstream.url))
        await until(lambda: upstream.requests)
        if waiting:
            second = asyncio.create_task(asked(http, other.url))
            await asyncio.sleep(0)
            await given_up(second)
        last = asyncio.create_task(asked(http, other.url))
        await given_up(stuck)
        assert (await last).body == b"ok"


async def test_a_slot_that_comes_free_at_the_moment_of_a_time_out_is_not_lost() -> None:
    limits = {"max_connections": 1, "max_per_host": 1, "max_wait": 0.05}
    async with playing(holding()) as upstream, playing(forever) as other, outbound(**limits) as http:
        stuck = asyncio.create_task(asked(http, upstream.url))
        await until(lambda: upstream.requests)
        late = asyncio.create_task(asked(http, other.url))
        await asyncio.sleep(0)
        stuck.cancel()
        time.sleep(0.06)  # noqa: ASYNC251 - the time is over in the turn of the loop in which the slot comes free
        await asyncio.wait([stuck, late])
        late.exception()
        assert [(await asked(http, other.url)).body for _ in range(2)] == [b"ok"] * 2


async def given_up(*tasks: asyncio.Task[object]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def test_expired_idle_connections_are_closed() -> None:
    async with playing(forever) as upstream, outbound(keepalive=0.03) as http:
        await asked(http, upstream.url)
        await until(lambda: upstream.open == 0)


@clients
async def test_a_connection_in_steady_use_is_replaced_at_its_age(ask: Ask) -> None:
    async with playing(forever) as upstream, outbound(max_age=0.05) as http:

        async def replaced() -> bool:
            return await ask(http, upstream.url) == b"ok" and upstream.connections > 2

        await until(replaced)
        await until(lambda: upstream.open == http.connections == 1)
    async with playing(forever) as upstream, outbound(max_age=PATIENCE) as http:
        for _ in range(50):
            await ask(http, upstream.url)
        assert upstream.connections == 1


async def test_closing_the_pool_leaves_no_socket_open() -> None:
    process = psutil.Process()
    async with playing(forever) as upstream, playing(holding()) as mute:
        before = process.num_fds()
        http = OutboundHttp()
        await asyncio.gather(*(asked(http, upstream.url) for _ in range(5)))
        stuck = asyncio.create_task(asked(http, mute.url))
        await until(lambda: mute.requests)
        await http.aclose()
        with pytest.raises(UpstreamUnavailable):
            await stuck
        with pytest.raises(UpstreamUnavailable, match="shutting down"):
            await asked(http, upstream.url)
        await until(lambda: upstream.open + mute.open == 0 and process.num_fds() <= before)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
async def test_a_forked_process_uses_no_connection_of_its_parent() -> None:
    async with playing(forever) as upstream, outbound() as http:
        await asked(http, upstream.url)
        child = os.fork()
        if child == 0:
            signal.alarm(10)
            status = asyncio.run(asked(http, upstream.url)).status
            os._exit(0 if status == 200 else 1)
        await until(lambda: os.waitpid(child, os.WNOHANG) == (child, 0))
        await asked(http, upstream.url)
        assert upstream.connections == 2


async def test_after_a_stale_connection_the_next_request_gets_a_new_one() -> None:
    async def stale(peer: Peer) -> None:
        await peer.asked()
        await peer.send(OK)
        await peer.asked()  # each connection is closed at its second request

    async with playing(stale) as upstream, outbound() as http:
        await asyncio.gather(*(asked(http, upstream.url, "POST") for _ in range(2)))
        assert upstream.connections == 2
        with pytest.raises(UpstreamUnavailable) as failed:
            await asked(http, upstream.url, "POST")
        assert failed.value.is_stale
        assert (await asked(http, upstream.url, "POST")).status == 200
        assert (upstream.connections, len(upstream.requests)) == (3, 4)


async def test_a_refused_connection_is_not_stale_though_the_one_before_it_was_kept() -> None:
    async with outbound() as http:
        async with playing(answering(OK, OK)) as upstream:
            for _ in range(2):
                await asked(http, upstream.url, "POST")
            await until(lambda: not http.connections)
        with pytest.raises(UpstreamUnavailable) as failed:
            await asked(http, upstream.url, "POST")
        assert not failed.value.is_stale


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
