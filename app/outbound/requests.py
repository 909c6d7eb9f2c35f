"""Requests as they go over the wire."""

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, unquote, urlencode, urlsplit

__all__ = ["Data", "Origin", "Params", "Request", "written"]

Params = Mapping[str, str | int | float]
Data = bytes | str | Mapping[str, str]

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_HOST = re.compile(r"[0-9a-z._-]+|[0-9a-f:.]+(?:%[0-9a-z]+)?")
_IN_PATH = "/%:@!$&'()*+,;=~"
_FRAMING = {"accept-encoding", "connection", "content-length", "transfer-encoding", "expect", "te", "upgrade"}
_WITHOUT_BODY = {"GET", "HEAD", "DELETE", "OPTIONS", "TRACE"}
_REPEATABLE = {"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"}


class Origin(NamedTuple):
    """Where a connection leads."""

    tls: bool
    host: str
    port: int


@dataclass(slots=True, eq=False)
class Request:
    """A request, ready to be sent."""

    origin: Origin
    wire: bytes
    is_head: bool
    is_repeatable: bool
    """It may be sent twice: its method is idempotent (RFC 9110, section 9.2.2)."""


def written(
    method: str, url: str, headers: Mapping[str, str] | None = None, params: Params | None = None, data: Data = b""
) -> Request:
    """Write a request.

    Args:
        method: the HTTP method, in capitals.
        url: an absolute URL; a user and password in it become an ``Authorization``.
        headers: what is sent beside ``Host``, the framing, and what can be decoded, which are not the caller's.
        params: added to the URL's query.
        data: the body; a mapping is sent as a form.

    Raises:
        ValueError: the URL, the method or a header cannot be sent.
    """
    fields = tuple(headers.items()) if headers else ()
    if not isinstance(data, bytes):
        data, kind = (
            (data, "text/plain") if isinstance(data, str) else (urlencode(data), "application/x-www-form-urlencoded")
        )
        data, fields = data.encode(), (("Content-Type", f"{kind}; charset=utf-8"), *fields)
    origin, target, rest = _head(method, url, fields)
    if params:
        target += (b"&" if b"?" in target else b"?") + urlencode(params).encode()
    length = b"Content-Length: %d\r\n" % len(data) if data or method not in _WITHOUT_BODY else b""
    return Request(origin, b"%b%b%b\r\n%b" % (target, rest, length, data), method == "HEAD", method in _REPEATABLE)


@lru_cache(maxsize=256)
def _head(method: str, url: str, fields: tuple[tuple[str, str], ...]) -> tuple[Origin, bytes, bytes]:
    """What is the same for every request to one place: its origin, and the head before and after the query's end."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or not _TOKEN.fullmatch(method):
        raise ValueError("only absolute http and https URLs can be asked")
    tls = parts.scheme == "https"
    origin = Origin(tls, _ascii_host(parts.hostname), parts.port or (443 if tls else 80))
    host = f"[{origin.host}]" if ":" in origin.host else origin.host
    lines = {"host": ("Host", f"{host}:{parts.port}" if parts.port else host)}
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        lines["authorization"] = ("Authorization", f"Basic {b64encode(pair.encode()).decode()}")
    lines |= {"accept": ("Accept", "*/*"), "user-agent": ("User-Agent", "toolchat")}
    lines |= {name.lower(): (name, value) for name, value in fields if name.lower() not in _FRAMING}
    target = quote(parts.path or "/", safe=_IN_PATH) + (
        "?" + quote(parts.query, safe=f"{_IN_PATH}?") if parts.query else ""
    )
    rest = f" HTTP/1.1\r\n{''.join(_lines(lines.values()))}Accept-Encoding: gzip, deflate\r\n"
    return origin, f"{method} {target}".encode(), rest.encode("utf-8", "surrogateescape")


def _ascii_host(host: str) -> str:
    """The host as DNS knows it.

    Raises:
        ValueError: it is none.
    """
    host = host.encode("idna").decode()
    if not _HOST.fullmatch(host):
        raise ValueError("the URL's host is none")
    return host


def _lines(fields: Iterable[tuple[str, str]]) -> Iterable[str]:
    for name, value in fields:
        if not _TOKEN.fullmatch(name) or _UNPRINTABLE.search(value):
            raise ValueError("a header cannot be sent as it is")
        yield f"{name}: {value}\r\n"
