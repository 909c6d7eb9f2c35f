"""The times of alarms: which are refused, and how the others are read."""

from collections.abc import AsyncGenerator
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import httpx
import pytest

from app.tools.alarms.alarms import due_at
from tests.chat.played import JSON
from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest
from tests.serving import service
from tests.tools.alarms.asking import alarm_at, alarms, key
from tests.tools.examples.asking import SAID, ZONE
from toolchat.tool_calling.errors import ToolExecutionError


def obedient(request: PlayedRequest) -> Answer:
    """A model that sets an alarm at the time which is the question, whatever it is."""
    last = request.body["messages"][-1]
    return alarm_at(last["content"]) if last["role"] == "user" else SAID


@pytest.fixture(scope="module")
async def client() -> AsyncGenerator[httpx.AsyncClient, None]:
    async with (
        OpenAIPlayer(obedient) as player,
        service(OPENAI_BASE_URL=player.base_url) as client,
    ):
        yield client


@pytest.mark.parametrize(
    ("moment", "kind"),
    [
        (timedelta(hours=-1), "past-time"),
        ("2001-01-01T00:00:00Z", "past-time"),
        ("PT0S", "past-time"),
        (timedelta(days=400), "too-far"),
        ("P400D", "too-far"),
        ("P999999W", "too-far"),
        ("9999-12-31T23:59:59-12:00", "invalid-time"),
        ("tomorrow", "invalid-time"),
        ("2026-02-30T00:00:00Z", "invalid-time"),
        ("2100-01-01", "invalid-time"),
        ("P", "invalid-time"),
        ("PT", "invalid-time"),
        ("-PT10M", "invalid-time"),
        ("PT１０M", "invalid-time"),
        ("x" * 100, "invalid-arguments"),
    ],
    ids=str,
)
async def test_a_time_that_cannot_be_meant_is_refused_with_a_reason(
    moment: str | timedelta, kind: str, client: httpx.AsyncClient, tenant: dict[str, str]
) -> None:
    time = moment if isinstance(moment, str) else (datetime.now(UTC) + moment).isoformat()
    answer = (await client.post("/tool/alarm", json={"query": time}, headers=key(**JSON) | tenant)).json()
    assert (answer["tool_calls"][0]["error_kind"], await alarms(client, **tenant)) == (kind, [])


async def test_a_time_without_an_offset_is_in_the_users_zone(client: httpx.AsyncClient, tenant: dict[str, str]) -> None:
    wanted = (datetime.now(ZoneInfo(ZONE)) + timedelta(hours=1)).replace(microsecond=0)
    naive = wanted.replace(tzinfo=None).isoformat()
    await client.post("/tool/alarm", json={"query": naive}, headers=key() | tenant)
    (alarm,) = await alarms(client, **tenant)
    assert (alarm["time"], alarm["zone"]) == (wanted.isoformat(), ZONE)


@pytest.mark.parametrize("year", range(2025, 2030))
def test_a_time_that_clocks_leave_out_is_refused(year: int) -> None:
    zone = ZoneInfo("Europe/Berlin")
    sunday = next(day for day in range(31, 24, -1) if date(year, 3, day).weekday() == 6)
    asked_at = datetime(year, 3, 1, tzinfo=UTC)
    for left_out in ("02:00", "02:30"):
        with pytest.raises(ToolExecutionError, match="put forward") as refused:
            due_at(f"{year}-03-{sunday}T{left_out}", asked_at, zone)
        assert refused.value.kind == "no-such-time"
