"""Commands of the application, each in a process of its own that takes no time to start.

To import the application takes ten times as long as most commands do, and twenty times where the coverage is measured.
So one process imports it, once for each worker of the tests, and every command runs in a fork of that one, with its own
arguments, folder, environment and streams, to the end of its interpreter. What Python itself reads when it starts,
its variables ``PYTHON...``, has no effect: whoever wants to see it starts Python.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

__all__ = ["ROOT", "TOOLS", "Forked", "Streams", "import_the_application"]

ROOT = Path(__file__).parent.parent
TOOLS = "TESTS_MORE_TOOLS"
"""A variable that names a folder whose packages are tool folders beside the application's own."""

Streams = tuple[int, int, int]
"""The descriptors that become standard input, output and errors."""

_REQUEST = 1 << 20


class Forked:
    """A command that runs; has those parts of ``subprocess.Popen`` that the tests use."""

    def __init__(self, arguments: Sequence[str], cwd: Path, env: Mapping[str, str], streams: Streams) -> None:
        self.args = arguments
        self.returncode: int | None = None
        self._keeper, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)  # the id and the code are two messages
        request = json.dumps([arguments, str(cwd), dict(env)]).encode()
        with theirs:
            socket.send_fds(_origin(), [request], [*streams, theirs.fileno()])
        self.pid = int(self._keeper.recv(32))

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def poll(self) -> int | None:
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end; gives the exit code, which for a signal is its negative number."""
        if self.returncode is None:
            self._keeper.settimeout(timeout)
            try:
                self.returncode = int(self._keeper.recv(32))
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired(list(self.args), timeout or 0) from None
            self._keeper.close()
        return self.returncode


@cache
def _origin() -> socket.socket:
    """The connection to the process that has imported the application."""
    ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _REQUEST)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.forked", str(theirs.fileno())], pass_fds=[theirs.fileno()], env=environment,
            cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        )  # fmt: skip

    @atexit.register
    def end() -> None:
        ours.close()
        process.wait()

    return ours


def _next_command(requests: socket.socket) -> list[str] | None:
    """Fork a command for each request, and tell whoever asked how it ends.

    Gives its arguments, in the fork, or nothing when nobody asks any more.
    """
    running: dict[int, tuple[int, int]] = {}  # by what tells of its end: a command's id and who asked
    while True:
        ready, _, _ = select.select([requests.fileno(), *running], [], [])
        for ended in running.keys() & set(ready):
            os.close(ended)
            _tell_the_end(*running.pop(ended))
        if requests.fileno() not in ready:
            continue
        request, descriptors, _, _ = socket.recv_fds(requests, _REQUEST, 4)
        if not request:
            return None
        *streams, asking = descriptors
        pid = os.fork()  # once: a fork is dear where the coverage is measured
        if not pid:
            _close(requests.detach(), asking, *running, *(each for _, each in running.values()))
            return _become(streams, *json.loads(request))
        running[os.pidfd_open(pid)] = pid, asking
        os.write(asking, f"{pid}".encode())
        _close(*streams)


def _tell_the_end(pid: int, asking: int) -> None:
    _, status = os.waitpid(pid, 0)
    with suppress(ConnectionError):  # whoever asked need not listen
        os.write(asking, f"{os.waitstatus_to_exitcode(status)}".encode())
    os.close(asking)


def _close(*descriptors: int) -> None:
    for each in descriptors:
        os.close(each)


def _become(streams: list[int], arguments: list[str], folder: str, environment: dict[str, str]) -> list[str]:
    for number, each in enumerate(streams):
        os.dup2(each, number)
        os.close(each)
    if os.isatty(0):
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # its Ctrl-C interrupts this process
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - as Python opens them
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[0] = folder
    if TOOLS in environment:
        importlib.import_module("app.tools").__path__.append(environment[TOOLS])
    return arguments


def import_the_application() -> None:
    """Import every module of it, those as well that are imported only when they are needed."""
    import app

    for module in pkgutil.walk_packages(app.__path__, "app."):
        importlib.import_module(module.name)


def main() -> int:
    """Import the application; what comes back here after that is each command, with the exit code of its own."""
    import_the_application()
    gc.collect()
    gc.freeze()  # or every command would look through all of this for garbage, and copy it, before it ends
    arguments = _next_command(socket.socket(fileno=int(sys.argv[1])))
    if arguments is None:
        return 0
    sys.argv = ["toolchat", *arguments]
    code: int = importlib.import_module("app.__main__").main()
    return code


if __name__ == "__main__":
    sys.exit(main())
