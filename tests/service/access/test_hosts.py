"""By which names the service may be called, and where a request came from."""

from collections.abc import Sequence

import pytest

from toolchat.errors import MisdirectedRequest
from toolchat.service.access.hosts import TrustedProxies, check_host, is_loopback


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.0.0.1:8083", "192.0.2.7:80", "[::1]", "[::1]:8083", "[fe80::1%25eth0]:80"),
        *("localhost", "LOCALHOST:1", "localhost.:8083", "app.localhost", "chat.example.org", "Chat.Example.org.:443"),
    ],
)
def test_addresses_localhost_and_the_names_that_are_allowed_are_ours(host: str) -> None:
    check_host(host, frozenset({"chat.example.org"}))


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:8083", "127.0.0.1.evil.example", "localhost.evil.example", "notlocalhost", ""),
        *("chat.example.org.evil.example", "1.2.3", "[::1", "0x7f.1", "a@127.0.0.1", "127.0.0.1/x"),
    ],
)
def test_every_other_host_name_is_rejected(host: str) -> None:
    with pytest.raises(MisdirectedRequest):
        check_host(host, frozenset({"chat.example.org"}))


@pytest.mark.parametrize(
    ("address", "only_here"),
    [
        *(("127.0.0.1", True), ("127.8.9.1", True), ("::1", True), ("[::1]", True), ("localhost", True)),
        *(("0.0.0.0", False), ("::", False), ("192.0.2.1", False), ("example.org", False), ("", False)),
    ],
)
def test_loopback_addresses_are_recognised(address: str, only_here: bool) -> None:
    assert is_loopback(address) is only_here


def scope_of(peer: str, **headers: str) -> dict[str, object]:
    lines = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return {"client": (peer, 5), "headers": lines}


@pytest.mark.parametrize(
    ("header", "value", "client"),
    [
        ("x-forwarded-for", None, "10.0.0.1"),
        ("x-forwarded-for", "203.0.113.5", "203.0.113.5"),
        ("x-forwarded-for", "198.51.100.9, 203.0.113.5, 10.0.0.2", "203.0.113.5"),
        ("x-forwarded-for", "198.51.100.9:4711", "198.51.100.9"),
        ("x-forwarded-for", "10.0.0.3, 10.0.0.2", "10.0.0.3"),
        ("forwarded", 'for=198.51.100.9, for="[2001:db8::5]:99";proto=https;by=10.0.0.2', "2001:db8::5"),
        ("forwarded", "for=unknown", "unknown"),
        ("forwarded", "proto=https", "10.0.0.1"),
        ("x-real-ip", "203.0.113.5", "203.0.113.5"),
    ],
)
def test_the_last_address_that_is_no_trusted_proxy_is_the_clients(header: str, value: str | None, client: str) -> None:
    others = dict.fromkeys(("x-forwarded-for", "forwarded", "x-real-ip"), "for=192.0.2.66, 192.0.2.66")
    sent = {name: text for name, text in (others | {header: value}).items() if text is not None}
    assert TrustedProxies(["10.0.0.0/8"], header).client(scope_of("10.0.0.1", **sent)) == client


@pytest.mark.parametrize("header", ["forwarded", "x_forwarded_for"])
def test_forwarded_headers_of_untrusted_peers_are_ignored(header: str) -> None:
    assert TrustedProxies(["10.0.0.0/8"]).client(scope_of("192.0.2.1", **{header: "for=203.0.113.5"})) == "192.0.2.1"
    assert TrustedProxies().client(scope_of("10.0.0.1", **{header: "for=203.0.113.5"})) == "10.0.0.1"


@pytest.mark.parametrize(("trusted", "header"), [((), "x-forwarded-for"), (("10.0.0.0/8",), "forwarded")])
def test_a_header_of_an_untrusted_proxy_is_mentioned_once_in_the_log(
    trusted: Sequence[str], header: str, caplog: pytest.LogCaptureFixture
) -> None:
    proxies = TrustedProxies(trusted, header)
    proxies.client(scope_of("192.0.2.1"))
    for _ in range(3):
        proxies.client(scope_of("192.0.2.1", **{header: "for=203.0.113.5"}))
    [told] = [each.getMessage() for each in caplog.records]
    assert told == f"{header} from 192.0.2.1 is ignored; if that is your proxy, list it in TRUSTED_PROXIES"


ALB = {"x_forwarded_for": "203.0.113.5", "x_forwarded_proto": "https"}
CADDY = {**ALB, "x_forwarded_host": "ai.example.org"}
TWO = {
    "x_forwarded_for": "192.0.2.66, 203.0.113.5, 10.0.0.2",
    "x_forwarded_proto": "http, https, http",
    "x_forwarded_host": "evil.example, ai.example.org, inner:8080",
}
STANDARD = {"forwarded": 'for=192.0.2.66;host=evil.example, for=203.0.113.5;proto=HTTPS;host="ai.example.org:8443"'}


@pytest.mark.parametrize(
    ("header", "sent", "origin"),
    [
        ("x-forwarded-for", {}, "http://toolchat:8083"),
        ("x-forwarded-for", ALB, "https://toolchat:8083"),
        ("x-forwarded-for", {"x_forwarded_proto": "https"}, "https://toolchat:8083"),
        ("x-forwarded-for", CADDY, "https://ai.example.org"),
        ("x-forwarded-for", CADDY | {"x_forwarded_proto": "wss"}, "http://ai.example.org"),
        ("x-forwarded-for", TWO, "https://ai.example.org"),
        ("x-forwarded-for", TWO | {"x_forwarded_proto": "https"}, "https://ai.example.org"),
        ("x-forwarded-for", STANDARD, "http://toolchat:8083"),
        ("x-real-ip", {**CADDY, "x_real_ip": "203.0.113.5"}, "https://ai.example.org"),
        ("forwarded", STANDARD, "https://ai.example.org:8443"),
        (
            "forwarded",
            {"forwarded": STANDARD["forwarded"] + ", for=10.0.0.2;proto=http"},
            "https://ai.example.org:8443",
        ),
        ("forwarded", CADDY | {"forwarded": "for=203.0.113.5"}, "http://toolchat:8083"),
        ("x-forwarded-for", {"x_forwarded_host": 'a", x="/b'}, "http://x%3D%22%2Fb"),
    ],
)
def test_the_service_is_called_as_the_proxy_says_that_names_the_client(
    header: str, sent: dict[str, str], origin: str
) -> None:
    proxies = TrustedProxies(["10.0.0.0/8"], header)
    assert proxies.origin({"scheme": "http", **scope_of("10.0.0.1", host="toolchat:8083", **sent)}) == origin
    direct = {"scheme": "http", **scope_of("192.0.2.1", host="toolchat:8083", **sent)}
    assert proxies.origin(direct) == "http://toolchat:8083"
