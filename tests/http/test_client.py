"""Requests of the outbound client, its own and those of httpx."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from urllib.parse import parse_qsl

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.http.upstream import asked, forever, outbound, playing
from tests.ports import silent_port
from tests.serving import serving
from tests.waiting import PATIENCE
from toolchat.errors import UpstreamError, UpstreamInvalid, UpstreamTimeout, UpstreamUnavailable
from toolchat.http.client import OutboundHttp
from toolchat.http.response_parser import MAX_BODY_BYTES


async def sent(method: str, path: str = "", user: str = "", **options: object) -> tuple[str, dict[str, str], bytes]:
    """The first line, the headers in lower case, and the body of one request."""
    async with playing(forever) as upstream, outbound() as http:
        url = upstream.url.replace("http://", f"http://{user}") + path
        await http.fetch(method, url, upstream="Shop", timeout=60, **options)  # type: ignore[arg-type]
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
        ("v1/x?a=1&b=%2F", "/v1/x?a=1&b=%2F&q=%E6%9D%AD+%26"),
        ("a b/海#part", "/a%20b/%E6%B5%B7?q=%E6%9D%AD+%26"),
        ("a\r\nX-Evil: 1", "/aX-Evil:%201?q=%E6%9D%AD+%26"),
    ],
)
async def test_an_address_is_encoded_where_it_must_be(path: str, target: str) -> None:
    first, fields, _ = await sent("GET", path, params={"q": "杭 &"})
    assert (first, "x-evil" in fields) == (f"GET {target} HTTP/1.1", False)


@pytest.mark.parametrize(
    ("data", "length"), [(b"", "0"), (b"abc", "3"), ({"q": "杭 &", "e": ""}, "18")], ids=["none", "bytes", "form"]
)
async def test_a_body_is_sent_with_its_length(data: bytes | Mapping[str, str], length: str) -> None:
    _, fields, body = await sent("POST", data=data)
    assert (fields["content-length"], "transfer-encoding" in fields) == (length, False)
    if not isinstance(data, bytes):
        assert fields["content-type"] == "application/x-www-form-urlencoded"
        assert dict(parse_qsl(body.decode(), keep_blank_values=True)) == data


async def test_framing_headers_of_the_caller_are_ignored_and_all_others_sent() -> None:
    given = {"Content-Length": "9", "transfer-encoding": "chunked", "Accept-Encoding": "br", "Expect": "100-continue"}
    _, fields, body = await sent("POST", data=b"abc", headers=given | {"USER-AGENT": "shop", "Host": "other"})
    assert (fields["content-length"], fields["accept-encoding"], body) == ("3", "gzip, deflate", b"abc")
    assert (fields["user-agent"], fields["host"], fields.keys() & {"transfer-encoding", "expect"}) == (
        "shop",
        "other",
        set(),
    )


async def test_a_user_in_the_address_signs_in() -> None:
    _, fields, _ = await sent("GET", user="al%40ice:secret@")
    assert fields["authorization"] == "Basic YWxAaWNlOnNlY3JldA=="


@pytest.mark.parametrize(
    ("url", "headers"),
    [
        ("ftp://127.0.0.1/", {}),
        ("/only/a/path", {}),
        ("http:///", {}),
        ("http://a b/", {}),
        ("http://[::1/", {}),
        ("http://127.0.0.1:99999/", {}),
        (f"http://{'x' * 70}.example/", {}),
        ("http://127.0.0.1:9/", {"X": "a\r\nY: b"}),
        ("http://127.0.0.1:9/", {"X\n": "a"}),
        ("http://127.0.0.1:9/", {"": "a"}),
        ("http://127.0.0.1:9/", {"X": "a\0"}),
    ],
)
async def test_an_invalid_url_method_or_header_is_refused(url: str, headers: dict[str, str]) -> None:
    async with outbound() as http:
        with pytest.raises(UpstreamInvalid, match="the request to Shop cannot be sent"):
            await http.fetch("GET", url, upstream="Shop", timeout=60, headers=headers)


async def test_neither_proxies_nor_netrc_nor_cookies_are_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    netrc = tmp_path_factory.mktemp("home") / ".netrc"
    netrc.write_text("machine 127.0.0.1 login alice password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")
    async with playing(forever) as upstream, outbound() as http:
        for _ in range(2):
            await asked(http, upstream.url)
            await http.httpx.get(upstream.url)
    assert not [each for each in upstream.requests if b"authorization" in each.lower() or b"cookie" in each.lower()]


async def cookie(request: Request) -> Response:
    response = PlainTextResponse(request.headers.get("cookie", "no cookie"))
    response.set_cookie("session", "secret")
    return response


async def moved(request: Request) -> Response:
    return RedirectResponse("/cookie")


async def endless(request: Request) -> Response:
    async def pieces() -> AsyncGenerator[bytes, None]:
        for _ in range(MAX_BODY_BYTES // 2**16 + 2):
            yield b"x" * 2**16

    return StreamingResponse(pieces())


async def silent(request: Request) -> Response:
    await asyncio.Event().wait()
    raise AssertionError("nothing is answered")


async def begun(request: Request) -> Response:
    async def pieces() -> AsyncGenerator[bytes, None]:
        yield b"x"
        await asyncio.Event().wait()

    return StreamingResponse(pieces())


UPSTREAM = Starlette(routes=[Route(f"/{each.__name__}", each) for each in (cookie, moved, endless, silent, begun)])


@pytest.mark.parametrize(
    ("path", "kind", "told"),
    [
        ("/moved", UpstreamInvalid, "the upstream answered with a redirect, which is never followed"),
        ("/endless", UpstreamInvalid, f"Shop sent more than {MAX_BODY_BYTES} bytes"),
        ("/silent", UpstreamTimeout, "Shop could not be reached in time"),
        ("/begun", UpstreamTimeout, "Shop could not be reached in time"),
    ],
)
async def test_errors_are_those_of_the_service(path: str, kind: type[UpstreamError], told: str) -> None:
    http = OutboundHttp()
    async with serving(UPSTREAM) as url:
        timeout = 0.2 if path in ("/silent", "/begun") else PATIENCE
        with pytest.raises(kind) as caught:
            await http.httpx.get(f"{url}{path}", extensions={"upstream": "Shop"}, timeout=timeout)
        await http.aclose()
    assert caught.value.detail == told


async def test_an_upstream_that_is_not_there_is_named_by_its_host() -> None:
    http = OutboundHttp()
    with silent_port() as port, pytest.raises(UpstreamUnavailable, match=r"127\.0\.0\.1 could not be reached"):
        await http.httpx.get(f"http://127.0.0.1:{port}/")
    await http.aclose()


async def test_cookies_are_not_stored() -> None:
    http = OutboundHttp()
    async with serving(UPSTREAM) as url:
        texts = [(await http.httpx.get(f"{url}/cookie")).text for _ in range(2)]
        await http.aclose()
    assert texts == ["no cookie", "no cookie"]


async def test_both_clients_share_the_pool() -> None:
    http = OutboundHttp()
    async with serving(UPSTREAM) as url:
        await http.httpx.get(f"{url}/cookie")
        await http.fetch("GET", f"{url}/cookie", upstream="Shop", timeout=PATIENCE)
        assert len(http._pool._connections) == 1
        await http.aclose()
