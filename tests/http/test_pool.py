"""How connections are opened, shared, used again, and closed."""

import asyncio
import os
import signal
import time

import psutil
import pytest

from tests.http.upstream import OK, Ask, Peer, answering, asked, clients, forever, outbound, playing
from tests.waiting import PATIENCE, until
from toolchat.errors import UpstreamTimeout, UpstreamUnavailable
from toolchat.http.client import OutboundHttp


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
    left = asyncio.Event()

    async def play(peer: Peer) -> None:
        await peer.asked()
        await peer.send(begun)
        await peer.left()
        left.set()

    async with playing(play) as upstream, outbound() as http:
        task = asyncio.create_task(asked(http, upstream.url))
        await until(lambda: upstream.requests)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(left.wait(), PATIENCE)


async def test_an_unread_response_closes_its_connection() -> None:
    async def play(peer: Peer) -> None:
        await peer.asked()
        await peer.send(HEAD)
        await peer.left()

    async with playing(play) as upstream, outbound() as http:
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
    async with playing(silent) as one, playing(forever) as other, outbound(max_per_host=1) as http:
        stuck = asyncio.create_task(asked(http, one.url))
        await until(lambda: one.requests)
        second = asyncio.create_task(asked(http, one.url))
        assert (await asked(http, other.url)).body == b"ok"
        assert one.connections == 1
        await given_up(stuck, second)


async def test_the_wait_for_a_connection_is_limited() -> None:
    async with playing(silent) as upstream, outbound(max_connections=1, max_wait=0.05) as http:
        stuck = asyncio.create_task(asked(http, upstream.url))
        await until(lambda: upstream.requests)
        with pytest.raises(UpstreamTimeout, match="no connection to Shop came free in time"):
            await asked(http, upstream.url)
        await given_up(stuck)


@pytest.mark.parametrize("waiting", [False, True], ids=["while asking", "while waiting"])
async def test_a_cancelled_wait_passes_its_slot_on(waiting: bool) -> None:
    async with (
        playing(silent) as upstream,
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
    async with playing(silent) as upstream, playing(forever) as other, outbound(**limits) as http:
        stuck = asyncio.create_task(asked(http, upstream.url))
        await until(lambda: upstream.requests)
        late = asyncio.create_task(asked(http, other.url))
        await asyncio.sleep(0)
        stuck.cancel()
        time.sleep(0.06)  # noqa: ASYNC251 - the time is over in the turn of the loop in which the slot comes free
        await asyncio.wait([stuck, late])
        late.exception()
        assert [(await asked(http, other.url)).body for _ in range(2)] == [b"ok"] * 2


async def silent(peer: Peer) -> None:
    await peer.asked()
    await peer.left()


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
    async with playing(forever) as upstream, playing(silent) as mute:
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
