"""Compressed bodies, unpacked no faster than they are read."""

import zlib

__all__ = ["CODINGS", "Decoder"]

CODINGS = (b"gzip", b"x-gzip", b"deflate")
"""What ``Content-Encoding`` may name."""

_PIECE = 256 * 1024
"""Most bytes that are unpacked at once: a bomb is as large as its reader allows, and no larger."""


class Decoder:
    """Unpacks gzip, also of several members, and deflate, with zlib's wrapping or, as some send it, without."""

    def __init__(self, coding: bytes) -> None:
        self._gzip = coding != b"deflate"
        self._inflate: zlib._Decompress | None = None
        self._rest = b""

    @property
    def is_complete(self) -> bool:
        """Whether what was given ends where the packed data end; an empty body does."""
        return not self._rest and (self._inflate is None or self._inflate.eof)

    def read(self, data: bytes) -> bytes:
        """Take packed bytes, and unpack some of what was taken so far; nothing when more is needed.

        Raises:
            zlib.error: it is not what it says to be.
        """
        self._rest += data
        piece = b""
        while self._rest and not piece:
            if self._inflate is None or self._inflate.eof:
                raw = not self._gzip and self._rest[0] & 0x0F != zlib.DEFLATED
                self._inflate = zlib.decompressobj(31 if self._gzip else -zlib.MAX_WBITS if raw else zlib.MAX_WBITS)
            piece = self._inflate.decompress(self._rest, _PIECE)
            self._rest = self._inflate.unconsumed_tail or self._inflate.unused_data
        return piece
