"""Requests of the outbound client, its own and those of the libraries that use it."""

from collections.abc import Mapping
from urllib.parse import parse_qsl

import pytest

from tests.http.upstream import CLIENTS, OK, Ask, Peer, asked, clients, forever, holding, outbound, playing
from tests.waiting import PATIENCE
from toolchat.errors import UpstreamInvalid, UpstreamTimeout
from toolchat.http.client import Data


async def sent(method: str, path: str = "", user: str = "", **options: object) -> tuple[str, dict[str, str], bytes]:
    """The first line, the headers in lower case, and the body of one request."""
    async with playing(forever) as upstream, outbound() as http:
        url = upstream.url.replace("http://", f"http://{user}") + path
        await http.fetch(method, url, upstream="Shop", timeout=PATIENCE, **options)  # type: ignore[arg-type]
    head, _, body = upstream.requests[0].partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    fields = [line.split(": ", 1) for line in lines]
    assert len({name.lower() for name, _ in fields}) == len(fields)
    return first, {name.lower(): value.replace(str(upstream.port), "1") for name, value in fields}, body


async def test_a_request_has_the_usual_headers_and_nothing_about_this_machine() -> None:
    assert await sent("GET") == (
        "GET / HTTP/1.1",
        {"host": "127.0.0.1:1", "accept": "*/*", "user-agent": "toolchat", "accept-encoding": "gzip, deflate"},
        b"",
    )


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("v1/x?a=1&b=%26", "/v1/x?a=1&b=%26&q=%E6%9D%AD+%26"),
        ("a b/海#part", "/a%20b/%E6%B5%B7?q=%E6%9D%AD+%26"),
        ("a\r\nX-Evil: 1", "/aX-Evil:%201?q=%E6%9D%AD+%26"),
    ],
)
async def test_an_address_is_encoded_where_it_must_be(path: str, target: str) -> None:
    first, fields, _ = await sent("GET", path, params={"q": "杭 &"})
    assert (first, "x-evil" in fields) == (f"GET {target} HTTP/1.1", False)


@pytest.mark.parametrize(
    "data", [b"", b"abc", bytes(2 * 2**20), [b"a", b"bc"], (b"a", b"bc"), {"q": "杭 &", "e": ""}], ids=type
)
async def test_a_body_is_sent_with_its_length(data: Data) -> None:
    _, fields, body = await sent("POST", data=data)
    assert (fields["content-length"], "transfer-encoding" in fields) == (str(len(body)), False)
    if isinstance(data, Mapping):
        assert fields["content-type"] == "application/x-www-form-urlencoded"
        assert dict(parse_qsl(body.decode(), keep_blank_values=True)) == data
    else:
        assert body == (data if isinstance(data, bytes) else b"".join(data))


async def test_headers_of_the_caller_take_precedence() -> None:
    _, fields, _ = await sent("GET", headers={"USER-AGENT": "shop", "Host": "other", "X-Key": "1"})
    assert (fields["user-agent"], fields["host"], fields["x-key"]) == ("shop", "other", "1")


async def test_a_user_in_the_address_signs_in() -> None:
    _, fields, _ = await sent("GET", user="al%40ice:secret@")
    assert fields["authorization"] == "Basic YWxAaWNlOnNlY3JldA=="


@pytest.mark.parametrize(
    "url",
    [
        "ftp://127.0.0.1/",
        "file:///etc/passwd",
        "/only/a/path",
        "http:///",
        "http://[::1/",
        "http://127.0.0.1:99999/",
        f"http://{'x' * 70}.example/",
    ],
)
async def test_an_invalid_url_is_refused(url: str) -> None:
    async with outbound() as http:
        with pytest.raises(UpstreamInvalid, match="the request to Shop cannot be sent"):
            await asked(http, url)


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("GET", {"X": "a\r\nY: b"}),
        ("GET", {"X": "a\nb"}),
        ("GET", {"X": "a\rb"}),
        ("GET", {"X": "a\0"}),
        ("GET", {"X\n": "a"}),
        ("GET / HTTP/1.1\r\n\r\nGET", {}),
    ],
)
async def test_a_header_or_method_that_would_smuggle_is_never_sent(method: str, headers: dict[str, str]) -> None:
    received = []

    async def play(peer: Peer) -> None:
        received.append(await peer.reader.read(1))
        await peer.send(OK)

    async with playing(play) as upstream, outbound() as http:
        with pytest.raises(UpstreamInvalid, match="the request to Shop cannot be sent"):
            await http.fetch(method, upstream.url, upstream="Shop", timeout=PATIENCE, headers=headers)
    assert not any(received)


@clients
async def test_neither_netrc_nor_cookies_are_used(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    netrc = tmp_path_factory.mktemp("home") / ".netrc"
    netrc.write_text("machine localhost login alice password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    async with playing(forever) as upstream, outbound() as http:
        url = upstream.url.replace("127.0.0.1", "localhost")  # jars take no cookies of addresses
        assert [await ask(http, url) for _ in range(2)] == [b"ok", b"ok"]
    assert not [each for each in upstream.requests if b"authorization" in each.lower() or b"cookie" in each.lower()]


async def test_all_clients_share_the_pool() -> None:
    async with playing(forever) as upstream, outbound() as http:
        for ask in CLIENTS.values():
            await ask(http, upstream.url)
        assert (http.connections, upstream.connections) == (1, 1)


@pytest.mark.parametrize("begun", [b"", OK[:-1]], ids=["silent", "begun"])
async def test_httpx_has_a_time_limit_for_each_read(begun: bytes) -> None:
    async with playing(holding(begun)) as upstream, outbound() as http:
        with pytest.raises(UpstreamTimeout, match=r"127\.0\.0\.1 could not be reached in time"):
            await http.httpx.get(upstream.url, timeout=0.1)
