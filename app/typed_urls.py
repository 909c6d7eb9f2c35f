"""URLs as people type them: Chinese arrives as bare UTF-8, and is percent-encoded as a browser would have done."""

import re
from urllib.parse import quote_from_bytes

__all__ = ["with_encoded_url"]

_REQUEST_LINE = re.compile(rb"(?:GET|HEAD|POST|PUT|DELETE|PATCH|OPTIONS) [^\s]+ HTTP/1\.[01]\r\n")
_SAFE = bytes(range(0x21, 0x7F))


def with_encoded_url(data: bytes) -> bytes:
    """The beginning of a request with its URL percent-encoded; anything else as it is."""
    line = _REQUEST_LINE.match(data)
    if line is None or line[0].isascii():
        return data
    method, url, version = line[0].split(b" ")
    return b" ".join((method, quote_from_bytes(url, safe=_SAFE).encode(), version)) + data[line.end() :]
