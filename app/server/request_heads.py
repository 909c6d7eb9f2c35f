"""What clients write into the heads of requests, made into what the parser reads rightly."""

import re
from urllib.parse import quote_from_bytes

__all__ = ["with_encoded_url", "without_upgrade"]

_REQUEST_LINE = re.compile(rb"(?:GET|HEAD|POST|PUT|DELETE|PATCH|OPTIONS) [^\s]+ HTTP/1\.[01]\r\n")
_SAFE = bytes(range(0x21, 0x7F))
_UPGRADE = re.compile(rb"\r\nupgrade:", re.IGNORECASE)


def with_encoded_url(data: bytes) -> bytes:
    """The beginning of a request with its URL percent-encoded, as a browser would have done; anything else as it is."""
    line = _REQUEST_LINE.match(data)
    if line is None or line[0].isascii():
        return data
    method, url, version = line[0].split(b" ")
    return b" ".join((method, quote_from_bytes(url, safe=_SAFE).encode(), version)) + data[line.end() :]


def without_upgrade(data: bytes) -> bytes:
    """The beginning of a request with no ``Upgrade`` in its head.

    Java's own client offers HTTP/2 so with every request. A server may go on as if nothing had been said (RFC 9110,
    section 7.8), but httptools would take the body for something in the other protocol, and leave it unread.
    """
    head, end, rest = data.partition(b"\r\n\r\n")
    return _UPGRADE.sub(b"\r\nx-upgrade:", head) + end + rest
