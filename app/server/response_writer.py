"""Answers as they are written to a connection: uvicorn's way takes each header through two searches and a list."""

from collections.abc import Mapping
from typing import Any

from uvicorn.protocols.http import httptools_impl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

__all__ = ["Cycle"]

_CONTROLS = bytes(each for each in (*range(0x20), 0x7F) if each != ord("\t"))
"""What no header can hold: it could make another header, or an answer, of its rest."""


class Cycle(httptools_impl.RequestResponseCycle):
    """uvicorn's way of a request through the application, with another way back."""

    async def send(self, message: Any) -> None:
        """See ASGI's ``send``, by which the names of headers are in lower case.

        Raises:
            RuntimeError: the application sends what cannot be sent, or not now.
        """
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        if message["type"] != ("http.response.body" if self.response_started else "http.response.start"):
            raise RuntimeError(f"{message['type']} has no place here")
        if self.response_started:
            self._go_on(message.get("body", b""), message.get("more_body", False))
        else:
            self._begin(message["status"], [*self.default_headers, *message.get("headers", ())])

    def _begin(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        lines = [*map(b": ".join, headers)]
        text = b"".join(lines)
        if text != text.translate(None, _CONTROLS):
            raise RuntimeError("a header holds a control character")
        self.response_started = True
        self.waiting_for_100_continue = False
        lines += self._framed(status, dict(headers))
        self.transport.write(STATUS_LINE[status] + b"\r\n".join([*lines, b"", b""]))

    def _framed(self, status: int, fields: Mapping[bytes, bytes]) -> list[bytes]:
        """Note where the body will end; gives the headers that tell it beside those that there are."""
        framing: list[bytes] = []
        if b"close" in fields.get(b"connection", b"").lower():
            self.keep_alive = False
        elif not self.keep_alive:
            framing.append(b"connection: close")
        if self.scope["method"] == "HEAD" or status in (204, 304):
            pass
        elif b"content-length" in fields:
            self.expected_content_length = int(fields[b"content-length"])
        else:
            self.chunked_encoding = True
            framing.append(b"transfer-encoding: chunked")
        return framing

    def _go_on(self, body: bytes, more_body: bool) -> None:
        if self.response_complete:
            raise RuntimeError("the answer is complete already")
        if self.chunked_encoding:
            body = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            body += b"" if more_body else b"0\r\n\r\n"
        elif self.scope["method"] == "HEAD":
            body = b""
        else:
            self.expected_content_length -= len(body)
        if self.expected_content_length < 0 or (self.expected_content_length and not more_body):
            raise RuntimeError("the answer is not as long as its Content-Length")
        self.transport.write(body)
        if not more_body:
            self._end()

    def _end(self) -> None:
        self.response_complete = True
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()


# uvicorn's protocol makes one for each request, and can be told of no other class.
httptools_impl.RequestResponseCycle = Cycle  # type: ignore[misc]
