"""A real PostgreSQL server on a free port of 127.0.0.1, which can be frozen, killed and started again.

with PostgresqlServer() as server:
    ...  # point STATE_URL at server.url
    server.freeze()
"""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil
import pytest

from tests.ports import reserved
from tests.programs import INITDB, POSTGRES, require
from tests.waiting import PATIENCE


class PostgresqlServer:
    """Has the same port and the same data every time it is started; its user ``admin`` may do everything.

    A test is skipped where no such server, or no psycopg, is installed.

    Args:
        settings: further settings of the server, such as ``max_connections=5``.
    """

    def __init__(self, *settings: str) -> None:
        self._programs = require(INITDB), require(POSTGRES)
        pytest.importorskip("psycopg", reason="needs psycopg: pip install psycopg", exc_type=ImportError)
        self._reserved = reserved()  # also while the server is down
        self.port: int = self._reserved.getsockname()[1]
        self.url = self.url_for("admin:canary")
        self._settings = ["fsync=off", "listen_addresses=127.0.0.1", "unix_socket_directories=", *settings]
        self._directory = Path(tempfile.mkdtemp(prefix="postgresql-"))
        self._process: subprocess.Popen[bytes] | None = None

    def url_for(self, user: str, database: str = "postgres") -> str:
        """The URL for a user, who may come with a password, and a database."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def __enter__(self) -> Self:
        initdb, _ = self._programs
        password = self._directory / "password"
        password.write_text("canary")
        if os.geteuid() == 0:
            shutil.chown(self._directory, "nobody")
            shutil.chown(password, "nobody")
        options = ["--auth=scram-sha-256", f"--pwfile={password}", "--username=admin", "--no-sync", "--encoding=UTF8"]
        command = [initdb, f"--pgdata={self._data}", "--locale=C", *options]
        subprocess.run(command, check=True, capture_output=True, **self._unprivileged)
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self._reserved.close()
        shutil.rmtree(self._directory)

    def start(self) -> None:
        """Start the server and wait until it answers."""
        _, postgres = self._programs
        settings = [f"--{each}" for each in self._settings]
        command = [postgres, "-D", str(self._data), "-p", str(self.port), *settings]
        with (self._directory / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, **self._unprivileged)
        until_then = time.monotonic() + PATIENCE
        while not self._answers():
            assert self._process.poll() is None, (self._directory / "log").read_text()
            assert time.monotonic() < until_then
            time.sleep(0.02)

    def freeze(self) -> None:
        """Stop all its processes where they are: connections stay open, and nothing is answered."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let frozen processes go on."""
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """End all its processes at once, if they run."""
        if self._process is not None:
            self.freeze()  # starts no further process
            found = self._signal(signal.SIGKILL)
            self._process.wait()
            psutil.wait_procs(found)
            self._process = None

    def run(self, *statements: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run statements as an administrator would; the rows of the last one."""
        import psycopg

        with psycopg.connect(self.url_for("admin:canary", database), autocommit=True) as connection:
            for each in statements:
                cursor = connection.execute(each.encode())
            return cursor.fetchall() if cursor.description else []

    @property
    def _data(self) -> Path:
        return self._directory / "data"

    @property
    def _unprivileged(self) -> dict[str, Any]:
        """PostgreSQL refuses to run as root."""
        if os.geteuid() != 0:
            return {}
        nobody = pwd.getpwnam("nobody")
        return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": [], "cwd": "/"}

    def _answers(self) -> bool:
        import psycopg

        try:
            self.run("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def _signal(self, number: signal.Signals) -> list[psutil.Process]:
        assert self._process is not None, "the server does not run"
        if self._process.poll() is not None:
            return []
        server = psutil.Process(self._process.pid)
        found = [server, *server.children(recursive=True)]  # each has a process group of its own
        for each in found:
            with suppress(psutil.NoSuchProcess):  # one that ended meanwhile
                each.send_signal(number)
        return found
