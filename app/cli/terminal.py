"""Standard output for what was asked for, standard error for all else, and lines that are typed."""

import logging
import os
import sys
import unicodedata
from types import ModuleType
from typing import TextIO

__all__ = ["complain", "is_interactive", "read_line", "say", "show_warnings", "status", "tell", "visible"]

_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}
"""What a terminal would obey instead of showing it: a model or a tool could move the cursor, or fill the clipboard."""
_TURNING = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_SHOWN = _CONTROLS | {code: f"\\u{code:04x}" for code in _TURNING}  # a text could show another one than it is
_IN_ONE_LINE = {**_SHOWN, ord("\n"): "\\n", ord("\r"): "\\r"}


def say(text: str = "", *, end: str = "\n") -> None:
    """Write to standard output, at once; a pipe, behind which a terminal may be, is given no control characters."""
    print(text.translate(_SHOWN if sys.stdout.isatty() else _CONTROLS), end=end, flush=True)  # noqa: T201


def tell(line: str) -> None:
    """Write a line beside the answer, to standard error; fainter on a terminal, unless ``NO_COLOR`` is set."""
    shown = visible(line)
    is_styled = _obeys() and not os.environ.get("NO_COLOR")
    print(f"\x1b[2m{shown}\x1b[0m" if is_styled else shown, file=sys.stderr, flush=True)  # noqa: T201


def complain(line: str) -> None:
    """Write to standard error what went wrong, or cannot be done."""
    print(f"toolchat: {visible(line)}", file=sys.stderr, flush=True)  # noqa: T201


def status(line: str) -> None:
    """Show how far something is: a terminal in one line that is written over, which an empty text clears."""
    if not _obeys():
        if line:
            tell(line)
        return
    width = os.get_terminal_size(sys.stderr.fileno()).columns or 80  # some do not know their size
    print(f"\r\x1b[K{_cut(visible(line), width - 1)}", end="", file=sys.stderr, flush=True)  # noqa: T201


def visible(text: str) -> str:
    """A text in one line, with what would steer the terminal shown instead."""
    return text.translate(_IN_ONE_LINE)


def is_interactive() -> bool:
    """Whether somebody can be asked: what is typed comes from a terminal, and questions go to one."""
    return _is_terminal(sys.stdin) and _is_terminal(sys.stderr)


def read_line(prompt: str, *, given: str = "", recalled: bool = False) -> str:
    """Let a line be typed, with the arrow keys where both input and output are a terminal.

    Args:
        prompt: stands before it.
        given: is there already and can be changed.
        recalled: the arrow keys bring the line back later on.

    Raises:
        EOFError: the input is at its end.
    """
    if not (_is_terminal(sys.stdin) and sys.stdout.isatty()):
        if is_interactive():
            print(prompt, end="", file=sys.stderr, flush=True)  # noqa: T201
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        return line.rstrip("\n")
    editor = _editor(given)
    try:
        line = input(prompt)
    finally:
        if editor:
            editor.set_startup_hook(None)
    if editor and recalled and line.strip():
        editor.add_history(line)
    return line


def show_warnings() -> None:
    """Show what is logged as a warning or worse as plain lines, each of them once."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("toolchat: %(levelname)s: %(message)s"))
    handler.addFilter(_Once())
    logging.basicConfig(level="WARNING", handlers=[handler], force=True)


class _Once(logging.Filter):
    def __init__(self) -> None:
        super().__init__()
        self._seen: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        is_new = message not in self._seen
        self._seen.add(message)
        return is_new


def _cut(text: str, width: int) -> str:
    """As much of a text as fits into a line; a Chinese character takes two places."""
    for place, character in enumerate(text):
        width -= 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if width < 0:
            return text[:place]
    return text


def _editor(given: str) -> ModuleType | None:
    """The editor of lines behind ``input``; Windows has its own, without a module."""
    try:
        import readline
    except ImportError:
        return None
    readline.set_auto_history(False)
    if given:  # the hook costs nothing, but an interrupt while it runs would be lost
        readline.set_startup_hook(lambda: readline.insert_text(given))
    return readline


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


def _obeys() -> bool:
    """Whether standard error is a terminal that knows colours and moves of the cursor."""
    return _is_terminal(sys.stderr) and os.environ.get("TERM", "dumb") != "dumb"
