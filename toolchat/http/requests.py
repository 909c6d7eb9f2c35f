"""Build HTTP/1.1 requests as bytes, with the parts that repeat cached."""

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, unquote, urlencode, urlsplit

Params = Mapping[str, str | int | float]
Data = bytes | Sequence[bytes] | Mapping[str, str]

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_LINE = re.compile(rf"{_TOKEN.pattern}: [^\x00-\x08\x0a-\x1f\x7f]*")
_HOST = re.compile(r"[0-9a-z._-]+|[0-9a-f:.]+(?:%[0-9a-z]+)?")
_PORTS = {"http": 80, "https": 443}
_IN_PATH = "/%:@!$&'()*+,;=~"
_IN_QUERY = f"{_IN_PATH}?"
_FRAMING = {"accept-encoding", "connection", "content-length", "transfer-encoding", "expect", "te", "upgrade"}
_WITHOUT_BODY = {"GET", "HEAD", "DELETE", "OPTIONS", "TRACE"}
REPEATABLE = _WITHOUT_BODY | {"PUT"}
"""Idempotent methods, whose requests may be sent again (RFC 9110, section 9.2.2)."""


class Origin(NamedTuple):
    """The endpoint of a connection."""

    tls: bool
    host: str
    port: int


class Request(NamedTuple):
    """A request as bytes, with its origin."""

    method: str
    origin: Origin
    wire: bytes

    @property
    def url(self) -> tuple[str, str, int, str]:
        """Scheme, host, port and path, without the query, which may contain secrets."""
        path = self.wire.split(b" ", 2)[1].partition(b"?")[0]
        return "https" if self.origin.tls else "http", self.origin.host, self.origin.port, path.decode()

    def with_lines(self, lines: bytes) -> "Request":
        """Copy with more header lines, each with its line end."""
        return Request(self.method, self.origin, self.wire.replace(b"\r\n", b"\r\n" + lines, 1))


def build_request(
    method: str, url: str, headers: Mapping[str, str] | None = None, params: Params | None = None, data: Data = b""
) -> Request:
    """Build a request.

    Args:
        method: the HTTP method, in capitals.
        url: an absolute URL; a user and a password in it become an ``Authorization`` header.
        headers: additional headers; framing headers and ``Accept-Encoding`` are ignored, since they are set here.
        params: added to the URL's query.
        data: the body, whole or in pieces; a mapping is sent as a form.
    """
    fields = tuple(headers.items()) if headers else ()
    if isinstance(data, Mapping):
        data, fields = urlencode(data).encode(), (("Content-Type", "application/x-www-form-urlencoded"), *fields)
    # A long body is copied once only, into the request.
    pieces = (data,) if isinstance(data, bytes) else data
    size = sum(map(len, pieces))
    origin, target, rest = _head(method, url, fields)
    if params:
        target += (b"&" if b"?" in target else b"?") + urlencode(params).encode()
    length = b"Content-Length: %d\r\n" % size if size or method not in _WITHOUT_BODY else b""
    return Request(method, origin, b"".join((target, rest, length, b"\r\n", *pieces)))


@lru_cache(maxsize=256)
def _head(method: str, url: str, fields: tuple[tuple[str, str], ...]) -> tuple[Origin, bytes, bytes]:
    """Build what is equal for all requests to one URL: the origin, and the head before and after the query's end."""
    parts = urlsplit(url)
    name = (parts.hostname or "").encode("idna").decode()
    if parts.scheme not in _PORTS or not _HOST.fullmatch(name) or not _TOKEN.fullmatch(method):
        raise ValueError("only absolute http and https URLs can be requested")
    origin = Origin(parts.scheme == "https", name, parts.port or _PORTS[parts.scheme])
    host = f"[{name}]" if ":" in name else name
    lines = {"host": f"Host: {host}:{parts.port}" if parts.port else f"Host: {host}"}
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        lines["authorization"] = f"Authorization: Basic {b64encode(pair.encode()).decode()}"
    lines |= {"accept": "Accept: */*", "user-agent": "User-Agent: toolchat"}
    lines |= {name.lower(): f"{name}: {value}" for name, value in fields if name.lower() not in _FRAMING}
    # A line break within a value would add a header, or end the head: request smuggling.
    if not all(map(_LINE.fullmatch, lines.values())):
        raise ValueError("a header cannot be sent as it is")
    rest = "\r\n".join([" HTTP/1.1", *lines.values(), "Accept-Encoding: gzip, deflate", ""])
    query = f"?{quote(parts.query, safe=_IN_QUERY)}" if parts.query else ""
    target = f"{method} {quote(parts.path or '/', safe=_IN_PATH)}{query}"
    return origin, target.encode(), rest.encode("utf-8", "surrogateescape")
