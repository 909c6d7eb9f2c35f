"""More clients than a shell's usual limit of open files has room for."""

import asyncio
import re
import sys
from pathlib import Path

from tests.command_line import environment
from tests.server.paced_model import PacedModel, text
from tests.server.raw_client import connected
from tests.waiting import until

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
