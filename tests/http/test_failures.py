"""Why a connection failed: every cause, by sockets, as operators read it in the log."""

import re
import socket
from collections.abc import Generator
from contextlib import contextmanager, suppress

import pytest

from tests.http.certificates import Authority
from tests.http.upstream import CLIENTS, OK, Peer, Play, answering, asked, outbound, playing
from tests.ports import silent_port
from tests.waiting import PATIENCE
from toolchat.errors import UpstreamError, UpstreamTimeout, UpstreamUnavailable
from toolchat.http.client import OutboundHttp
from toolchat.http.failures import Cause, describe_failure


def resetting(begun: bytes) -> Play:
    async def play(peer: Peer) -> None:
        await peer.reader.read(1)
        await peer.send(begun)
        peer.reset()

    return play


def answering_at_once(greeting: bytes) -> Play:
    """Hang up without a reset, as a load balancer without a server behind it."""

    async def play(peer: Peer) -> None:
        await peer.reader.read(1000)
        await peer.send(greeting)

    return play


def talking(greeting: bytes) -> Play:
    async def play(peer: Peer) -> None:
        await peer.send(greeting)
        await peer.left()

    return play


REFUSED_BY_PROXY = b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n"
# The URL, what its server or proxy does, and the cause. {silent} and {deaf} are ports without a server.
LOST: list[tuple[str, Play, Cause, str]] = [
    ("http://nobody.invalid:80", answering(), Cause.NAME_NOT_FOUND, "name or service not known"),
    ("http://127.0.0.1:{silent}", answering(), Cause.REFUSED, ""),
    ("https://127.0.0.1:{silent}", answering(), Cause.REFUSED, ""),
    ("http://localhost:{silent}", answering(), Cause.REFUSED, ""),  # two addresses, each refused
    ("http://224.0.0.1:80", answering(), Cause.NO_ROUTE, ""),
    ("http://127.0.0.1:{deaf}", answering(), Cause.CONNECT_TIMEOUT, ""),
    ("https://127.0.0.1:{port}", Peer.left, Cause.CONNECT_TIMEOUT, ""),
    ("http://127.0.0.1:{port}", answering(b""), Cause.RESET, ""),
    ("http://127.0.0.1:{port}", answering(b"HTTP/1.1 2"), Cause.RESET, ""),
    ("http://127.0.0.1:{port}", resetting(b""), Cause.RESET, ""),
    ("http://127.0.0.1:{port}", resetting(b"HTTP/1.1 2"), Cause.RESET, ""),
    ("https://127.0.0.1:{port}", resetting(b"\x16\x03"), Cause.RESET, ""),
    ("https://127.0.0.1:{port}", talking(b"HTTP/1.1 400 Bad\r\n\r\n"), Cause.PLAIN_TEXT, ""),
    ("https://127.0.0.1:{port}", talking(b"SSH-2.0-OpenSSH_9.2p1\r\n"), Cause.PLAIN_TEXT, ""),
    ("https://127.0.0.1:{port}", talking(b"220 smtp.example ESMTP\r\n"), Cause.PLAIN_TEXT, ""),
    ("https://127.0.0.1:{port}", talking(b"\x15\x03\x01\x00\x02\x02\x28"), Cause.TLS, ".*alert handshake failure"),
    ("https://127.0.0.1:{port}", answering_at_once(b""), Cause.RESET, ""),
    ("https://127.0.0.1:{port}", answering_at_once(b"\x16\x03"), Cause.RESET, ""),
    ("https://shop.example:443", answering(REFUSED_BY_PROXY), Cause.PROXY, "407"),
    ("https://shop.example:443", answering(b"SSH-2.0-OpenSSH_9.2p1\r\n"), Cause.PROXY, "it answers with something .*"),
    ("https://shop.example:443", answering(b"HTTP/1.1 200 OK\r\n\r\n"), Cause.RESET, ""),
    ("https://shop.example:443", answering(b""), Cause.RESET, ""),
]
# The authority that is trusted, the certificate's address, and its days.
CERTIFICATES = [
    (True, "127.0.0.2", 10, "IP address mismatch"),
    (True, "shop.example", 10, "IP address mismatch"),
    (True, "127.0.0.1", -1, "certificate has expired"),
    (False, "127.0.0.1", 10, "unable to get local issuer certificate"),
]


