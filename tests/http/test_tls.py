"""Encrypted connections: who is believed, and that they carry what plain ones do."""

import asyncio

import pytest

from tests.http.certificates import Authority
from tests.http.upstream import OK, Peer, answering, asked, outbound, playing
from tests.waiting import until
from toolchat.errors import UpstreamTimeout, UpstreamUnavailable


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
        async with asyncio.timeout(1):
            await until(lambda: upstream.open == 0)


async def test_a_handshake_takes_no_longer_than_connecting_may() -> None:
    async def play(peer: Peer) -> None:
        await peer.left()

    async with playing(play) as upstream, outbound(connect_timeout=0.1) as http:
        with pytest.raises(UpstreamTimeout, match="could not be reached in time"):
            await asked(http, upstream.url.replace("http:", "https:"))
        await until(lambda: upstream.open == 0)
