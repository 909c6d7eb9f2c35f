"""By which names the service may be called, and where a request came from."""

import ipaddress
from collections.abc import Sequence
from functools import lru_cache

from starlette.types import Scope

from toolchat.errors import MisdirectedRequest

__all__ = ["Proxies", "check_host", "header", "headers", "is_address", "is_loopback"]

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def headers(scope: Scope, name: bytes) -> list[str]:
    """All values of a header, in their order."""
    return [value.decode("latin-1") for each, value in scope["headers"] if each == name]


def header(scope: Scope, name: bytes) -> str:
    """The first value of a header, else nothing."""
    return next((value.decode("latin-1") for each, value in scope["headers"] if each == name), "")


@lru_cache(maxsize=1024)
def is_loopback(address: str) -> bool:
    """Whether an address, or a name of one, can be reached from this machine alone."""
    try:
        return ipaddress.ip_address(address.strip("[]").partition("%")[0]).is_loopback
    except ValueError:
        return _is_localhost(address.lower())


def check_host(host: str, allowed: frozenset[str]) -> None:
    """Let a request pass that was meant for this service, by its header ``Host``.

    A page on the internet can make its own name lead to this machine (DNS rebinding) and would then be asked for like
    any page of ours; its requests bear its name. An address cannot be made to lead elsewhere, and ``localhost`` is no
    name that anybody can own (RFC 6761, section 6.3).

    Args:
        host: the header, with a port or without.
        allowed: further names, in lower case, without a port.

    Raises:
        MisdirectedRequest: it was meant for another one.
    """
    name = _name(host)
    if not (name in allowed or _is_localhost(name) or is_address(name)):
        raise MisdirectedRequest("the service is not called by this name; ALLOWED_HOSTS names those that it is")


@lru_cache(maxsize=256)
def _name(host: str) -> str:
    """The host without its port and the dot that a full name may end in."""
    name = host[: host.find("]") + 1] if host.startswith("[") else host.partition(":")[0]
    return name.lower().removesuffix(".")


def _is_localhost(name: str) -> bool:
    return name == "localhost" or name.endswith(".localhost")


@lru_cache(maxsize=256)
def is_address(name: str) -> bool:
    """Whether a host is an IP address and no name."""
    try:
        ipaddress.ip_address(name.strip("[]").partition("%")[0])
    except ValueError:
        return False
    return True


class Proxies:
    """Finds the client behind proxies that are trusted to tell its address.

    Args:
        trusted: addresses and networks of the proxies; without any, what headers say is ignored.
    """

    def __init__(self, trusted: Sequence[str] = ()) -> None:
        self._trusted: tuple[_Network, ...] = tuple(ipaddress.ip_network(each, strict=False) for each in trusted)

    def client(self, scope: Scope) -> str:
        """The address of the client: the last one on the way here that is no trusted proxy."""
        peer = (scope.get("client") or ("",))[0]
        if not self._trusted or not self._trusts(peer):
            return peer
        for address in reversed(_told(scope)):
            if not self._trusts(address):
                return address
            peer = address
        return peer

    def _trusts(self, address: str) -> bool:
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return address == ""  # a Unix socket: whoever reaches it is on this machine, as the proxy is
        return any(found.version == each.version and found in each for each in self._trusted)


def _told(scope: Scope) -> list[str]:
    """The addresses that proxies have told, the client's first (RFC 7239), else by the older header."""
    forwarded = ",".join(headers(scope, b"forwarded"))
    if forwarded:
        parts = [pair.strip() for element in forwarded.split(",") for pair in element.split(";")]
        told = [part[4:] for part in parts if part[:4].lower() == "for="]
    else:
        told = ",".join(headers(scope, b"x-forwarded-for")).split(",")
    return [address for address in map(_bare, told) if address]


def _bare(node: str) -> str:
    """An address without quotes, brackets and port; what is none, such as ``unknown``, stands for itself."""
    node = node.strip().strip('"')[:64]
    if node.startswith("["):
        return node[1:].partition("]")[0]
    return node.partition(":")[0] if node.count(":") == 1 else node
