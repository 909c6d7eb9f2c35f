"""Workers that share their state in a file: conversations, quotas, and what a killed one leaves."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import httpx
import pytest

from tests.service.server.workers.several import Service, workers
from tests.serving import client_of
from tests.waiting import until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
async def service(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Service, None]:
    """Two workers and a file."""
    async with workers(2, tmp_path_factory.mktemp("shared"), STATE_URL="sqlite:///state.db") as service:
        yield service


async def ask(url: str, session: str, text: str = "hello") -> httpx.Response:
    """Ask on a connection of its own, so that any worker answers."""
    async with client_of(url) as client:
        return await client.get("/chat", params={"userInput": text, "sessionId": session})


async def texts(url: str, session: str) -> list[str]:
    async with client_of(url) as client:
        messages = (await client.get(f"/chat/{session}")).json()["messages"]
        return [each["text"] for each in messages if each["role"] == "user"]


async def test_a_conversation_is_continued_by_whichever_worker_is_asked(service: Service) -> None:
    asked = [f"question {number}" for number in range(12)]
    for text in asked:
        assert (await ask(service.url, "shared", text)).status_code == 200
    assert await texts(service.url, "shared") == asked


async def test_turns_that_come_at_once_are_stored_one_after_another(service: Service) -> None:
    asked = [f"at once {number}" for number in range(12)]
    answers = await asyncio.gather(*(ask(service.url, "busy", text) for text in asked))
    assert {each.status_code for each in answers} == {200}
    assert sorted(await texts(service.url, "busy")) == sorted(asked)


async def test_a_quota_is_that_of_all_workers_together(tmp_path: Path) -> None:
    async with workers(2, tmp_path, STATE_URL="sqlite:///state.db", REQUESTS_PER_MINUTE="5") as service:
        answers = await asyncio.gather(*(ask(service.url, f"quota-{number}") for number in range(40)))
        assert sorted(each.status_code for each in answers) == [200] * 5 + [429] * 35


async def test_turns_outlive_a_killed_worker_and_the_service(tmp_path: Path) -> None:
    async with workers(2, tmp_path, STATE_URL="sqlite:///state.db") as service:
        await ask(service.url, "kept", "before")
        for worker in service.workers:
            worker.kill()
        await until(lambda: _answers(service.url))
        await ask(service.url, "kept", "between")
    async with workers(2, tmp_path, STATE_URL="sqlite:///state.db") as service:
        assert await texts(service.url, "kept") == ["before", "between"]


async def _answers(url: str) -> bool:
    try:
        return (await ask(url, "probe")).status_code == 200
    except httpx.TransportError:
        return False
