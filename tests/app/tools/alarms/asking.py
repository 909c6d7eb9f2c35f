"""What a client that sets alarms sends and sees, and what a model says to it."""

from typing import Any

import httpx

from tests.app.tools.examples.asking import calls
from tests.players.openai_player import Answer


def key(name: str = "k-1", **headers: str) -> dict[str, str]:
    return {"Idempotency-Key": name, **{each.replace("_", "-"): value for each, value in headers.items()}}


def alarm_at(*times: str) -> Answer:
    return calls(*(("setAlarm", {"time": time}) for time in times))


async def alarms(client: httpx.AsyncClient, **headers: str) -> list[dict[str, Any]]:
    answer = await client.get("/tool/alarms", headers=headers)
    assert answer.status_code == 200
    listed: list[dict[str, Any]] = answer.json()
    return listed
