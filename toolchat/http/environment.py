"""The network as the environment describes it: proxies, and the authorities whose certificates are trusted."""

import logging
import os
import re
import ssl
from collections.abc import Callable, Mapping
from functools import cache, lru_cache, partial
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import NamedTuple
from urllib.request import getproxies

from aiohttp import encode_basic_auth
from yarl import URL

from toolchat.errors import ConfigurationError

_log = logging.getLogger(__name__)
_HOST = re.compile(r"[\w-]+(\.[\w-]+)*")


class Proxy(NamedTuple):
    """A proxy, and the headers with its credentials."""

    url: URL
    request_headers: Mapping[str, str]
    """Of a request to an http server."""
    connect_headers: Mapping[str, str]
    """Of the ``CONNECT`` to an https server, which never sees them."""


class Proxies:
    """The proxies of ``HTTPS_PROXY``, ``HTTP_PROXY``, ``ALL_PROXY`` and ``NO_PROXY``, read once.

    A name in small letters takes precedence. ``NO_PROXY`` has hosts, networks such as ``10.0.0.0/8``, or ``*``, each
    with or without a port; a host covers its subdomains, and other entries are logged and have no effect. A loopback
    address is never reached by a proxy.

    Args:
        variables: the values by ``https``, ``http``, ``all`` and ``no``; by default those of the environment.

    Raises:
        ConfigurationError: a proxy's URL cannot be read.
    """

    def __init__(self, variables: Mapping[str, str] | None = None) -> None:
        values = getproxies() if variables is None else variables
        named = {scheme: scheme if scheme in values else "all" for scheme in ("https", "http")}
        self._by_scheme = {
            scheme: _read_proxy(name, values[name], scheme) for scheme, name in named.items() if name in values
        }
        entries = values.get("no", "").replace(",", " ").split()
        read = [_Exception.read(each) for each in entries]
        self._exceptions = [each for each in read if each]
        if unusable := [entry for entry, each in zip(entries, read, strict=True) if each is None]:
            _log.warning("NO_PROXY has entries without effect: %s", " ".join(unusable))
        self._find = lru_cache(256)(self._choose)

    def find(self, url: URL) -> Proxy | None:
        """Return the proxy that leads to a URL; ``None`` without one."""
        return self._find(url.origin())[0] if self._by_scheme else None

    def route(self, url: URL) -> str:
        """Describe the way to a URL, such as "through proxy.example:3128"; empty if no proxy is set for it."""
        return self._find(url.origin())[1]

    def _choose(self, origin: URL) -> tuple[Proxy | None, str]:
        proxy = self._by_scheme.get(origin.scheme)
        if proxy is None:
            return None, ""
        host = (origin.host or "").lower().rstrip(".")
        if _is_loopback(host):
            return None, "directly (this machine)"
        if any(each.covers(host, origin.port) for each in self._exceptions):
            return None, "directly (NO_PROXY)"
        return proxy, f"through {proxy.url.host}:{proxy.url.port}"


def _read_proxy(name: str, value: str, scheme: str) -> Proxy:
    try:
        url = URL(value if "://" in value else f"http://{value}")
        # Words such as "none" are no hosts: without a scheme the port shows that an address is meant.
        known = url.scheme in ("http", "https") and url.host and ("://" in value or url.explicit_port)
        credentials = encode_basic_auth(url.user or "", url.password or "") if url.user or url.password else ""
    except ValueError:
        known = None
    if not known:
        raise ConfigurationError(f"{name.upper()}_PROXY: must be the http or https URL of a proxy")
    headers = {"Proxy-Authorization": credentials} if credentials else {}
    return Proxy(url.with_user(None), {} if scheme == "https" else headers, headers if scheme == "https" else {})


