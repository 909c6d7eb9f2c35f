"""Allowed values of ``Host``, and what trusted proxies say: the client's address, and the service's own."""

import ipaddress
import logging
from collections.abc import Sequence
from functools import lru_cache
from urllib.parse import quote

from starlette.types import Scope

from toolchat.errors import MisdirectedRequest

_log = logging.getLogger(__name__)
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def headers(scope: Scope, name: bytes) -> list[str]:
    """All values of a header, in their order."""
    return [value.decode("latin-1") for each, value in scope["headers"] if each == name]


def header(scope: Scope, name: bytes) -> str:
    """The first value of a header; empty without one."""
    for each, value in scope["headers"]:
        if each == name:
            return str(value, "latin-1")
    return ""


@lru_cache(maxsize=1024)
def is_loopback(address: str) -> bool:
    """Whether an address or host name can be reached from this machine only."""
    try:
        return ipaddress.ip_address(address.strip("[]").partition("%")[0]).is_loopback
    except ValueError:
        return _is_localhost(address.lower())


def check_host(host: str, allowed: frozenset[str]) -> None:
    """Check that ``Host`` is a name of this service.

    A page on the internet can make its own name resolve to this machine (DNS rebinding). The browser then treats the
    service as part of that site, but ``Host`` still has the site's name. An address cannot be rebound, and nobody can
    register ``localhost`` (RFC 6761, section 6.3).

    Args:
        host: the header, with a port or without.
        allowed: further names, in lower case, without a port.
    """
    name = host_name(host)
    if not (name in allowed or _is_localhost(name) or is_address(name)):
        raise MisdirectedRequest("the Host header is not a name of this service; add it to ALLOWED_HOSTS")


@lru_cache(maxsize=256)
def host_name(host: str) -> str:
    """The host without its port and without the trailing dot of a fully qualified name."""
    name = host[: host.find("]") + 1] if host.startswith("[") else host.partition(":")[0]
    return name.lower().removesuffix(".")


def _is_localhost(name: str) -> bool:
    return name == "localhost" or name.endswith(".localhost")


@lru_cache(maxsize=256)
def is_address(name: str) -> bool:
    """Whether a host is an IP address."""
    try:
        ipaddress.ip_address(name.strip("[]").partition("%")[0])
    except ValueError:
        return False
    return True


class TrustedProxies:
    """Finds the client's address behind trusted proxies, and the address by which it calls the service.

    Args:
        trusted: addresses and networks of the proxies; without any, forwarding headers are ignored.
        header: the one header in which they name the client. A proxy passes all others on as the client sent them, so
            reading a second one would let the client choose its address. ``Forwarded`` names scheme and host as well.
    """

    def __init__(self, trusted: Sequence[str] = (), header: str = "x-forwarded-for") -> None:
        self._header = header.lower().encode()
        self._trusted: tuple[_Network, ...] = tuple(ipaddress.ip_network(each, strict=False) for each in trusted)
        self._hinted = False

    def client(self, scope: Scope) -> str:
        """The client's address: the last one in the chain that is not a trusted proxy; earlier ones can be forged."""
        return self._client(scope)[0]

    def origin(self, scope: Scope) -> str:
        """Scheme and host by which the client calls the service, as the proxy says that names the client."""
        position = self._client(scope)[1]
        scheme, host = (self._named(scope, what, position) for what in ("proto", "host"))
        if scheme.lower() not in ("http", "https"):
            scheme = scope["scheme"]
        host = host or header(scope, b"host") or (scope.get("server") or ("",))[0]
        return f"{scheme.lower()}://{quote(host, safe=':[]')}"  # a client may have chosen the text

    def _client(self, scope: Scope) -> tuple[str, int]:
        """The client's address, and its position from the end of the chain; 0 if it is connected itself."""
        peer, position = (scope.get("client") or ("",))[0], 0
        if not self._trusted or not self._trusts(peer):
            if not self._hinted and header(scope, self._header):
                self._hinted = True
                name = self._header.decode()
                _log.warning(
                    "%s from %s is ignored; if that is your proxy, list it in TRUSTED_PROXIES", name, peer[:64]
                )
            return peer, 0
        nodes = ",".join(headers(scope, self._header)).split(",")
        if self._header == b"forwarded":
            nodes = [_parameter(element, "for") for element in nodes]
        for address in reversed([address for address in map(_bare, nodes) if address]):
            peer, position = address, position + 1
            if not self._trusts(address):
                break
        return peer, max(position, 1)

    def _named(self, scope: Scope, what: str, position: int) -> str:
        """What a proxy says about the request, ``proto`` or ``host``; empty if it says nothing."""
        is_standard = self._header == b"forwarded"
        name = self._header if is_standard else f"x-forwarded-{what}".encode()
        values = ",".join(headers(scope, name)).split(",") if position else []
        texts = [_parameter(each, what) if is_standard else each.strip() for each in values]
        return texts[-min(position, len(texts))] if texts else ""

    def _trusts(self, address: str) -> bool:
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return address == ""  # a Unix socket: only this machine can connect
        return any(found.version == each.version and found in each for each in self._trusted)


def _parameter(element: str, name: str) -> str:
    """A parameter of an element of ``Forwarded`` (RFC 7239); empty without it."""
    pairs = (pair.strip().partition("=") for pair in element.split(";"))
    return next((value.strip('"') for key, _, value in pairs if key.lower() == name), "")


def _bare(node: str) -> str:
    """An address without quotes, brackets and port; other texts, such as ``unknown``, are returned unchanged."""
    node = node.strip().strip('"')[:64]
    if node.startswith("["):
        return node[1:].partition("]")[0]
    return node.partition(":")[0] if node.count(":") == 1 else node
