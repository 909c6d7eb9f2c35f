"""Terminal input and output: results to standard output, everything else to standard error."""

import logging
import os
import re
import sys
from contextlib import suppress

import click

from toolchat.service.hidden_characters import CONTROLS, HIDDEN


def print_result(text: str = "", *, end: str = "\n") -> None:
    """Write to standard output; a pipe gets no control characters either, since it may end in a terminal."""
    click.echo((HIDDEN if sys.stdout.isatty() else CONTROLS).sub(_escape, text) + end, nl=False)


def print_note(line: str) -> None:
    """Write one line to standard error; dimmed on a terminal, unless ``NO_COLOR`` is set."""
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb" or not sys.stderr.isatty()
    click.echo(escape_controls(line) if is_plain else click.style(escape_controls(line), dim=True), err=True)


def print_error(line: str) -> None:
    """Write an error to standard error, in one line."""
    click.echo(f"toolchat: {escape_controls(line)}", err=True)


def escape_controls(text: str) -> str:
    """Return a text in one line, with every hidden character and line break escaped."""
    return HIDDEN.sub(_escape, text).replace("\n", "\\n")


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


def is_interactive() -> bool:
    """Return whether the user can answer a prompt: standard input and standard error are terminals."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def read_line(prompt: str) -> str:
    """Read a line; at a terminal it can be edited, and the arrow keys bring earlier ones back."""
    with suppress(ImportError):  # Windows has no such module, and edits lines itself
        import readline  # noqa: F401
    return input(prompt)


def show_warnings() -> None:
    """Print log records of level WARNING and above as plain lines, each of them once."""
    handler, form = logging.StreamHandler(), "toolchat: %(levelname)s: %(message)s"
    shown: dict[str, logging.LogRecord] = {}
    handler.addFilter(lambda record: shown.setdefault(record.getMessage(), record) is record)
    logging.basicConfig(level="WARNING", format=form, handlers=[handler], force=True)
