"""Questions in the background while their processes are killed: each is answered, and no guarded call runs twice."""

import asyncio
import itertools
import json
import signal
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.faults.service import Service
from tests.faults.stage import Stage
from tests.faults.upstream import Call, playing, speaking, text_of
from tests.players.openai_player import delta, finish, sse
from tests.waiting import until

_CLIENTS = 8
_TOOLS = '''
import asyncio
import os

from toolchat import ToolContext, ToolModule, tool


async def run(word: str, key: str = "") -> str:
    runs = os.open({runs!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(runs, f"{{word}}{{key}}\\n".encode())
    os.close(runs)
    await asyncio.sleep(0.02)
    return word


@tool
async def ship(word: str) -> str:
    """Do what must happen once."""
    return await run(word)


@tool(read_only=True)
async def look(word: str) -> str:
    """Do what may happen again."""
    return await run(word)


@tool(retries=1)
async def pay(word: str, context: ToolContext) -> str:
    """Do what may happen again under its key."""
    return await run(word, ":" + context.idempotency_key)


module = ToolModule(functions=(ship, look, pay))
'''


async def _answer(call: Call) -> None:
    """Play the model: it calls the tool that the question begins with, then repeats the result."""
    text, last = text_of(call.body), call.body["messages"][-1]
    if last["role"] == "tool":
        return await speaking(lambda _: str(last["content"]), pieces=3, pause=0.01)(call)
    function = {"name": text.partition("-")[0], "arguments": json.dumps({"word": text})}
    calls = [{"index": 0, "id": "c0", "type": "function", "function": function}]
    return await playing(sse(delta(role="assistant", tool_calls=calls), finish("tool_calls")))(call)


class _Chaos:
    """Clients that have questions accepted by any process, while the processes are killed."""

    def __init__(self, stage: Stage, services: Sequence[Service], runs: Path) -> None:
        self._services, self._runs = services, runs
        self._draw = stage.random()
        self._end = time.monotonic() + stage.minutes * 20  # a third of the time for each set-up
        self._numbers = itertools.count()
        self._up = list(services)
        self.accepted: dict[str, str] = {}
        """The words of the questions by their paths."""
        self.kills = self.given_up = 0

    async def whole(self) -> list[str]:
        """Ask and kill until the time is over; returns what is wrong, one line for each question."""
        await asyncio.gather(self._kill(), *(self._ask() for _ in range(_CLIENTS)))
        faults: list[str] = []
        for path, word in self.accepted.items():
            document = await self._finished(path)
            if "died at the same point" in document.get("error", {}).get("detail", ""):
                self.given_up += 1  # with that reason, as it must after three crashes
            elif document["status"] != "completed" or not self._tells(word, document["answer"]["answer"]):
                faults.append(f"lost: {word} {json.dumps(document)[:200]}")
        ran = Counter(self._runs.read_text().split())
        faults += [f"doubled: {word}" for word, times in ran.items() if word.startswith("ship") and times > 1]
        keys = Counter(word.partition(":")[0] for word in ran)
        faults += [f"two keys: {word}" for word, found in keys.items() if found > 1]
        return faults

    @staticmethod
    def _tells(word: str, answer: str) -> bool:
        return word in answer or (word.startswith("ship") and "outcome-unknown" in answer)

    async def _finished(self, path: str) -> dict[str, Any]:
        document: dict[str, Any] = {}

        async def is_finished() -> bool:
            nonlocal document
            reply = await self._services[0].ask(path)
            document = json.loads(reply.body) if reply.status == 200 else {"status": f"{reply.status}"}
            return document["status"] not in ("queued", "running", "503", "0")

        await until(is_finished)
        return document

    async def _ask(self) -> None:
        while time.monotonic() < self._end:
            word = f"{self._draw.choice(('ship', 'look', 'pay'))}-{next(self._numbers)}"
            body = {"userInput": word, "sessionId": f"s{self._draw.randrange(40)}", "tools": ["ship", "look", "pay"]}
            with suppress(OSError, EOFError, ValueError, TimeoutError):
                service = self._draw.choice(self._up)
                reply = await service.ask("/chat", json_body=body, headers={"Prefer": "respond-async"})
                if reply.status == 202:
                    self.accepted[f"/questions/{json.loads(reply.body)['id']}"] = word
            await asyncio.sleep(self._draw.uniform(0, 0.05))

    async def _kill(self) -> None:
        while time.monotonic() < self._end:
            await asyncio.sleep(self._draw.uniform(0.5, 3))
            victim = self._draw.choice(self._up)
            self.kills += 1
            workers = psutil.Process(victim.popen.pid).children()
            if workers:
                with suppress(psutil.NoSuchProcess):
                    self._draw.choice(workers).kill()
                continue
            if len(self._up) > 1:
                self._up.remove(victim)
            victim.signal(signal.SIGKILL)
            await victim.ended()
            await victim.start()
            self._up = list(self._services)


async def _lost_or_doubled(stage: Stage, services: int, **variables: str) -> list[str]:
    folder, runs = stage.folder / "tools-background", stage.folder / f"runs-{stage.name()}"
    (folder / "once").mkdir(parents=True, exist_ok=True)
    (folder / "once" / "__init__.py").write_text(_TOOLS.format(runs=str(runs)))
    runs.write_text("")
    settings = {"TOOLS_PATH": str(folder), "SESSION_WAIT": "2", **variables}
    stage.upstream.behave = _answer
    chaos = _Chaos(stage, [await stage.own(**settings) for _ in range(services)], runs)
    faults = await chaos.whole()
    assert len(chaos.accepted) > 10, f"only {len(chaos.accepted)} questions were accepted"
    assert chaos.given_up * 100 < len(chaos.accepted), f"{chaos.given_up} were given up after three crashes"
    told = f"{len(chaos.accepted)} accepted, {chaos.kills} kills, {chaos.given_up} given up after three crashes"
    print("; ".join([told, *faults[:3]]))
    return faults


@pytest.mark.loud
async def test_questions_of_one_process_with_a_file(stage: Stage) -> None:
    """One process with a file is killed and started again while clients have questions accepted."""
    assert await _lost_or_doubled(stage, 1, STATE_URL=f"sqlite:///{stage.folder}/one.db") == []


@pytest.mark.nightly
@pytest.mark.loud
async def test_questions_of_two_workers_with_a_file(stage: Stage) -> None:
    """Two workers with a file are killed in turn."""
    assert await _lost_or_doubled(stage, 1, SERVER_WORKERS="2", STATE_URL=f"sqlite:///{stage.folder}/two.db") == []


@pytest.mark.nightly
@pytest.mark.loud
async def test_questions_of_three_replicas_with_redis(stage: Stage) -> None:
    """Three replicas that share Redis are killed in turn."""
    folder = stage.folder / "redis-background"
    folder.mkdir()
    redis = await stage.redis("--appendonly", "yes", "--appendfsync", "always", "--dir", str(folder))
    assert await _lost_or_doubled(stage, 3, STATE_URL=f"redis://127.0.0.1:{redis.port}/0") == []
