"""Decode server-sent events from bytes, however the network cuts them."""

from toolchat.errors import UpstreamInvalid
from toolchat.messages import immutable

__all__ = ["MAX_EVENT_BYTES", "ServerSentEvent", "SseDecoder"]

MAX_EVENT_BYTES = 2 * 1024 * 1024
"""Longest event that is read; a whole answer of a chat model in one event is far shorter."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@immutable
class ServerSentEvent:
    """One event that carries data; ``id`` and ``retry`` mean nothing to a chat model's stream."""

    data: str
    event: str = "message"


class SseDecoder:
    """An incremental decoder for ``text/event-stream``.

    Follows the HTML standard, section 9.2.6: lines end at CR, LF or CRLF and nowhere else (``str.splitlines``
    would also cut at U+2028 and U+0085, which are ordinary characters in JSON). Two things are stricter or
    looser: bytes that are not UTF-8 are an error, and the end of the stream also ends the last event.
    """

    def __init__(self, upstream: str, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._upstream = upstream
        self._max_bytes = max_event_bytes
        self._line = bytearray()
        self._after_cr = False
        self._at_start = True
        self._event = ""
        self._data: list[str] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """Take the next bytes and give the events that they complete.

        Raises:
            UpstreamInvalid: an event is longer than allowed, or not UTF-8.
        """
        if not chunk:
            return []
        if self._after_cr and chunk[:1] == b"\n":
            chunk = chunk[1:]
            self._after_cr = False
            if not chunk:
                return []
        self._after_cr = chunk[-1:] == b"\r"
        *lines, rest = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        events: list[ServerSentEvent] = []
        if lines:
            self._line += lines[0]
            lines[0] = bytes(self._line)
            self._line.clear()
            for line in lines:
                self._take_line(line, events)
        self._line += rest
        self._check_size()
        return events

    def finish(self) -> list[ServerSentEvent]:
        """Give the event that the end of the stream completes, if there is one.

        Raises:
            UpstreamInvalid: it is not UTF-8.
        """
        events: list[ServerSentEvent] = []
        self._take_line(bytes(self._line), events)
        self._take_line(b"", events)
        return events

    def _check_size(self) -> None:
        if len(self._line) + self._size > self._max_bytes:
            raise UpstreamInvalid(f"{self._upstream} sent an event of more than {self._max_bytes} bytes")

    def _take_line(self, line: bytes, events: list[ServerSentEvent]) -> None:
        if self._at_start:
            line = line.removeprefix(_BYTE_ORDER_MARK)
            self._at_start = False
        if line:
            name, _, value = line.partition(b":")
            if name in (b"data", b"event"):
                self._take_field(name, value.removeprefix(b" "))
        elif self._data or self._event:
            if self._data:
                events.append(ServerSentEvent("\n".join(self._data), self._event or "message"))
            self._data, self._event, self._size = [], "", 0

    def _take_field(self, name: bytes, value: bytes) -> None:
        try:
            text = value.decode()
        except UnicodeDecodeError:
            raise UpstreamInvalid(f"{self._upstream} sent bytes that are not UTF-8", retryable=True) from None
        self._size += len(value) + 1
        self._check_size()
        if name == b"data":
            self._data.append(text)
        else:
            self._event = text
