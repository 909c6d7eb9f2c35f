"""A terminal with somebody at it: a pseudo-terminal around the command line, what it shows, and what is typed."""

import asyncio
import contextlib
import os
import pty
import re
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from tests.command_line import environment
from tests.forked import Forked
from tests.waiting import PATIENCE

__all__ = ["CTRL_C", "CTRL_D", "UP", "Terminal", "at_a_terminal"]

CTRL_C, CTRL_D, UP = "\x03", "\x04", "\x1b[A"
_STEERING = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


class Terminal:
    """What a process shows, and what is typed to it."""

    def __init__(self, process: Forked, keyboard: int) -> None:
        self.process = process
        self._keyboard = keyboard
        self._raw = b""
        self._seen = 0
        self._more = asyncio.Event()
        asyncio.get_running_loop().add_reader(keyboard, self._read)

    @property
    def raw(self) -> str:
        """Everything that has been shown, colours and moves of the cursor included."""
        return self._raw.decode(errors="replace")

    @property
    def shown(self) -> str:
        """The same as a reader sees it, line after line."""
        return _STEERING.sub("", self.raw)

    def type(self, keys: str) -> None:
        os.write(self._keyboard, keys.encode())

    async def interrupt(self, heard: Callable[[], bool]) -> None:
        """Press Ctrl-C at a prompt until it is heard; what was typed before must have been shown.

        Python's readline misses a signal that comes in the microseconds before it waits for the next key, and waits on
        for the key that Ctrl-C took away in the microseconds before it was read.
        """
        async with asyncio.timeout(PATIENCE):
            while not heard():
                self.type(CTRL_C)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.5):
                        while not heard():  # noqa: ASYNC110 - a process has no event for its end
                            await asyncio.sleep(0.005)

    async def enter(self, line: str) -> None:
        """Type a line once there is a prompt to type it at."""
        await self.sees("> ")
        self.type(f"{line}\n")

    async def sees(self, text: str) -> str:
        """Wait until a text is shown behind what was waited for before; gives what came up to its end."""
        async with asyncio.timeout(PATIENCE):
            while text not in self.shown[self._seen :]:
                self._more.clear()
                await self._more.wait()
        start = self._seen
        self._seen = self.shown.index(text, start) + len(text)
        return self.shown[start : self._seen]

    async def ends(self) -> int:
        """Wait for the end of the process; gives its exit code."""
        return await asyncio.to_thread(self.process.wait, PATIENCE)

    def _read(self) -> None:
        try:
            piece = os.read(self._keyboard, 65536)
        except OSError:  # nobody is left at the other end
            piece = b""
        if not piece:
            asyncio.get_running_loop().remove_reader(self._keyboard)
        self._raw += piece
        self._more.set()


@asynccontextmanager
async def at_a_terminal(*arguments: str, cwd: Path, **variables: str) -> AsyncGenerator[Terminal, None]:
    """Start a command whose input, output and errors are one terminal of its own."""
    keyboard, screen = pty.openpty()
    process = Forked(arguments, cwd, environment({"TERM": "xterm", **variables}), (screen, screen, screen))
    os.close(screen)
    terminal = Terminal(process, keyboard)
    try:
        yield terminal
    finally:
        process.kill()
        process.wait(PATIENCE)
        sys.stderr.write(terminal.shown)
        with contextlib.suppress(ValueError):
            asyncio.get_running_loop().remove_reader(keyboard)
        os.close(keyboard)