@contextmanager
def deaf() -> Generator[int, None, None]:
    """A port that takes no further connection and refuses none, as behind a firewall."""
    with socket.socket() as listener, socket.socket() as first, socket.socket() as second:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for each in (first, second):
            each.setblocking(False)
            with suppress(BlockingIOError):
                each.connect(listener.getsockname())
        yield listener.getsockname()[1]


async def failure_of(url: str, **limits: float) -> UpstreamError:
    """The error of a request; what it tells clients has nothing about the connection."""
    async with outbound(**limits) as http:
        with pytest.raises((UpstreamUnavailable, UpstreamTimeout)) as caught:
            await asked(http, url, "POST")
    is_late = isinstance(caught.value, UpstreamTimeout)
    lost = "could not be reached in time" if is_late else "could not be reached, or the connection was lost"
    assert caught.value.detail == f"Shop {lost}"
    return caught.value


@pytest.mark.parametrize(("url", "play", "cause", "reason"), LOST)
async def test_the_cause_of_a_lost_connection(
    url: str, play: Play, cause: Cause, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with deaf() as mute, silent_port() as silent:
        async with playing(play) as upstream:
            monkeypatch.setenv("HTTPS_PROXY", upstream.url)
            address = url.format(deaf=mute, silent=silent, port=upstream.port)
            waits = cause is Cause.CONNECT_TIMEOUT
            told = (await failure_of(address, connect_timeout=0.1 if waits else PATIENCE)).log_fields["cause"]
            way = f" through 127.0.0.1:{upstream.port}" if "shop" in url else ""
    way = " directly (this machine)" if re.match("https://(127|local)", url) else way
    why = rf" \({reason}\)" if reason else ""
    assert re.fullmatch(f"{cause}{why}: {re.escape(address.partition('//')[2] + way)}", str(told)), told


@pytest.mark.parametrize(("is_known", "address", "days", "reason"), CERTIFICATES)
async def test_the_reason_why_a_certificate_is_not_trusted(
    is_known: bool, address: str, days: int, reason: str, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_known:
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    async with playing(answering(OK), tls=authority.server(address, days)) as upstream:
        error = await failure_of(upstream.url)
        assert error.log_fields["cause"] == f"{Cause.TLS} ({reason}): 127.0.0.1:{upstream.port}"
        assert (error.retryable, upstream.requests) == (False, [])


def test_every_cause_is_among_these() -> None:
    assert {cause for _, _, cause, _ in LOST} == set(Cause) - {Cause.NOT_PUBLIC}


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "[::ffff:10.0.0.1]", "224.0.0.1"])
async def test_where_only_public_addresses_are_allowed_no_other_is_connected_to(host: str) -> None:
    http = OutboundHttp(public_only=True)
    with pytest.raises(UpstreamUnavailable) as refused:
        await http.fetch("POST", f"http://{host}:9/", upstream="hook", timeout=10)
    await http.aclose()
    assert str(refused.value.log_fields["cause"]).startswith(f"{Cause.NOT_PUBLIC}: ")


async def test_a_lost_connection_of_a_library_has_the_same_cause() -> None:
    with silent_port() as port:
        async with outbound() as http:
            for ask in CLIENTS.values():
                with pytest.raises(UpstreamUnavailable) as caught:
                    await ask(http, f"http://127.0.0.1:{port}/")
                assert caught.value.log_fields["cause"] == f"{Cause.REFUSED}: 127.0.0.1:{port}"


@pytest.mark.parametrize("numbers", [(111, 101), (101, 111)])
def test_a_refusal_by_one_of_several_addresses_is_the_cause(numbers: tuple[int, int]) -> None:
    error = OSError("Multiple exceptions: " + ", ".join(f"[Errno {each}] no" for each in numbers))
    assert describe_failure(error, "shop.example:1") == f"{Cause.REFUSED}: shop.example:1"
