"""Server-sent events read as the HTML standard says (section 9.2.6), and nothing forgiven.

A browser skips what it does not understand. This reader raises instead: a byte that is not UTF-8, a field that
the service has no reason to send, an event that the end of the stream cuts off.
"""

import re
from dataclasses import dataclass, field

__all__ = ["COMMENT", "SentEvent", "body_of", "read_events"]

COMMENT = "comment"
_LINE_END = re.compile(rb"\r\n|\r|\n")


@dataclass(frozen=True)
class SentEvent:
    """An event as a browser would dispatch it; a comment has the name ``comment``."""

    name: str
    data: str
    last_id: str = ""
    """The id that a reconnecting browser would send."""


def read_events(stream: bytes) -> list[SentEvent]:
    """Read a whole stream.

    Raises:
        ValueError: it breaks a rule.
    """
    *lines, rest = _LINE_END.split(stream)
    if rest:
        raise ValueError(f"the stream ends within a line: {rest[:100]!r}")
    reader = _Reader()
    for line in lines:
        reader.take(line.decode())
    if reader.name or reader.data:
        raise ValueError(f"the stream ends within an event: {reader.name} {reader.data}")
    return reader.found


@dataclass
class _Reader:
    name: str = ""
    data: list[str] = field(default_factory=list)
    last_id: str = ""
    found: list[SentEvent] = field(default_factory=list)

    def take(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            self._dispatch()
        elif not name:
            self.found.append(SentEvent(COMMENT, value, self.last_id))
        elif name == "data":
            self.data.append(value)
        elif name == "event":
            self.name = value
        elif name == "id":
            self.last_id = value
        else:
            raise ValueError(f"no field that is meant here: {line[:100]!r}")

    def _dispatch(self) -> None:
        if self.data:
            self.found.append(SentEvent(self.name or "message", "\n".join(self.data), self.last_id))
        self.name, self.data = "", []


def body_of(answer: bytes) -> bytes:
    """The body of a chunked HTTP/1.1 answer.

    Raises:
        ValueError: it is not chunked, or ends before its last chunk.
    """
    head, _, rest = answer.partition(b"\r\n\r\n")
    if b"transfer-encoding: chunked" not in head.lower():
        raise ValueError("the answer is not chunked")
    body = b""
    while True:
        size, end, rest = rest.partition(b"\r\n")
        length = int(size, 16) if end else -1
        if length < 0 or len(rest) < length + 2:
            raise ValueError("the answer was cut off")
        if not length:
            return body
        body, rest = body + rest[:length], rest[length + 2 :]
