"""The shares of clients: the limit of unfinished questions, and whose question runs next."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, sensible_model
from tests.service.api.background.test_routes import ASYNC, SILENT, accepted, finished
from tests.serving import service
from tests.waiting import PATIENCE, until
from toolchat.errors import Overloaded, QuotaExceeded
from toolchat.service.access.keys import digest_of
from toolchat.service.access.principals import ANONYMOUS
from toolchat.service.api.background.backlog import Backlog
from toolchat.service.api.background.records import MAX_AGE, BackgroundQuestion, BackgroundRecords, Unfinished
from toolchat.service.api.background.runner import BackgroundRunner
from toolchat.service.request_state import state_of
from toolchat.state.sqlite import SqliteStateStore


def admit(backlog: Backlog, client: str, number: int) -> None:
    for each in range(number):
        question = Unfinished(f"{client}{each}", client, "", 0)
        backlog.admit(question)
        backlog.put(question)


def begun(backlog: Backlog) -> list[str]:
    """The clients of the questions that begin now, in order."""
    clients = []
    while (found := backlog.next()) is not None:
        clients.append(found.client)
    return clients


def test_clients_take_turns() -> None:
    backlog = Backlog()
    admit(backlog, "a", 3)
    admit(backlog, "b", 2)
    assert begun(backlog) == ["a", "b", "a", "b", "a"]


def test_a_client_that_has_had_its_turn_comes_behind_those_that_wait() -> None:
    backlog = Backlog()
    for client in range(65):
        admit(backlog, f"{client}-", 2)
    assert begun(backlog) == [f"{client}-" for client in range(64)]
    backlog.remove(Unfinished("0-0", "0-", "", 0))
    assert begun(backlog) == ["64-"]


def test_one_client_has_half_of_the_slots_and_two_leave_some_for_others() -> None:
    backlog = Backlog()
    admit(backlog, "a", 100)
    assert len(begun(backlog)) == 32
    admit(backlog, "b", 100)
    assert len(begun(backlog)) == 24
    admit(backlog, "c", 2)
    assert begun(backlog) == ["c"]


def test_a_question_begins_when_it_is_accepted_if_its_client_has_a_slot() -> None:
    backlog = Backlog()
    found = [backlog.admit(Unfinished(f"{each}", "a", "", 0)) for each in range(33)]
    assert found == [True] * 32 + [False]
    assert backlog.admit(Unfinished("b", "b", "", 0))


def test_ten_clients_leave_room_for_a_stranger() -> None:
    backlog = Backlog()
    for client in "abcdefghi":
        admit(backlog, client, 100)
    admit(backlog, "stranger", 1)
    with pytest.raises(Overloaded, match="of this client"):
        admit(backlog, "stranger", 1)


def test_a_question_that_runs_elsewhere_begins_when_its_process_has_died() -> None:
    backlog, question = Backlog(), Unfinished("q", "a", "", 0)
    backlog.refresh({}, {question: False})
    assert begun(backlog) == []
    backlog.refresh(backlog.known(), {question: True})
    assert begun(backlog) == ["a"]


def test_a_question_that_ended_while_the_list_was_read_does_not_begin_again() -> None:
    backlog, question = Backlog(), Unfinished("q", "a", "s", 0)
    backlog.put(question)
    before = backlog.known()
    backlog.remove(question)
    backlog.refresh(before, {question: True})
    assert (begun(backlog), backlog.known()) == ([], {})


def test_a_question_that_has_failed_for_a_while_pauses_in_all_processes() -> None:
    backlog = Backlog()
    backlog.refresh({}, {Unfinished("q", "a", "", 9): True})
    assert begun(backlog) == []


@pytest.fixture
async def busy_client() -> AsyncGenerator[httpx.AsyncClient, None]:
    def slow_for_alice(request: PlayedRequest) -> Answer:
        return SILENT if "slow" in str(request.body["messages"]) else sensible_model()(request)

    keys = ",".join(f"{name}={digest_of(name)}" for name in ("alice", "bob"))
    async with (
        OpenAIPlayer(slow_for_alice) as player,
        service(OPENAI_BASE_URL=player.base_url, API_KEYS=keys) as client,
    ):
        yield client


async def test_a_question_is_answered_while_another_client_has_a_hundred_slow_ones(
    busy_client: httpx.AsyncClient,
) -> None:
    for _ in range(100):
        body = {"userInput": "slow"}
        assert (await busy_client.post("/chat", json=body, headers=ASYNC | {"X-API-Key": "alice"})).status_code == 202
    busy_client.headers["X-API-Key"] = "bob"
    assert (await finished(busy_client, await accepted(busy_client)))["status"] == "completed"


async def _ready() -> None:
    """Every tool is there."""


async def test_stored_questions_wait_for_the_tools_that_they_may_need() -> None:
    waits, tools, answered, store = asyncio.Event(), asyncio.Event(), asyncio.Event(), SqliteStateStore()

    async def answer(*_: object) -> None:
        answered.set()

    async def wait_ready() -> None:
        waits.set()
        await tools.wait()

    question = BackgroundQuestion("/chat", (), ANONYMOUS, "")
    await BackgroundRecords(store).add(question, b"{}")
    runner = BackgroundRunner(answer, store, lambda principal: principal, wait_ready)
    async with asyncio.timeout(PATIENCE), runner.running():
        await waits.wait()
        assert not answered.is_set()
        tools.set()
        await answered.wait()


@pytest.mark.parametrize(("wait", "event"), [(MAX_AGE + 1, "failed"), (1, "waiting")])
async def test_a_quota_is_waited_for_unless_the_question_has_failed_by_then(wait: float, event: str) -> None:
    async def refuse(scope: Scope, _: Receive, send: Send) -> None:
        state_of(scope).fail(QuotaExceeded("used up", "day", retry_after=wait))
        await send({"type": "http.response.start", "status": 429, "headers": ()})

    runner = BackgroundRunner(refuse, SqliteStateStore(), lambda principal: principal, _ready)
    question = BackgroundQuestion("/chat", (), ANONYMOUS, "")
    async with runner.running():
        await runner.accept(question, b"{}")
        (_, _, (name, _)), *_ = await anext(runner.records.events(question))
    assert name == event


async def test_a_question_that_waits_for_its_turn_can_be_cancelled() -> None:
    async def answer(*_: object) -> None:
        await asyncio.Event().wait()

    runner = BackgroundRunner(answer, SqliteStateStore(), lambda principal: principal, _ready)
    questions = [BackgroundQuestion("/chat", (), ANONYMOUS, "") for _ in range(33)]
    async with asyncio.timeout(PATIENCE), runner.running():
        for each in questions:
            await runner.accept(each, b"{}")
        assert (await runner.cancel(questions[-1])).state == "cancelled"


async def test_one_client_has_a_limit_of_unfinished_questions(client: httpx.AsyncClient, player: OpenAIPlayer) -> None:
    player.follow(lambda _: SILENT)
    paths = [await accepted(client, key="alice") for _ in range(100)]
    body, alice = {"userInput": "one more"}, {"X-API-Key": "alice"}
    refused = await client.post("/chat", json=body, headers=ASYNC | alice)
    assert (refused.status_code, refused.json()["code"]) == (503, "overloaded")
    assert "of this client" in refused.json()["detail"]
    other = await accepted(client, key="bob")
    player.follow(sensible_model())
    for path, key in [*((each, "alice") for each in paths), (other, "bob")]:
        assert (await client.delete(path, headers={"X-API-Key": key})).is_success


async def test_the_limit_counts_the_questions_of_all_processes(player: OpenAIPlayer, tmp_path: Path) -> None:
    player.follow(lambda _: SILENT)
    variables = {"OPENAI_BASE_URL": player.base_url, "STATE_URL": f"sqlite:///{tmp_path}/state.db"}
    async with service(**variables) as one, service(**variables) as other:
        await asyncio.gather(*(accepted(one) for _ in range(100)))

        async def is_refused() -> bool:
            return (await other.post("/chat", json={"userInput": "one more"}, headers=ASYNC)).status_code == 503

        await until(is_refused)
