"""Several processes of the service behind nginx, as a team would run them."""

import asyncio
import re
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.command_line import environment
from tests.forked import Forked
from tests.ports import reserved
from tests.programs import require
from tests.waiting import PATIENCE, until

__all__ = [
    "Replica",
    "behind_nginx",
    "listens",
    "replacement",
    "running_replicas",
]


# Everything else is nginx's default: responses are buffered unless the service says otherwise.
CONFIGURATION = """
daemon off; master_process off; pid nginx.pid; error_log error.log;
events {{ worker_connections 512; }}
http {{
    access_log off;
    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    upstream toolchat {{ {servers} }}
    server {{
        listen 127.0.0.1:{port};
        location / {{ proxy_pass http://toolchat; }}
    }}
}}
"""


@dataclass(frozen=True)
class Replica:
    """One process of the service."""

    process: Forked
    url: str
    log: Path

    @property
    def finished(self) -> int:
        """How many requests it has answered."""
        return self.log.read_text().count('"request finished"')

    def kill(self) -> None:
        """End it at once, in the middle of whatever it does."""
        self.process.kill()


@asynccontextmanager
async def running_replicas(count: int, folder: Path, **variables: str) -> AsyncGenerator[list[Replica], None]:
    """Start processes side by side; each writes its log into the folder, and all are shown when the test fails.

    Whoever replaces one puts the other into its place.
    """
    logs = [folder / f"replica-{number}.log" for number in range(count)]
    processes = [_service(log, folder, variables) for log in logs]
    replicas: list[Replica] = []
    try:
        replicas += [Replica(each, await _url(log), log) for each, log in zip(processes, logs, strict=True)]
        yield replicas
    finally:
        await _end([each.process for each in replicas] or processes)
        _show_logs(folder)


async def replacement(replica: Replica, folder: Path, **variables: str) -> Replica:
    """Have a process end in order, and start another one at its address; as whoever deploys does."""
    replica.process.terminate()
    await asyncio.to_thread(replica.process.wait, PATIENCE)
    log = folder / f"replica-after-{replica.process.pid}.log"
    process = _service(log, folder, {**variables, "SERVER_PORT": replica.url.rpartition(":")[2]})
    return Replica(process, await _url(log), log)


@asynccontextmanager
async def behind_nginx(replicas: Sequence[Replica], folder: Path) -> AsyncGenerator[str, None]:
    """Start nginx, which hands requests to the replicas in turns; gives its base URL."""
    # One that could not be reached is tried again at once, and not, as is nginx's default, after ten seconds.
    servers = " ".join(f"server {each.url.removeprefix('http://')} max_fails=0;" for each in replicas)
    command = [require("nginx"), "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", "error.log"]
    with reserved() as holder:
        port: int = holder.getsockname()[1]
        (folder / "nginx.conf").write_text(CONFIGURATION.format(servers=servers, port=port))
        process = await asyncio.create_subprocess_exec(*command)
        try:
            await until(lambda: listens(port))
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            await asyncio.wait_for(process.wait(), PATIENCE)
            sys.stderr.write((folder / "error.log").read_text())


def _service(log: Path, folder: Path, variables: dict[str, str]) -> Forked:
    # nginx calls them by the name of its group, unless it is told to pass on what clients call it.
    variables = {"SERVER_PORT": "0", "ALLOWED_HOSTS": "toolchat", **variables}
    with log.open("wb") as written:
        streams = (written.fileno(), written.fileno(), written.fileno())
        return Forked([], folder, environment(variables), streams)


def _show_logs(folder: Path) -> None:
    for log in sorted(folder.glob("replica-*.log")):
        sys.stderr.write(log.read_text())


async def _url(log: Path) -> str:
    async def is_said() -> bool:
        return bool(_said(log))

    await until(is_said)
    return _said(log)


def _said(log: Path) -> str:
    return "".join(re.findall(r"toolchat on (http://\S+)", log.read_text()))


async def listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    await writer.wait_closed()
    return True


async def _end(processes: Sequence[Forked]) -> None:
    for process in processes:
        process.terminate()
    for process in processes:
        await asyncio.to_thread(process.wait, PATIENCE)