class _Exception(NamedTuple):
    """An entry of ``NO_PROXY``."""

    name: str
    port: int | None

    @classmethod
    def read(cls, entry: str) -> "_Exception | None":
        host, _, port = entry.rpartition(":")
        if _name_of(entry) or not port.isdecimal() or int(port) > 65535:
            host, port = entry, ""
        name = _name_of(host)
        return cls(name, int(port) if port else None) if name else None

    def covers(self, host: str, port: int | None) -> bool:
        if self.port not in (None, port):
            return False
        try:
            return ip_address(host) in ip_network(self.name)
        except ValueError:
            return self.name == "*" or host == self.name or host.endswith(f".{self.name}")


def _name_of(entry: str) -> str:
    """The network, host or ``*`` that an entry without its port names; empty if it is none."""
    if entry == "*":
        return entry
    try:
        return str(ip_network(entry.removeprefix("[").removesuffix("]"), strict=False))
    except ValueError:
        name = entry.lower().removeprefix("*").strip(".")
        return name if _HOST.fullmatch(name) else ""


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def is_public(host: str) -> bool:
    """Return whether a host is an address of the public internet, or a name that may lead to one."""
    try:
        address = ip_address(host)
    except ValueError:
        return not _is_loopback(host)
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_global and not address.is_multicast


def tls_context(
    certificate: str | None = None, key: str | None = None, *, name: str = "client certificate"
) -> ssl.SSLContext:
    """Return a context that trusts the authorities of the environment, and shows a certificate if one is given.

    ``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` replace the system's authorities, alone or together, as httpx reads them;
    without both, ``REQUESTS_CA_BUNDLE`` does, as requests reads it.

    Args:
        certificate: the file of a client's certificate, with its chain.
        key: the file of its private key, without a password; by default the same file.
        name: what an error calls the certificate.

    Raises:
        ConfigurationError: a file is missing, or holds no certificate.
    """
    named = {name: path for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if (path := os.environ.get(name))}
    if not named and (bundle := os.environ.get("REQUESTS_CA_BUNDLE")):
        named = {"REQUESTS_CA_BUNDLE": bundle}
    return _tls_context(tuple(named.items()), certificate, key, name)


@cache
def _tls_context(
    named: tuple[tuple[str, str], ...], certificate: str | None, key: str | None, name: str
) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # As before Python 3.13, whose strict check refuses the authorities of many companies' proxies.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.set_alpn_protocols(["http/1.1"])
    if not named:
        _load_system_authorities(context)
    for variable, path in named:
        _load(variable, path, partial(_load_authorities, context, path))
    if certificate:
        # The empty password: without one OpenSSL asks for it at the terminal.
        _load(name, certificate, partial(context.load_cert_chain, certificate, key, ""))
    return context


def _load_system_authorities(context: ssl.SSLContext) -> None:
    paths = ssl.get_default_verify_paths()
    # By name, because OpenSSL itself trusts nobody if SSL_CERT_FILE is set to nothing, as Compose sets it.
    known = [path for path in (paths.openssl_cafile, paths.openssl_capath) if Path(path).exists()]
    for path in known:
        context.load_verify_locations(*((None, path) if Path(path).is_dir() else (path, None)))
    if not known:
        context.load_default_certs()  # of a system that does not keep them where OpenSSL looks


def _load_authorities(context: ssl.SSLContext, path: str) -> None:
    folders = [each for each in path.split(os.pathsep) if Path(each).is_dir()]
    context.load_verify_locations(*((None, path) if folders else (path, None)))
    if folders and not any(any(Path(each).glob("*.[0-9]")) for each in folders):
        raise ssl.SSLError(f"{path} has no file that c_rehash named")


def _load(name: str, path: str, load: Callable[[], None]) -> None:
    try:
        load()
    except ssl.SSLError:
        fault = "holds no certificate that can be read, or its key does not fit or has a password"
    except OSError as error:
        fault = error.strerror or "cannot be read"
    else:
        return
    raise ConfigurationError(f"{name}: {path}: {fault}")
