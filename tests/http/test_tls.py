"""TLS: the authorities of the environment, certificates of clients, and connections that are used again."""

import asyncio
import errno
import os
import resource
import ssl
import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.http.certificates import Authority
from tests.http.upstream import OK, answering, asked, forever, outbound, playing
from tests.programs import require
from tests.waiting import PATIENCE
from toolchat.errors import ConfigurationError, Overloaded, UpstreamUnavailable
from toolchat.http.client import OutboundHttp
from toolchat.http.environment import tls_context
from toolchat.http.failures import Cause, upstream_error

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


async def test_an_encrypted_connection_is_used_again(trusted: Authority) -> None:
    body = bytes(3 * 2**20)
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    async with playing(answering(answer, OK), tls=trusted.server()) as upstream, outbound() as http:
        assert (await asked(http, upstream.url, "POST", body)).body == body
        assert (await asked(http, upstream.url)).body == b"ok"
        assert upstream.connections == 1


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
