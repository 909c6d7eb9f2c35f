"""Proxies and TLS of the environment: which proxy and which authorities are used, for what, and how they fail."""

import asyncio
import errno
import os
import resource
import ssl
import subprocess
import traceback
from base64 import b64encode
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from yarl import URL

from tests.http.certificates import Authority
from tests.http.upstream import Ask, Peer, Play, answering, asked, clients, forever, outbound, playing
from tests.ports import silent_port
from tests.programs import require
from tests.waiting import PATIENCE
from toolchat.errors import ConfigurationError, Overloaded, UpstreamError, UpstreamTimeout, UpstreamUnavailable
from toolchat.http.client import OutboundHttp
from toolchat.http.environment import Proxies, tls_context
from toolchat.http.failures import Cause, upstream_error

A, B = "http://a.example:1", "http://b.example:2"
USER, CREDENTIALS = "al%40ice:hush%3A%20h%2Fsh%C3%A4@", "al@ice:hush: h/shä"


def forwarding(port: int) -> Play:
    """Forward every connection to one local port: a proxy resolves names itself, so any name works."""

    async def play(peer: Peer) -> None:
        head = await peer.asked()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            if head.startswith(b"CONNECT"):
                await peer.send(b"HTTP/1.1 200 OK\r\n\r\n")
            else:
                writer.write(head)
            await asyncio.gather(copied(peer.reader, writer), copied(reader, peer.writer))
        finally:
            writer.close()

    return play


