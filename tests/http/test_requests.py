"""What goes over the wire, whatever a caller gives."""

from collections.abc import Mapping
from urllib.parse import parse_qsl

import pytest

from tests.http.upstream import asked, forever, outbound, playing
from toolchat.errors import UpstreamInvalid


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
