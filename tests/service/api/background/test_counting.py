"""How background questions are counted and logged: once each, by their end, as those of who asked."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from prometheus_client import REGISTRY, generate_latest

from tests.players.openai_player import OpenAIPlayer, sensible_model
from tests.service.api.background.test_routes import EVENTS, SILENT, accepted, finished
from tests.service.observability.reading import grown, parsed
from tests.serving import service
from tests.waiting import PATIENCE, until
from toolchat.errors import StoreUnavailable
from toolchat.service.access.keys import digest_of
from toolchat.service.access.principals import Principal
from toolchat.service.api.background.records import MAX_AGE, BackgroundQuestion, BackgroundRecords
from toolchat.state.sqlite import SqliteStateStore

Counts = Mapping[tuple[str, str], float]
"""Numbers of questions by outcome and principal."""


@asynccontextmanager
async def asked_by_alice(
    player: OpenAIPlayer, folder: Path, limits: str = "", **variables: str
) -> AsyncGenerator[httpx.AsyncClient, None]:
    """A service that knows the key of Alice, with her limits, and a client that uses it."""
    keys = folder / "keys.toml"
    keys.write_text(f'[[keys]]\nname = "alice"\nsha256 = "{digest_of("alice")}"\n{limits}')
    async with service(OPENAI_BASE_URL=player.base_url, API_KEYS_FILE=str(keys), **variables) as client:
        client.headers["X-API-Key"] = "alice"
        yield client


class Counted:
    """What has been counted since it was made; the metrics are those of the process."""

    def __init__(self) -> None:
        self._before = parsed(generate_latest(REGISTRY).decode())

    @property
    def questions(self) -> Counts:
        told = self.of("toolchat_questions_total")
        return {(dict(labels)["outcome"], dict(labels)["principal"]): number for labels, number in told.items()}

    @property
    def requests(self) -> Mapping[str, float]:
        """Numbers of requests to the routes that answer a question by outcome, accepted ones included."""
        told = {tuple(dict(labels).values()): n for labels, n in self.of("toolchat_requests_total").items()}
        return {outcome: n for (outcome, route), n in told.items() if route in ("/chat", "/v1/responses")}

    def of(self, name: str) -> Mapping[tuple[tuple[str, str], ...], float]:
        return grown(self._before, parsed(generate_latest(REGISTRY).decode()), name)


def warnings(caplog: pytest.LogCaptureFixture) -> Sequence[logging.LogRecord]:
    return [each for each in caplog.records if each.levelno >= logging.WARNING and each.name == "toolchat.request"]


@pytest.mark.parametrize("route", ["/chat", "/v1/responses"])
async def test_a_cancelled_question_is_one_whose_client_has_left(
    route: str, player: OpenAIPlayer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    player.follow(lambda _: SILENT)
    async with asked_by_alice(player, tmp_path) as client:
        counted, asked = Counted(), len(player.requests)
        if route == "/chat":
            path = await accepted(client)
        else:
            body = {"model": "toolchat", "input": "Hi", "background": True}
            path = f"{route}/{(await client.post(route, json=body)).json()['id']}"
        await until(lambda: len(player.requests) > asked)
        cancelled = client.delete(path) if route == "/chat" else client.post(f"{path}/cancel")
        assert (await cancelled).json()["status"] == "cancelled"
    assert counted.questions == {("client_gone", "alice"): 1}
    assert counted.requests == {"ok": 1, "client_gone": 1}
    assert not warnings(caplog)
    [line] = [each for each in caplog.records if getattr(each, "outcome", "") == "client_gone"]
    assert vars(line)["principal"] == "alice"


async def test_one_that_a_shutdown_interrupts_is_draining(
    player: OpenAIPlayer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    player.follow(lambda _: SILENT)
    async with asked_by_alice(player, tmp_path) as client:
        counted, asked = Counted(), len(player.requests)
        await accepted(client)
        await until(lambda: len(player.requests) > asked)
    assert counted.questions == {("draining", "alice"): 1}
    [line] = warnings(caplog)
    assert vars(line)["outcome"] == "draining"


@pytest.mark.parametrize(("limits", "variables"), [("concurrent = 1", {}), ("", {"MAX_QUESTIONS": "1"})])
async def test_one_that_waits_for_a_place_counts_by_its_end_only(
    limits: str, variables: Mapping[str, str], player: OpenAIPlayer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    player.follow(lambda _: SILENT)
    async with asked_by_alice(player, tmp_path, limits, **variables) as client:
        counted, asked = Counted(), len(player.requests)
        running = await accepted(client)
        await until(lambda: len(player.requests) > asked)
        waiting, given_up = await accepted(client), await accepted(client)
        for path in (waiting, given_up):
            async with client.stream("GET", path, headers=EVENTS) as reply:
                lines = reply.aiter_lines()
                while await anext(lines) != "event: waiting":
                    pass
        assert (await client.delete(given_up)).json()["status"] == "cancelled"
        player.follow(sensible_model({"timeZoneId": "Asia/Tokyo"}))
        await client.delete(running)
        assert (await finished(client, waiting))["status"] == "completed"
    assert counted.questions == {("client_gone", "alice"): 2, ("ok", "alice"): 1}
    assert counted.requests == {"ok": 3 + 1, "client_gone": 2}
    for name in ("toolchat_quotas_refused_total", "toolchat_questions_refused_total"):
        assert not counted.of(name)
    assert not warnings(caplog)


async def test_one_that_ends_without_another_try_counts_too(player: OpenAIPlayer, tmp_path: Path) -> None:
    path = str(tmp_path / "state.db")
    async with asked_by_alice(player, tmp_path, STATE_URL=f"sqlite:///{path}") as client:
        counted, store = Counted(), SqliteStateStore(path)
        question = BackgroundQuestion("/chat", (), Principal("alice"), "", created_at=time.time() - MAX_AGE)
        await BackgroundRecords(store).add(question, b"{}")
        await store.aclose()
        document = await finished(client, f"/questions/{question.identifier}")
    assert (document["status"], document["error"]["code"]) == ("failed", "deadline")
    assert counted.questions == {("deadline", "alice"): 1}


async def test_a_try_that_is_broken_off_does_not_count(
    player: OpenAIPlayer, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    player.follow(lambda _: SILENT)
    async with asked_by_alice(player, tmp_path) as client:
        counted, asked = Counted(), len(player.requests)
        path = await accepted(client)
        await until(lambda: len(player.requests) > asked)
        player.aborted.clear()
        with monkeypatch.context() as patched:
            patched.setattr(BackgroundRecords, "is_cancelled", _fail)
            await asyncio.wait_for(player.aborted.wait(), PATIENCE)
        player.follow(sensible_model({"timeZoneId": "Asia/Tokyo"}))
        assert (await finished(client, path))["status"] == "completed"
    assert counted.questions == {("ok", "alice"): 1}
    assert not warnings(caplog)


async def _fail(*_: object) -> bool:
    raise StoreUnavailable("the store is away")


async def test_one_that_its_quota_refuses_for_longer_than_it_may_take_is_refused(
    player: OpenAIPlayer, tmp_path: Path
) -> None:
    player.follow(sensible_model({"timeZoneId": "Asia/Tokyo"}))
    async with asked_by_alice(player, tmp_path, "tokens_per_day = 1") as client:
        await finished(client, await accepted(client))
        counted = Counted()
        document = await finished(client, await accepted(client))
    assert (document["status"], document["error"]["code"]) == ("failed", "quota-exceeded")
    assert counted.questions == {("quota-exceeded", "alice"): 1}
    assert counted.of("toolchat_quotas_refused_total") == {(): 1}
