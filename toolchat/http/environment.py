"""The network as the environment describes it: proxies, and the authorities whose certificates are trusted."""

import os
import ssl
from collections.abc import Callable, Mapping
from functools import cache, lru_cache, partial
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies

from yarl import URL

from toolchat.errors import ConfigurationError


class Proxies:
    """The proxies of ``HTTPS_PROXY``, ``HTTP_PROXY``, ``ALL_PROXY`` and ``NO_PROXY``, read once.

    A name in small letters takes precedence. ``NO_PROXY`` has hosts and addresses, with or without a port, networks
    such as ``10.0.0.0/8``, or ``*``; a host covers its subdomains. A loopback address is never reached by a proxy.

    Args:
        variables: the values by ``https``, ``http``, ``all`` and ``no``; by default those of the environment.

    Raises:
        ConfigurationError: a proxy's URL or an entry of ``NO_PROXY`` cannot be read.
    """

    def __init__(self, variables: Mapping[str, str] | None = None) -> None:
        values = getproxies() if variables is None else variables
        named = {scheme: scheme if scheme in values else "all" for scheme in ("https", "http")}
        self._by_scheme = {scheme: _read_proxy(name, values[name]) for scheme, name in named.items() if name in values}
        self._exceptions = [_Exception.read(each) for each in values.get("no", "").replace(",", " ").split()]
        self._find = lru_cache(256)(self._choose)

    def find(self, url: URL) -> URL | None:
        """Return the proxy that leads to a URL, with the proxy's credentials; ``None`` without one."""
        return self._find(url.origin())[0] if self._by_scheme else None

    def route(self, url: URL) -> str:
        """Describe the way to a URL, such as "through proxy.example:3128"; empty if no proxy is set for it."""
        return self._find(url.origin())[1]

    def _choose(self, origin: URL) -> tuple[URL | None, str]:
        proxy = self._by_scheme.get(origin.scheme)
        if proxy is None:
            return None, ""
        host = (origin.host or "").lower().rstrip(".")
        if _is_loopback(host):
            return None, "directly (this machine)"
        if any(each.covers(host, origin.port) for each in self._exceptions):
            return None, "directly (NO_PROXY)"
        return proxy, f"through {proxy.host}:{proxy.port}"


def _read_proxy(name: str, value: str) -> URL:
    try:
        url = URL(value if "://" in value else f"http://{value}")
        known = url.scheme in ("http", "https") and url.host and url.port
    except ValueError:
        known = None
    if not known:
        raise ConfigurationError(f"{name.upper()}_PROXY: must be the http or https URL of a proxy")
    return url


class _Exception(NamedTuple):
    """An entry of ``NO_PROXY``."""

    name: str
    port: int | None

    @classmethod
    def read(cls, entry: str) -> "_Exception":
        try:
            return cls(str(ip_network(entry.strip("[]"), strict=False)), None)
        except ValueError:
            pass
        try:
            parts = urlsplit(f"//{entry}")
            return cls((parts.hostname or "").removeprefix("*").strip(".") or entry, parts.port)
        except ValueError:
            raise ConfigurationError("NO_PROXY: must be a list of hosts, networks or *, separated by commas") from None

    def covers(self, host: str, port: int | None) -> bool:
        if self.port not in (None, port):
            return False
        try:
            return ip_address(host) in ip_network(self.name)
        except ValueError:
            return self.name == "*" or host == self.name or host.endswith(f".{self.name}")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def tls_context(
    certificate: str | None = None, key: str | None = None, *, name: str = "client certificate"
) -> ssl.SSLContext:
    """Return a context that trusts the authorities of the environment, and shows a certificate if one is given.

    ``SSL_CERT_FILE`` replaces the system's file and ``SSL_CERT_DIR`` its folder, as OpenSSL reads them: only both
    together replace all. Without both, ``REQUESTS_CA_BUNDLE`` replaces all, as requests reads it.

    Args:
        certificate: the file of a client's certificate, with its chain.
        key: the file of its private key, without a password; by default the same file.
        name: what an error calls the certificate.

    Raises:
        ConfigurationError: a file is missing, or holds no certificate.
    """
    paths = ssl.get_default_verify_paths()
    system = {"SSL_CERT_FILE": paths.openssl_cafile, "SSL_CERT_DIR": paths.openssl_capath}
    named = {each: path for each in system if (path := os.environ.get(each))}
    if not named and (bundle := os.environ.get("REQUESTS_CA_BUNDLE")):
        return _tls_context((("REQUESTS_CA_BUNDLE", bundle),), (), certificate, key, name)
    # OpenSSL itself trusts nobody if such a variable is set to nothing, as Compose sets it.
    others = tuple(path for each, path in system.items() if each not in named and Path(path).exists())
    return _tls_context(tuple(named.items()), others, certificate, key, name)


@cache
def _tls_context(
    named: tuple[tuple[str, str], ...], others: tuple[str, ...], certificate: str | None, key: str | None, name: str
) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # As before Python 3.13, whose strict check refuses the authorities of many companies' proxies.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.set_alpn_protocols(["http/1.1"])
    if not named and not others:
        context.load_default_certs()  # of a system that does not keep them where OpenSSL looks
    for path in others:
        _load_authorities(context, path)
    for variable, path in named:
        _load(variable, path, partial(_load_authorities, context, path, must_hold=True))
    if certificate:
        # The empty password: without one OpenSSL asks for it at the terminal.
        _load(name, certificate, partial(context.load_cert_chain, certificate, key, ""))
    return context


def _load_authorities(context: ssl.SSLContext, path: str, *, must_hold: bool = False) -> None:
    folders = [each for each in path.split(os.pathsep) if Path(each).is_dir()]
    context.load_verify_locations(*((None, path) if folders else (path, None)))
    if must_hold and folders and not any(any(Path(each).glob("*.[0-9]")) for each in folders):
        raise ssl.SSLError(f"{path} has no file that c_rehash named")


def _load(name: str, path: str, load: Callable[[], None]) -> None:
    try:
        load()
    except ssl.SSLError:
        fault = "holds no certificate that can be read, or its key does not fit"
    except OSError as error:
        fault = error.strerror or "cannot be read"
    else:
        return
    raise ConfigurationError(f"{name}: {path}: {fault}")
