"""Decode server-sent events from bytes, however the network cuts them."""

from app.errors import UpstreamInvalid
from app.immutable import immutable

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
        first, *rest = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._extend(first)
        events = []
        for piece in rest:
            events += self._end_line()
            self._extend(piece)
        return events

    def finish(self) -> list[ServerSentEvent]:
        """Give the event that the end of the stream completes, if there is one.

        Raises:
            UpstreamInvalid: it is not UTF-8.
        """
        return self._end_line() + self._end_event()

    def _extend(self, piece: bytes) -> None:
        self._line += piece
        if len(self._line) + self._size > self._max_bytes:
            raise UpstreamInvalid(f"{self._upstream} sent an event of more than {self._max_bytes} bytes")

    def _end_line(self) -> list[ServerSentEvent]:
        line = bytes(self._line)
        self._line.clear()
        if self._at_start:
            line = line.removeprefix(_BYTE_ORDER_MARK)
            self._at_start = False
        if not line:
            return self._end_event()
        name, _, value = line.partition(b":")
        if name in (b"data", b"event"):
            self._take_field(name, value.removeprefix(b" "))
        return []

    def _take_field(self, name: bytes, value: bytes) -> None:
        try:
            text = value.decode()
        except UnicodeDecodeError:
            raise UpstreamInvalid(f"{self._upstream} sent bytes that are not UTF-8", retryable=True) from None
        self._size += len(value) + 1
        if name == b"data":
            self._data.append(text)
        else:
            self._event = text

    def _end_event(self) -> list[ServerSentEvent]:
        data, event = self._data, self._event
        self._data, self._event, self._size = [], "", 0
        return [ServerSentEvent("\n".join(data), event or "message")] if data else []
