"""The version before this one: run from the repository's history, and the records that it leaves.

``python -m tests.sessions.older_version`` writes its records to ``records/older.json``, for clones without history.
After a release, ``COMMIT`` becomes the released one.
"""

import asyncio
import io
import json
import re
import subprocess
import sys
import tarfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import pytest

from tests.chat.played import JSON, Turn, asks, clock, says, turns, update
from tests.command_line import ROOT, environment
from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest
from tests.players.redis_server import RedisServer
from tests.serving import client_of
from tests.waiting import until

__all__ = ["RECORDS", "VARIABLES", "Left", "Model", "in_history", "leave", "records", "running"]

COMMIT = "a97a8cc37e7c531bc1e8cbef215c70085bc55f83"
"""The last one of 0.1.0."""
RECORDS = Path(__file__).parent / "records" / "older.json"
KEY = "0123456789abcdef0123456789abcdef"
CALLER = {"X-API-Key": KEY}
VARIABLES = {
    "API_KEYS": f"alice={sha256(KEY.encode()).hexdigest()}", "EXAMPLES_ENABLED": "true",
    "CHAT_PROVIDER": "openai_compatible", "TOOL_MAX_CALLS_PER_SESSION": "99",
}  # fmt: skip
_LIGHT = ("switchLight", {"on": True})
_LOOKUP = {"type": "function", "function": {"name": "lookup", "parameters": {"type": "object", "properties": {}}}}
_QUESTIONS: Mapping[str, tuple[Turn, ...]] = {
    "Hello": (says("hello"),),
    "Plan": (asks(update(("a", "pending"))), asks(_LIGHT)),
    "Light": (asks(_LIGHT),),
    "Wake": (asks(("setAlarm", {"time": "PT10M"})), says("set")),
    "Both": (asks(clock("Asia/Tokyo"), ("lookup", {})),),
}


class Model:
    """A model whose turns depend on the question."""

    def __init__(self) -> None:
        self.play(_QUESTIONS)

    def play(self, questions: Mapping[str, tuple[Turn, ...]]) -> None:
        self._scripts = {question: turns(*given) for question, given in questions.items()}

    def __call__(self, request: PlayedRequest) -> Answer:
        questions = [each["content"] for each in request.body["messages"] if each["role"] == "user"]
        return self._scripts[questions[-1]](request)


@dataclass(frozen=True)
class Left:
    """What a client keeps of its requests to one version, for another one."""

    plan: str
    """The id of an approval, as the next."""
    light: str
    call: dict[str, Any]
    """A call of the client's tool."""
    run: dict[str, Any]
    """The result of a tool."""


async def leave(client: httpx.AsyncClient) -> Left:
    """Have a record stored of each kind."""
    await ask(client, "/chat", "Hello", "talk")
    plan = await ask(client, "/todo/chat", "Plan", "plan")
    light = await ask(client, "/chat", "Light", "light")
    await set_alarm(client)
    completion = await complete(client)
    return Left(
        plan["approval"]["id"], light["approval"]["id"], completion["tool_calls"][0], (await run(client)).json()
    )


async def ask(client: httpx.AsyncClient, path: str, query: str, session: str) -> dict[str, Any]:
    answer = await client.get(path, params={"query": query, "sessionId": session}, headers=JSON | CALLER)
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


async def set_alarm(client: httpx.AsyncClient) -> httpx.Response:
    headers = JSON | CALLER | {"Idempotency-Key": "alarm"}
    return await client.post("/tool/alarm", params={"query": "Wake"}, headers=headers)


async def run(client: httpx.AsyncClient) -> httpx.Response:
    return await client.post("/tools/switchLight", json={"on": True}, headers=CALLER | {"Idempotency-Key": "run"})


async def complete(client: httpx.AsyncClient, *more: Mapping[str, Any]) -> dict[str, Any]:
    """Ask for a tool of the service and one of the client; the message of the answer."""
    messages = [{"role": "user", "content": "Both"}, *more]
    body = {"model": "toolchat", "messages": messages, "tools": [_LOOKUP]}
    answer = await client.post("/v1/chat/completions", json=body, headers=CALLER)
    assert answer.status_code == 200, answer.text
    message: dict[str, Any] = answer.json()["choices"][0]["message"]
    return message


async def records(redis: RedisServer) -> dict[str, str]:
    """The stored values, without locks and fences, which are the same in both versions."""
    keys = await redis.run("KEYS", "toolchat:*")
    assert isinstance(keys, list)
    names = [key.decode() for key in keys if not key.endswith((b":fence", b":lock", b":probe"))]
    values = [await redis.run("GET", name) for name in names]
    return {name: value.decode() for name, value in zip(names, values, strict=True) if isinstance(value, bytes)}


def in_history() -> bool:
    """Whether this clone has the older version."""
    try:
        return not subprocess.run(
            ["git", "cat-file", "-e", COMMIT], cwd=ROOT, capture_output=True, check=False
        ).returncode
    except FileNotFoundError:
        return False


@asynccontextmanager
async def running(folder: Path, **variables: str) -> AsyncGenerator[httpx.AsyncClient, None]:
    """Run the older version, with the tools of its own tests; yields a client."""
    _extract(folder)
    variables = environment(variables | {"PYTHONPATH": str(folder), "SERVER_PORT": "0"})
    log = folder / "log"
    with log.open("wb") as output:
        arguments = (sys.executable, "-m", "app", "serve")
        process = await asyncio.create_subprocess_exec(
            *arguments, cwd=folder, env=variables, stdout=output, stderr=output
        )
    try:
        await until(lambda: process.returncode is not None or _urls(log))
        if process.returncode is not None:
            sys.stderr.write(log.read_text())
            pytest.xfail("the older version does not start with the installed packages")
        async with client_of(_urls(log)[0]) as client:
            yield client
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


def _extract(folder: Path) -> None:
    command = ["git", "archive", COMMIT, "app", "tests/sessions/lights"]
    archive = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    (folder / "tests/sessions/lights/light").rename(folder / "app/tools/light")


def _urls(log: Path) -> list[str]:
    return re.findall(r"http://127\.0\.0\.1:\d+", log.read_text())


async def _main() -> None:
    with TemporaryDirectory() as folder:
        async with RedisServer() as redis, OpenAIPlayer(Model()) as player:
            variables = VARIABLES | {"REDIS_URL": redis.url, "OPENAI_BASE_URL": player.base_url}
            async with running(Path(folder), **variables) as client:
                left = await leave(client)
            document = {"left": vars(left), "records": await records(redis)}
    RECORDS.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(_main())