async def copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("user", ["", "alice:secret@", USER], ids=["anonymous", "user", "encoded user"])
@pytest.mark.parametrize("scheme", ["http", "https"])
@clients
async def test_a_proxy_is_used_and_looks_the_name_up(
    ask: Ask, scheme: str, user: str, trusted: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls = trusted.server("shop.example") if scheme == "https" else None
    async with playing(forever, tls=tls) as upstream, playing(forwarding(upstream.port)) as proxy:
        monkeypatch.setenv(f"{scheme}_proxy", proxy.url.replace("http://", f"http://{user}"))
        async with outbound() as http:
            assert [await ask(http, f"{scheme}://shop.example/x") for _ in range(2)] == [b"ok", b"ok"]
            assert (proxy.connections, upstream.connections) == (1, 1)
    first, *fields = proxy.requests[0].decode().split("\r\n")
    assert first == ("CONNECT shop.example:443 HTTP/1.1" if tls else "GET http://shop.example/x HTTP/1.1")
    secrets = [each.split()[2] for each in fields if each.startswith("Proxy-Authorization: Basic ")]
    named = {"": [], "alice:secret@": ["alice:secret"], USER: [CREDENTIALS]}
    assert secrets == [b64encode(each.encode()).decode() for each in named[user]]
    if tls:
        assert not [each for each in upstream.requests if b"proxy" in each.lower()]


@clients
async def test_a_proxy_may_speak_tls_itself(ask: Ask, trusted: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        playing(forever, tls=trusted.server("shop.example")) as upstream,
        playing(forwarding(upstream.port), tls=trusted.server()) as proxy,
    ):
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        async with outbound() as http:
            assert await ask(http, "https://shop.example/") == b"ok"
            assert len(proxy.requests) == 1


FAULTS: dict[str, Play] = {f"{each}": answering(b"HTTP/1.1 %d No\r\n\r\n" % each) for each in (403, 407, 502)}
FAULTS |= {"no HTTP": answering(b"garbage\r\n\r\n"), "hangs up": answering(b""), "hangs": Peer.left}


@pytest.mark.parametrize("fault", [*FAULTS, "not there"])
@clients
async def test_no_failure_shows_the_credentials_of_a_proxy(
    ask: Ask, fault: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    with silent_port() as nobody:
        async with playing(FAULTS.get(fault, answering())) as proxy:
            port = nobody if fault == "not there" else proxy.port
            monkeypatch.setenv("ALL_PROXY", f"http://{USER}127.0.0.1:{port}")
            async with outbound(connect_timeout=0.1) as http:
                with pytest.raises(UpstreamError) as caught:
                    await ask(http, "https://shop.example/")
                seen = [repr(vars(http)), repr(caught.value.log_fields), *traceback.format_exception(caught.value)]
    seen += [caplog.text, *(str(vars(each)) for each in caplog.records)]
    secrets = {"hush", "al@ice", "al%40ice", b64encode(CREDENTIALS.encode()).decode()}
    assert not [each for each in seen if any(secret in each for secret in secrets)]
    assert str(port) not in caught.value.detail
    way = (
        "127.0.0.1:{} on the way to shop.example:443"
        if fault == "not there"
        else "shop.example:443 through 127.0.0.1:{}"
    )
    assert way.format(port) in str(caught.value.log_fields["cause"])
    assert isinstance(caught.value, UpstreamUnavailable | UpstreamTimeout)


@pytest.mark.parametrize(
    ("variables", "https", "http"),
    [
        ({}, "", ""),
        ({"HTTPS_PROXY": A}, A, ""),
        ({"HTTP_PROXY": A}, "", A),
        ({"ALL_PROXY": A}, A, A),
        ({"ALL_PROXY": A, "HTTPS_PROXY": B}, B, A),
        ({"HTTPS_PROXY": A, "https_proxy": B}, B, ""),
        ({"HTTPS_PROXY": A, "https_proxy": ""}, "", ""),
        ({"HTTPS_PROXY": ""}, "", ""),
        ({"HTTP_PROXY": A, "HTTPS_PROXY": A, "NO_PROXY": "*"}, "", ""),
        ({"HTTP_PROXY": A, "NO_PROXY": "*", "no_proxy": "other.example"}, "", A),
        ({"HTTPS_PROXY": "a.example:1"}, A, ""),
        ({"HTTPS_PROXY": "http://a.example"}, "http://a.example", ""),
        ({"HTTPS_PROXY": "http://[fd00::1]:3128/"}, "http://[fd00::1]:3128", ""),
    ],
)
def test_small_letters_win_and_the_scheme_wins_over_all(
    variables: dict[str, str], https: str, http: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    found = [Proxies().find(URL(f"{scheme}://shop.example/")) for scheme in ("https", "http")]
    assert [each and each.url for each in found] == [URL(each) if each else None for each in (https, http)]


def is_direct(no_proxy: str, url: str) -> bool:
    return Proxies({"http": A, "https": A, "no": no_proxy}).find(URL(url)) is None


@pytest.mark.parametrize(
    ("no_proxy", "direct", "by_proxy"),
    [
        ("", "", "shop.example"),
        ("shop.example", "shop.example a.shop.example a.b.shop.example shop.example:81", "myshop.example example"),
        (".shop.example", "shop.example a.shop.example", "myshop.example"),
        ("*.shop.example", "shop.example a.shop.example", "myshop.example"),
        ("shop.example.", "shop.example shop.example. a.shop.example", "shop.example.org"),
        ("SHOP.Example", "shop.example Shop.EXAMPLE", "other.example"),
        (" a.example , b.example,,\tc.example ", "a.example b.example c.example", "d.example"),
        ("a.example b.example", "a.example b.example", "c.example"),
        ("shop.example:8080", "shop.example:8080 a.shop.example:8080", "shop.example shop.example:80"),
        ("shop.example:80", "shop.example shop.example:80", "shop.example:8080"),
        ("*", "shop.example 192.0.2.1 [2001:db8::1]", ""),
        ("*:81", "shop.example:81 192.0.2.1:81", "shop.example 192.0.2.1"),
        ("192.0.2.1", "192.0.2.1", "192.0.2.10 1.192.0.2"),
        ("192.0.2.1:81", "192.0.2.1:81", "192.0.2.1"),
        ("10.0.0.0/8", "10.1.2.3 10.1.2.3:81", "11.0.0.1 10.example"),
        ("10.0.0.0/8:81", "10.1.2.3:81", "10.1.2.3 11.0.0.1:81"),
        ("10.1.2.3/8", "10.200.0.1", "11.0.0.1"),
        ("2001:db8::1", "[2001:db8::1] [2001:0db8:0:0::1]", "[2001:db8::2]"),
        ("[2001:db8::1]", "[2001:db8::1]", "[2001:db8::2]"),
        ("[2001:db8::1]:81", "[2001:db8::1]:81", "[2001:db8::1]"),
        ("[fe80::/10]:81", "[fe80::1]:81", "[fe80::1]"),
        ("fe80::/10,shop.example", "[fe80::1] [febf::1] shop.example", "[fec0::1] 192.0.2.1"),
        ("::1,localhost", "", "shop.example [2001:db8::1]"),
        ("bücher.example", "bücher.example xn--bcher-kva.example", "shop.example"),
        ("other.example", "localhost a.localhost LOCALHOST. 127.0.0.1 127.9.9.9 [::1]", "localhost.example 128.0.0.1"),
    ],
)
def test_no_proxy(no_proxy: str, direct: str, by_proxy: str) -> None:
    assert [each for each in direct.split() if not is_direct(no_proxy, f"http://{each}/")] == []
    assert [each for each in by_proxy.split() if is_direct(no_proxy, f"http://{each}/")] == []


@pytest.mark.parametrize(
    "value",
    [
        "http://",
        "http://:3128",
        "socks5://hush@a.example:1080",
        "ftp://a.example",
        "http://hush:hush@a.example:99999",
        "http://hush:hush@a.example:port",
        "http://[::1",
        "://hush",
        "http://hush:h/ush@a.example:1",
        "hush:hush@:1",
        "http://us%3Aer:hush@a.example:1",
        "http:/hush.example",
        "hush",
        "0",
    ],
)
@pytest.mark.parametrize("name", ["HTTPS_PROXY", "http_proxy", "ALL_PROXY"])
def test_a_proxy_that_cannot_be_read_is_named_without_its_credentials(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError) as caught:
        OutboundHttp()
    assert str(caught.value) == f"{name.upper()}: must be the http or https URL of a proxy"
    assert "hush" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "value",
    [
        "shop.example:port",
        "shop.example:99999",
        "[x",
        "http://shop.example",
        "10.0.0.0/99",
        "198.51.100.*",
        "a*b",
        ":80",
    ],
)
def test_an_entry_of_no_proxy_without_effect_is_told(value: str, caplog: pytest.LogCaptureFixture) -> None:
    proxies = Proxies({"http": A, "no": f"a.example,{value},b.example"})
    assert [proxies.route(URL(f"http://{each}.example")) for each in "ac"] == [
        "directly (NO_PROXY)",
        "through a.example:1",
    ]
    assert [each.getMessage() for each in caplog.records] == [f"NO_PROXY has entries without effect: {value}"]


@pytest.mark.parametrize("status", [401, 403, 407, 502])
@clients
async def test_an_answer_to_plain_http_may_be_that_of_the_proxy(
    ask: Ask, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with playing(answering(b"HTTP/1.1 %d No\r\nContent-Length: 0\r\n\r\n" % status)) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        async with outbound() as http:
            if status == 407:
                with pytest.raises(UpstreamUnavailable) as caught:
                    await ask(http, "http://shop.example/")
                told = f"refused by the proxy (407): shop.example:80 through 127.0.0.1:{proxy.port}"
                assert caught.value.log_fields["cause"] == told
            else:
                async with http.request("GET", "http://shop.example/", upstream="Shop") as response:
                    assert response.proxy == f"through 127.0.0.1:{proxy.port}"


NAMES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")


def folder_of(authority: Authority, folder: Path) -> Path:
    """A folder as OpenSSL reads it."""
    (folder / "own.pem").write_bytes(authority.file.read_bytes())
    subprocess.run([require("openssl"), "rehash", folder], check=True)
    return folder


# Variables with what they name: this authority as a file or a folder, another authority; whether this is trusted then.
ENVIRONMENTS = [
    ({}, False),
    ({"SSL_CERT_FILE": "file"}, True),
    ({"SSL_CERT_DIR": "folder"}, True),
    ({"SSL_CERT_DIR": "/usr:folder"}, True),
    ({"REQUESTS_CA_BUNDLE": "file"}, True),
    ({"REQUESTS_CA_BUNDLE": "folder"}, True),
    ({"SSL_CERT_FILE": "other", "SSL_CERT_DIR": "folder"}, True),
    ({"SSL_CERT_FILE": "file", "SSL_CERT_DIR": "folder"}, True),
    ({"SSL_CERT_FILE": "file", "REQUESTS_CA_BUNDLE": "other"}, True),
    ({"SSL_CERT_FILE": "other", "REQUESTS_CA_BUNDLE": "file"}, False),
    ({"SSL_CERT_FILE": "", "SSL_CERT_DIR": "", "REQUESTS_CA_BUNDLE": "file"}, True),
]


@pytest.mark.parametrize(("variables", "is_trusted"), ENVIRONMENTS)
async def test_the_authorities_of_the_environment_are_trusted(
    variables: dict[str, str], is_trusted: bool, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rehashed").mkdir()
    (tmp_path / "other").mkdir()
    paths = {"file": authority.file, "other": Authority(tmp_path / "other").file}
    for name, value in variables.items():
        if "folder" in value:
            paths["folder"] = folder_of(authority, tmp_path / "rehashed")
        parts = [str(paths.get(each, each)) for each in value.split(":")]
        monkeypatch.setenv(name, ":".join(parts))
    async with playing(forever, tls=authority.server()) as upstream, outbound() as http:
        if is_trusted:
            assert (await asked(http, upstream.url)).body == b"ok"
        else:
            with pytest.raises(UpstreamUnavailable):
                await asked(http, upstream.url)


@pytest.mark.parametrize("blank", [[], ["SSL_CERT_FILE"], ["SSL_CERT_FILE", "SSL_CERT_DIR"], NAMES], ids=str)
def test_a_variable_that_is_set_to_nothing_leaves_the_authorities_of_the_system(
    blank: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    system = ssl.create_default_context().cert_store_stats()
    for name in blank:
        monkeypatch.setenv(name, "")
    assert tls_context().cert_store_stats() == system


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
def test_a_file_replaces_all_authorities_of_the_system(
    name: str, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, str(authority.file))
    assert len(tls_context().get_ca_certs()) == 1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("fault", ["missing", "empty", "no certificate", "folder without hashed names"])
def test_authorities_that_cannot_be_read_are_named(
    name: str, fault: str, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "authorities"
    if fault == "folder without hashed names":
        path.mkdir()
        (path / "own.pem").write_bytes(authority.file.read_bytes())
    elif fault != "missing":
        path.write_text("" if fault == "empty" else "-----BEGIN X-----")
    monkeypatch.setenv(name, str(path))
    with pytest.raises(ConfigurationError, match=rf"^{name}: {path}: [^\n]+$"):
        OutboundHttp()


async def test_an_authority_that_python_would_refuse_for_its_form_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lax = Authority(tmp_path, strict=False)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(lax.file))
    async with playing(forever, tls=lax.server()) as upstream, outbound() as http:
        assert (await asked(http, upstream.url)).body == b"ok"


async def shown(http: OutboundHttp, url: str, certificate: Path | None) -> bytes:
    tls = tls_context(str(certificate)) if certificate else None
    async with asyncio.timeout(PATIENCE), http.request("POST", url, upstream="Shop", tls=tls) as response:
        return await response.read()


async def test_a_certificate_is_shown_only_by_the_requests_that_have_it(trusted: Authority) -> None:
    async with playing(forever, tls=trusted.server(of_clients=True)) as upstream, outbound() as http:
        assert await shown(http, upstream.url, trusted.certificate("client")) == b"ok"
        with pytest.raises(UpstreamUnavailable) as caught:
            await shown(http, upstream.url, None)
        assert str(caught.value.log_fields["cause"]).startswith((Cause.TLS, Cause.RESET))
        assert len(upstream.requests) == 1


def test_a_certificate_that_cannot_be_used_is_named(authority: Authority, tmp_path: Path) -> None:
    one, other = (str(authority.certificate(each)) for each in ("one", "other"))
    locked = str(authority.certificate("locked", password=b"secret"))
    for files in ((f"{tmp_path}/none",), (str(authority.file),), (one, other), (one, f"{tmp_path}/none"), (locked,)):
        with pytest.raises(ConfigurationError, match=rf"^client certificate: {files[0]}: [^\n]+$"):
            tls_context(*files)


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


async def test_a_connection_without_a_free_file_is_our_own_overload() -> None:
    async with playing(forever) as upstream, outbound() as http:
        with no_file_left(), pytest.raises(Overloaded, match="no open file left") as refused:
            await asked(http, upstream.url)
        assert (refused.value.code, refused.value.retry_after) == ("overloaded", 1)
        assert (await asked(http, upstream.url)).status == 200
    assert isinstance(upstream_error(OSError(errno.ENFILE, "file table overflow"), "Shop"), Overloaded)
