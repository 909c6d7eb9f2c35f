"""Background questions survive ``kill -9``: another process carries on, and nothing is done twice."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.command_line import started
from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, chunk, delta, finish, sensible_model, sse
from tests.service.api.background.test_routes import ASYNC, EVENTS, SILENT, finished
from tests.serving import client_of, events_of, service
from tests.waiting import until

pytestmark = pytest.mark.slow

WAREHOUSE = '''
"""Tools that leave a line for each run, and wait until a file allows them to end."""

import asyncio
from pathlib import Path

from toolchat import ToolContext, ToolModule, tool


async def run(name: str) -> str:
    with Path("runs").open("a") as runs:
        runs.write(name + "\\n")
    while not Path("open").exists():
        await asyncio.sleep(0.01)
    return f"{name} done"


@tool(read_only=True)
async def look() -> str:
    """Look."""
    return await run("look")


@tool
async def ship() -> str:
    """Ship."""
    return await run("ship")


@tool(retries=1)
async def pay(context: ToolContext) -> str:
    """Pay an invoice, once for each key."""
    with Path("keys").open("a") as keys:
        keys.write(context.idempotency_key + "\\n")
    return await run("pay")


module = ToolModule(functions=(look, ship, pay))
'''


def calling(name: str) -> Callable[[PlayedRequest], Answer]:
    """A model that calls a tool once, then repeats its result."""

    def answer(request: PlayedRequest) -> Answer:
        results = [each["content"] for each in request.body["messages"] if each["role"] == "tool"]
        if results:
            return sse(delta(role="assistant", content=results[-1]), finish("stop"), chunk(usage=None))
        call = {"index": 0, "id": "c", "type": "function", "function": {"name": name, "arguments": "{}"}}
        return sse(delta(role="assistant", tool_calls=[call]), finish("tool_calls"))

    return answer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tools" / "warehouse").mkdir(parents=True)
    (tmp_path / "tools" / "warehouse" / "__init__.py").write_text(WAREHOUSE)
    return tmp_path


def runs(folder: Path) -> list[str]:
    return (folder / "runs").read_text().split() if (folder / "runs").exists() else []


def variables(folder: Path, player: OpenAIPlayer) -> dict[str, str]:
    return {
        "STATE_URL": f"sqlite:///{folder}/state.db",
        "TOOLS_PATH": str(folder / "tools"),
        "OPENAI_BASE_URL": player.base_url,
    }


async def accept(url: str, session: str = "trip") -> str:
    async with client_of(url) as client:
        body = {"userInput": "Go", "sessionId": session, "tools": ["look", "ship", "pay"]}
        reply = await client.post("/chat", json=body, headers=ASYNC)
        assert reply.status_code == 202, reply.text
        path: str = reply.headers["location"]
        return path


@pytest.mark.parametrize(
    ("tool", "answer", "ran"),
    [
        ("look", "look done", ["look", "look"]),
        ("pay", "pay done", ["pay", "pay"]),
        ("ship", "outcome-unknown", ["ship"]),
    ],
)
async def test_a_call_that_was_killed_runs_again_only_if_it_may_run_twice(
    tool: str, answer: str, ran: list[str], folder: Path
) -> None:
    async with OpenAIPlayer(calling(tool)) as player:
        with started(cwd=folder, **variables(folder, player)) as (process, url):
            path = await accept(url)
            await until(lambda: runs(folder))
            process.kill()
            process.wait()
        (folder / "open").touch()
        with started(cwd=folder, **variables(folder, player)) as (_, url):
            async with client_of(url) as client:
                document = await finished(client, path)
                conversation = (await client.get("/chat/trip")).json()
    assert (document["status"], document["tries"]) == ("completed", 2)
    assert answer in document["answer"]["answer"]
    assert runs(folder) == ran
    keys = (folder / "keys").read_text().split() if tool == "pay" else ["none"]
    assert len(set(keys)) == 1, "both runs of a call have the same idempotency key"
    assert conversation["turns"] == 1
    first_round = [each for each in player.requests if not any(m["role"] == "tool" for m in each.body["messages"])]
    assert len(first_round) == (2 if tool == "look" else 1), "only a round that reads is asked again"


async def test_a_result_that_was_stored_is_not_computed_again_by_another_process(folder: Path) -> None:
    (folder / "open").touch()
    hanging = True

    def answer(request: PlayedRequest) -> Answer:
        after = any(each["role"] == "tool" for each in request.body["messages"])
        return Answer(is_silent=True, ending="hang") if after and hanging else calling("ship")(request)

    async with OpenAIPlayer(answer) as player:
        with (
            started(cwd=folder, **variables(folder, player)) as (one, url),
            started(cwd=folder, **variables(folder, player)) as (_, other),
        ):
            path = await accept(url)
            await until(lambda: len(player.requests) == 2)
            async with client_of(other) as client:
                reading = asyncio.create_task(_text(client, path))
                hanging = False
                one.kill()
                document = await finished(client, path)
                events = events_of(await reading)
    assert (document["status"], document["answer"]["answer"]) == ("completed", "ship done")
    assert runs(folder) == ["ship"]
    names = [each.name for each in events]
    assert "tool_call_finished" in names[names.index("restarted") :], "the new try tells it again"
    assert names.count("restarted") == 1
    assert events[-1].data["answer"] == "ship done"
    assert [each["result"] for each in document["answer"]["tool_calls"]] == ["ship done"]
    assert document["answer"]["rounds"] == 2


async def _text(client: httpx.AsyncClient, path: str) -> str:
    return (await client.get(path, headers=EVENTS)).text


async def test_a_question_whose_processes_die_has_failed_after_three(folder: Path) -> None:
    async with OpenAIPlayer(calling("look")) as player:
        path = ""
        for number in range(1, 4):
            with started(cwd=folder, **variables(folder, player)) as (process, url):
                path = path or await accept(url)
                await until(lambda number=number: len(runs(folder)) == number)  # type: ignore[misc]
                process.kill()
                process.wait()
        with started(cwd=folder, **variables(folder, player)) as (_, url):
            async with client_of(url) as client:
                document = await finished(client, path)
    assert document["status"] == "failed"
    assert "3 processes died at the same point" in document["error"]["detail"]
    assert runs(folder) == ["look"] * 3


async def test_a_service_that_is_restarted_often_has_not_crashed(tmp_path: Path) -> None:
    async with OpenAIPlayer(lambda _: SILENT) as player:
        url, path = f"sqlite:///{tmp_path}/state.db", ""
        for number in range(1, 5):
            async with service(OPENAI_BASE_URL=player.base_url, STATE_URL=url) as client:
                path = path or (await client.post("/chat", json={"userInput": "Go"}, headers=ASYNC)).headers["location"]
                await until(lambda number=number: len(player.requests) == number)  # type: ignore[misc]
        player.follow(sensible_model())
        async with service(OPENAI_BASE_URL=player.base_url, STATE_URL=url) as client:
            assert (await finished(client, path))["status"] == "completed"
