"""An alarm that is due."""

import asyncio
import logging
from collections.abc import Iterator

import pytest

from tests.players.openai_player import OpenAIPlayer
from tests.serving import service
from tests.tools.alarms.asking import alarm_at, alarms, key
from tests.tools.examples.asking import SAID
from tests.waiting import until


class Rung(logging.Handler):
    """Notes the log lines of the alarms."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.fixture
def rung(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[logging.LogRecord]]:
    """The log lines of the alarms that rang."""
    log, handler = logging.getLogger("app.tools.alarms.alarms"), Rung()
    monkeypatch.setattr(log, "level", logging.INFO)
    log.addHandler(handler)
    yield handler.records
    log.removeHandler(handler)


def _timers() -> list[str]:
    return [name for task in asyncio.all_tasks() if "_ring" in (name := repr(task.get_coro()))]


async def test_an_alarm_fires_when_it_is_due_and_is_logged_once(rung: list[logging.LogRecord]) -> None:
    async with OpenAIPlayer([alarm_at("PT1H"), SAID, alarm_at("PT0.1S"), SAID]) as player:
        async with service(OPENAI_BASE_URL=player.base_url) as client:
            assert _timers() == []
            for name in ("later", "sooner"):
                await client.post("/tool/alarm", headers=key(name))
            assert len(_timers()) == 1
            await until(lambda: rung)
            sooner, later = await alarms(client)
        assert _timers() == []
    assert (sooner["status"], later["status"]) == ("fired", "waiting")
    assert [record.getMessage() for record in rung] == ["alarm fired"]
    assert vars(rung[0])["alarm"] == sooner["id"]
