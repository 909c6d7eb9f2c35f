"""Opening connections: certificates, and open files."""

import asyncio
import errno
import os
import resource
import socket
from collections.abc import Generator
from contextlib import contextmanager, suppress

import pytest

from tests.http.certificates import Authority
from tests.http.upstream import OK, Peer, answering, asked, forever, outbound, playing
from tests.models.dashscope.playing import SILENCE, asking, played
from tests.models.responding import response_of
from tests.waiting import until
from toolchat.errors import Overloaded, UpstreamTimeout, UpstreamUnavailable
from toolchat.http.connections import exhaustion_error


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def believed(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> Authority:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    return authority


async def test_an_encrypted_connection_is_used_again(believed: Authority) -> None:
    body = bytes(3 * 2**20)
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    async with playing(answering(answer, OK), tls=believed.server()) as upstream, outbound() as http:
        assert (await asked(http, upstream.url, "POST", body)).body == body
        assert (await asked(http, upstream.url)).body == b"ok"
        assert upstream.connections == 1


@pytest.mark.parametrize(
    ("address", "days", "reason"),
    [("127.0.0.2", 10, "IP address mismatch"), ("127.0.0.1", -1, "certificate has expired")],
)
async def test_an_invalid_certificate_is_reported(believed: Authority, address: str, days: int, reason: str) -> None:
    async with playing(answering(OK), tls=believed.server(address, days)) as upstream, outbound() as http:
        with pytest.raises(UpstreamUnavailable) as caught:
            await asked(http, upstream.url)
    assert caught.value.detail == f"Shop showed a certificate that is not trusted: {reason}"
    assert (caught.value.retryable, upstream.requests) == (False, [])


async def test_an_unknown_certificate_authority_is_not_trusted(authority: Authority) -> None:
    async with playing(answering(OK), tls=authority.server()) as upstream, outbound() as http:
        with pytest.raises(UpstreamUnavailable, match="not trusted: unable to get local issuer certificate"):
            await http.httpx.get(upstream.url, extensions={"upstream": "Shop"})


async def test_a_server_that_does_not_encrypt_is_unavailable() -> None:
    async def play(peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 400 Bad\r\n\r\n")
        await peer.left()

    async with playing(play) as upstream, outbound() as http:
        with pytest.raises(UpstreamUnavailable):
            await asked(http, upstream.url.replace("http:", "https:"))
        await until(lambda: upstream.open == 0)


async def test_cancelling_closes_an_encrypted_connection_at_once(believed: Authority) -> None:
    async def play(peer: Peer) -> None:
        await peer.asked()
        await peer.left()

    async with playing(play, tls=believed.server()) as upstream, outbound() as http:
        task = asyncio.create_task(asked(http, upstream.url))
        await until(lambda: upstream.requests)
        task.cancel()
        await until(lambda: upstream.open == 0)


async def test_a_handshake_takes_no_longer_than_connecting_may() -> None:
    async def play(peer: Peer) -> None:
        await peer.left()

    async with playing(play) as upstream, outbound(connect_timeout=0.1) as http:
        with pytest.raises(UpstreamTimeout, match="could not be reached in time"):
            await asked(http, upstream.url.replace("http:", "https:"))
        await until(lambda: upstream.open == 0)


@contextmanager
def no_file_left() -> Generator[None, None, None]:
    """Use up all files that the process may open; there are few more than it has."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = os.dup(0)
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, hard))
    taken = [highest]
    try:
        with suppress(OSError):
            while True:
                taken.append(os.dup(0))
        yield
    finally:
        for each in taken:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("named", [False, True], ids=["address", "name"])
async def test_a_connection_without_a_free_file_is_our_own_overload(named: bool) -> None:
    async with playing(forever) as upstream, outbound() as http:
        url = upstream.url.replace("127.0.0.1", "shop.invalid") if named else upstream.url
        with no_file_left(), pytest.raises(Overloaded) as refused:
            await asked(http, url)
        assert (refused.value.code, refused.value.retry_after) == ("overloaded", 1)
        assert "no open file left" in refused.value.detail
        assert (await asked(http, upstream.url)).status == 200


@pytest.mark.parametrize(
    "error", [OSError(errno.EINVAL, "Invalid argument"), socket.gaierror(socket.EAI_AGAIN, "Try again")], ids=repr
)
def test_a_lookup_without_a_free_file_is_our_own_overload_whatever_its_error(error: OSError) -> None:
    assert exhaustion_error(error) is None
    with no_file_left():
        assert exhaustion_error(error) is not None


@pytest.mark.parametrize("error", [ConnectionRefusedError(), TimeoutError()], ids=repr)
def test_an_upstream_that_refused_a_connection_is_to_blame_even_without_a_free_file(error: OSError) -> None:
    with no_file_left():
        assert exhaustion_error(error) is None


async def test_dashscopes_sdk_hands_on_the_same() -> None:
    async with played(SILENCE) as (model, _):
        with pytest.raises(UpstreamUnavailable):  # all that opens files at its first use has done so
            await response_of(model, asking())
        with no_file_left(), pytest.raises(Overloaded):
            await response_of(model, asking())
