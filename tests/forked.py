"""Runs commands of the application in forks of a process that has imported it.

Importing the application takes ten times as long as most commands, and twenty times with coverage. So each test worker
starts one process that imports it, and every command runs in a fork of that process, with its own arguments, working
directory, environment and streams. The variables ``PYTHON...`` have no effect in a fork, because the interpreter reads
them when it starts.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import secrets
import select
import signal
import socket
import subprocess
import sys
import termios
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
Streams = tuple[int, int, int]
"""The descriptors that become standard input, output and errors."""

_REQUEST = 1 << 20
_PROGRAM = "TESTED_PROGRAM"
WITHOUT_EXAMPLE = {_PROGRAM: "toolchat"}
"""The variable with which a fork is the command ``toolchat``, which has no tools, instead of ``python -m app``."""


class Forked:
    """A running command, with the part of the interface of ``subprocess.Popen`` that the tests use."""

    def __init__(self, arguments: Sequence[str], cwd: Path, env: Mapping[str, str], streams: Streams) -> None:
        self.args = arguments
        self.returncode: int | None = None
        address = f"\0{_origin()}"
        self._keeper = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # the id and the code are two messages
        self._keeper.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _REQUEST)
        self._keeper.connect(address)
        socket.send_fds(self._keeper, [json.dumps([arguments, str(cwd), dict(env)]).encode()], streams)
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
        """Wait for the exit code, which is negative after a signal."""
        if self.returncode is None:
            self._keeper.settimeout(timeout)
            try:
                self.returncode = int(self._keeper.recv(32))
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired(list(self.args), timeout or 0) from None
            self._keeper.close()
        return self.returncode


def application() -> list[str]:
    """The command that another program runs in the place of ``python -m app``; it forks as well."""
    return [sys.executable, "-IS", str(Path(__file__).with_name("launcher.py")), _origin()]


@cache
def _origin() -> str:
    """Name of the abstract socket of the process that has imported the application; there are none but on Linux."""
    from tests.programs import require_linux  # the process itself needs no pytest

    require_linux()
    name = f"toolchat-tests-{secrets.token_hex(8)}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(f"\0{name}")
        listener.listen(100)
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.forked", str(listener.fileno())], pass_fds=[listener.fileno()],
            env=environment, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        )  # fmt: skip

    @atexit.register
    def end() -> None:
        process.communicate()

    return name


def _next_command(listener: socket.socket) -> list[str] | None:
    """Fork a command for each connection, and report its exit code there.

    Returns the arguments in the fork, or ``None`` when the test worker closes our standard input.
    """
    running: dict[int, tuple[int, socket.socket]] = {}  # pidfd: process id and connection
    while True:
        clients = {client.fileno(): pid for pid, client in running.values()}
        ready, _, _ = select.select([0, listener.fileno(), *running, *clients], [], [])
        for client, pid in clients.items():
            if client in ready:  # its commands end with it
                os.kill(pid, signal.SIGKILL)
        for ended in running.keys() & set(ready):
            os.close(ended)
            _report_exit(*running.pop(ended))
        if 0 in ready:
            return None
        if listener.fileno() not in ready:
            continue
        connection, _ = listener.accept()
        request, streams, _, _ = socket.recv_fds(connection, _REQUEST, 3)
        if not request:  # the client was killed before it asked
            connection.close()
            continue
        pid = os.fork()  # one fork only: forking is slow with coverage
        if not pid:
            _close(listener.detach(), connection.detach(), *running, *(each.detach() for _, each in running.values()))
            return _become(streams, *json.loads(request))
        running[os.pidfd_open(pid)] = pid, connection
        connection.send(f"{pid}".encode())
        _close(*streams)


def _report_exit(pid: int, connection: socket.socket) -> None:
    _, status = os.waitpid(pid, 0)
    with connection, suppress(ConnectionError):  # the client may be gone
        connection.send(f"{os.waitstatus_to_exitcode(status)}".encode())


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
    signal.signal(signal.SIGINT, signal.default_int_handler)  # tests in the background ignore it
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - as Python opens them
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[0] = folder
    return arguments


def import_the_application() -> None:
    """Import every module, including those with deferred imports."""
    import app
    import toolchat

    for package in (toolchat, app):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if module.name != "app.main":  # it reads the settings
                importlib.import_module(module.name)


def main() -> int:
    """Import the application, then serve requests; in each fork this returns the exit code of its command."""
    import_the_application()
    gc.collect()
    gc.freeze()  # or each fork would search, and copy, all these objects
    arguments = _next_command(socket.socket(fileno=int(sys.argv[1])))
    if arguments is None:
        return 0
    sys.argv = ["toolchat", *arguments]
    is_service = os.environ.pop(_PROGRAM, "") == "toolchat"
    module, function = ("toolchat.service.cli", "run") if is_service else ("app.__main__", "main")
    code: int = getattr(importlib.import_module(module), function)()
    return code


if __name__ == "__main__":
    code = main()
    # As the interpreter ends, but without taking all objects apart, which takes longer than most commands.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
