"""What clients have not read yet of long answers: together it has a bound, beyond which the slowest give way."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from app.observation.telling import reader_left

__all__ = ["PIECE_BYTES", "UnreadAnswers"]

PIECE_BYTES = 64 * 1024
"""Most that is handed to the server at once; it takes the next only when the client has read of those before."""
LONG_BYTES = 256 * 1024
"""Answers up to this length may wait for every client."""
MOST_BYTES = 16 * 1024 * 1024
"""What longer ones may take together."""


class UnreadAnswers:
    """Long answers that are being sent; one at a time may be longer than the bound."""

    def __init__(self) -> None:
        self._size = 0
        self._sent: dict[int, tuple[int, Callable[[], None]]] = {}
        self._number = 0

    @contextmanager
    def counted(self, size: int, hang_up: Callable[[], None]) -> Generator[None, None, None]:
        """Count an answer while it is sent; those that have been sent for the longest time give way to it.

        Args:
            size: its bytes.
            hang_up: ends the connection when it has to give way itself.
        """
        if size <= LONG_BYTES:
            yield
            return
        self._number += 1
        number = self._number
        self._sent[number] = size, hang_up
        self._size += size
        while self._size > MOST_BYTES and len(self._sent) > 1:
            self._end(next(iter(self._sent)))()
            reader_left()
        try:
            yield
        finally:
            self._end(number)

    def _end(self, number: int) -> Callable[[], None]:
        size, hang_up = self._sent.pop(number, (0, _nothing))
        self._size -= size
        return hang_up


def _nothing() -> None:
    """What is left to do for an answer that has given way."""
