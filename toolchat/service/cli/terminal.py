"""Terminal input and output: results to standard output, everything else to standard error."""

import logging
import os
import sys
import unicodedata
from types import ModuleType
from typing import TextIO

# Models and tools must not control the terminal: escape sequences can move the cursor or fill the clipboard.
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}
# Bidirectional marks can make a text look like another one.
_BIDIRECTIONAL = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_ESCAPES = _CONTROLS | {code: f"\\u{code:04x}" for code in _BIDIRECTIONAL}
_ONE_LINE_ESCAPES = {**_ESCAPES, ord("\n"): "\\n", ord("\r"): "\\r"}


def print_result(text: str = "", *, end: str = "\n") -> None:
    """Write to standard output and flush; a pipe gets no control characters either, since it may end in a terminal."""
    print(text.translate(_ESCAPES if sys.stdout.isatty() else _CONTROLS), end=end, flush=True)  # noqa: T201


def print_note(line: str) -> None:
    """Write one line to standard error; dimmed on a terminal, unless ``NO_COLOR`` is set."""
    escaped = escape_controls(line)
    is_styled = _supports_escapes() and not os.environ.get("NO_COLOR")
    print(f"\x1b[2m{escaped}\x1b[0m" if is_styled else escaped, file=sys.stderr, flush=True)  # noqa: T201


def print_error(line: str) -> None:
    """Write an error to standard error, in one line."""
    print(f"toolchat: {escape_controls(line)}", file=sys.stderr, flush=True)  # noqa: T201


def status(line: str) -> None:
    """Show progress; on a terminal each text overwrites the one before, and an empty text clears the line."""
    if not _supports_escapes():
        if line:
            print_note(line)
        return
    width = os.get_terminal_size(sys.stderr.fileno()).columns or 80  # some terminals report 0
    print(f"\r\x1b[K{_truncate(escape_controls(line), width - 1)}", end="", file=sys.stderr, flush=True)  # noqa: T201


def escape_controls(text: str) -> str:
    """Return a text in one line, with every control character and line break escaped."""
    return text.translate(_ONE_LINE_ESCAPES)


def is_interactive() -> bool:
    """Return whether the user can answer a prompt: standard input and standard error are terminals."""
    return _is_terminal(sys.stdin) and _is_terminal(sys.stderr)


def read_line(prompt: str, *, prefilled: str = "", recalled: bool = False) -> str:
    """Read a line; it can be edited with the arrow keys if input and output are terminals.

    Args:
        prompt: the text before the line.
        prefilled: the initial text of the line.
        recalled: whether the arrow keys bring the line back later.

    Raises:
        EOFError: the input has ended.
    """
    if not (_is_terminal(sys.stdin) and sys.stdout.isatty()):
        if is_interactive():
            print(prompt, end="", file=sys.stderr, flush=True)  # noqa: T201
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        return line.rstrip("\n")
    editor = _line_editor(prefilled)
    try:
        line = input(prompt)
    finally:
        if editor:
            editor.set_startup_hook(None)
    if editor and recalled and line.strip():
        editor.add_history(line)
    return line


def show_warnings() -> None:
    """Print log records of level WARNING and above as plain lines, each of them once."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("toolchat: %(levelname)s: %(message)s"))
    handler.addFilter(_FirstOccurrence())
    logging.basicConfig(level="WARNING", handlers=[handler], force=True)


class _FirstOccurrence(logging.Filter):
    def __init__(self) -> None:
        super().__init__()
        self._seen: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        is_new = message not in self._seen
        self._seen.add(message)
        return is_new


def _truncate(text: str, width: int) -> str:
    """Cut a text to a number of terminal columns; a Chinese character takes two."""
    for index, character in enumerate(text):
        width -= 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if width < 0:
            return text[:index]
    return text


def _line_editor(prefilled: str) -> ModuleType | None:
    """Set up ``readline`` for the next ``input``; Windows has no such module, and edits lines itself."""
    try:
        import readline
    except ImportError:
        return None
    readline.set_auto_history(False)
    if prefilled:  # only then: a Ctrl-C that arrives while the hook runs is lost
        readline.set_startup_hook(lambda: readline.insert_text(prefilled))
    return readline


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


def _supports_escapes() -> bool:
    """Return whether standard error is a terminal that understands colours and cursor movement."""
    return _is_terminal(sys.stderr) and os.environ.get("TERM", "dumb") != "dumb"
