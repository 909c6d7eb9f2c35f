"""Allowed values of ``Host``, and the client's address behind trusted proxies."""

import ipaddress
from collections.abc import Sequence
from functools import lru_cache

from starlette.types import Scope

from toolchat.errors import MisdirectedRequest

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
    name = _name(host)
    if not (name in allowed or _is_localhost(name) or is_address(name)):
        raise MisdirectedRequest("the Host header is not a name of this service; add it to ALLOWED_HOSTS")


@lru_cache(maxsize=256)
def _name(host: str) -> str:
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


class Proxies:
    """Finds the client's address behind trusted proxies.

    Args:
        trusted: addresses and networks of the proxies; without any, forwarding headers are ignored.
        header: the one header in which they name the client. A proxy passes all others on as the client sent them, so
            reading a second one would let the client choose its address.
    """

    def __init__(self, trusted: Sequence[str] = (), header: str = "x-forwarded-for") -> None:
        self._header = header.lower().encode()
        self._trusted: tuple[_Network, ...] = tuple(ipaddress.ip_network(each, strict=False) for each in trusted)

    def client(self, scope: Scope) -> str:
        """The client's address: the last one in the chain that is not a trusted proxy; earlier ones can be forged."""
        peer = (scope.get("client") or ("",))[0]
        if not self._trusted or not self._trusts(peer):
            return peer
        for address in reversed(_forwarded_addresses(self._header, ",".join(headers(scope, self._header)))):
            if not self._trusts(address):
                return address
            peer = address
        return peer

    def _trusts(self, address: str) -> bool:
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return address == ""  # a Unix socket: only this machine can connect
        return any(found.version == each.version and found in each for each in self._trusted)


def _forwarded_addresses(header: bytes, value: str) -> list[str]:
    """The addresses in ``Forwarded`` (RFC 7239) or in a list, as ``X-Forwarded-For`` is; the client comes first."""
    nodes = value.split(",")
    if header == b"forwarded":
        parts = [pair.strip() for element in nodes for pair in element.split(";")]
        nodes = [part[4:] for part in parts if part[:4].lower() == "for="]
    return [address for address in map(_bare, nodes) if address]


def _bare(node: str) -> str:
    """An address without quotes, brackets and port; other texts, such as ``unknown``, are returned unchanged."""
    node = node.strip().strip('"')[:64]
    if node.startswith("["):
        return node[1:].partition("]")[0]
    return node.partition(":")[0] if node.count(":") == 1 else node
