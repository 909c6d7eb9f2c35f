"""More clients than a process may open files, and addresses."""

import asyncio
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.command_line import environment, url_of
from tests.service.observability.reading import figures_of
from tests.service.server.paced_model import PacedModel, text
from tests.service.server.raw_client import RawClient, connected
from tests.serving import client_of
from tests.waiting import PATIENCE, until

FILES = 160
MOST = (FILES - 96) // 2


async def test_a_connection_beyond_the_limit_is_refused_and_the_others_are_answered(tmp_path: Path) -> None:
    command = f"ulimit -n {FILES}; exec {shlex.quote(sys.executable)} -m app"
    async with PacedModel(text(["begun", "finished"])) as model:
        model.gate.clear()
        variables = environment({"SERVER_PORT": "0", "OPENAI_BASE_URL": model.base_url})
        process = subprocess.Popen(  # noqa: ASYNC220 - it is there at once
            ["/bin/sh", "-c", command], cwd=tmp_path, env=variables, stderr=subprocess.PIPE, text=True
        )
        try:
            assert process.stderr is not None
            url = await asyncio.to_thread(url_of, process.stderr)
            async with asyncio.timeout(PATIENCE), connected(url, MOST) as within:
                await asyncio.gather(*(each.ask("/time/chat") for each in within))
                await asyncio.gather(*(each.read_until(b"begun") for each in within))
                async with connected(url, 2 * FILES) as beyond:
                    await asyncio.gather(*map(_refused, beyond))
                model.gate.set()
                await asyncio.gather(*(each.read_until(b"event: done") for each in within))
            async with client_of(url) as client:
                figures = await figures_of(client)
        finally:
            process.terminate()
            _, log = await asyncio.to_thread(process.communicate)
    lines = [json.loads(line)["message"] for line in log.splitlines() if line.startswith("{")]
    assert sum(line.startswith("too many connections") for line in lines) == 1
    assert process.returncode == 0
    assert figures["toolchat_connections_refused_total", ()] == 2 * FILES


async def _refused(client: RawClient) -> None:
    answer = await client.read_until(b'"overloaded"')
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"retry-after: 1\r\n" in answer


FEW_FILES = f'ulimit -Sn 100; exec "{sys.executable}" -m app'


async def test_a_low_limit_of_open_files_is_raised_as_far_as_the_system_lets_us(tmp_path: Path) -> None:
    async with PacedModel(text(["one ", "two"])) as model:
        model.gate.clear()
        variables = environment({"SERVER_PORT": "0", "OPENAI_BASE_URL": model.base_url, "LOG_LEVEL": "ERROR"})
        process = await asyncio.create_subprocess_exec(
            "bash", "-c", FEW_FILES, cwd=tmp_path, env=variables, stderr=asyncio.subprocess.PIPE
        )
        try:
            assert process.stderr is not None
            url = "".join(re.findall(r"http://\S+", (await process.stderr.readline()).decode()))
            async with connected(url, 200) as clients:
                for each in clients:
                    await each.ask("/time/chat", Connection="close")
                await until(lambda: model.asked == 200)
                model.gate.set()
                answers = await asyncio.gather(*(each.read_to_end() for each in clients))
        finally:
            process.terminate()
            await process.wait()
    assert sum(b"event: done" in answer for answer in answers) == 200
    assert process.returncode == 0
