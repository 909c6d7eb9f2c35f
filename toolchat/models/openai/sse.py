"""An incremental decoder for server-sent events."""

from toolchat.errors import UpstreamInvalid

MAX_EVENT_BYTES = 2 * 1024 * 1024
"""The size limit of an event; a complete answer in one event is far shorter."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_CR = ord("\r")
"""As a number: for ``bytes`` as the left side, ``in`` raises and clears an exception on its way."""


ServerSentEvent = tuple[bytes, bytes]
"""The type and the data of an event; ``id`` and ``retry`` have no meaning in a chat completion."""


class SseDecoder:
    """An incremental decoder for ``text/event-stream``.

    Follows the HTML standard, section 9.2.6: lines end with CR, LF or CRLF only (``str.splitlines`` would also split at
    U+2028 and U+0085, which are ordinary characters in JSON). It differs in two points: the values stay bytes, because
    the reader of their JSON checks the UTF-8, and the end of the stream also ends the last event.
    """

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream
        self._line = bytearray()
        """The beginning of a line."""
        self._after_cr = False
        self._at_start = True
        self._event = b""
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """Decode the next bytes and return the events that they complete."""
        if self._after_cr or _CR in chunk:
            chunk = self._convert_line_ends(chunk)
        has_begun = self._at_start or self._line or self._data or self._event
        if not has_begun and chunk[:6] == b"data: " and chunk[(end := chunk.find(b"\n")) :] == b"\n\n":
            return [(b"message", chunk[6:end])]  # nearly every chunk is one event with one line of data
        lines = chunk.split(b"\n")
        rest = lines.pop()
        events = self._take_lines(lines) if lines else []
        if rest:
            self._line += rest
        if len(self._line) + self._size > MAX_EVENT_BYTES:
            raise UpstreamInvalid(f"{self._upstream} sent an event of more than {MAX_EVENT_BYTES} bytes")
        return events

    def finish(self) -> list[ServerSentEvent]:
        """Return the event that the end of the stream completes, if any."""
        return self._take_lines([b"", b""])

    def _convert_line_ends(self, chunk: bytes) -> bytes:
        if self._after_cr and chunk.startswith(b"\n"):  # a CRLF that was split between two chunks
            chunk, self._after_cr = chunk[1:], False
        if chunk:
            self._after_cr = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _take_lines(self, lines: list[bytes]) -> list[ServerSentEvent]:
        """Take complete lines; the first one ends the line that has begun before."""
        if self._line or self._at_start:
            lines[0] = bytes(self._line + lines[0])
            self._line.clear()
            if self._at_start:
                lines[0], self._at_start = lines[0].removeprefix(_BYTE_ORDER_MARK), False
        events: list[ServerSentEvent] = []
        for line in lines:
            if line[:6] == b"data: ":  # nearly every line
                self._size += len(line)
                self._data.append(line[6:])
            elif line:
                self._take_field(line)
            elif self._data:
                events.append((self._event or b"message", b"\n".join(self._data)))
                self._data.clear()
                self._event, self._size = b"", 0
            else:
                self._event = b""
        return events

    def _take_field(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        if field == b"data":
            self._size += len(line)
            self._data.append(value.removeprefix(b" "))
        elif field == b"event":
            self._event = value.removeprefix(b" ")
