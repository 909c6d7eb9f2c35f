"""What a client of the documents' examples sends and sees, and what a model says to it."""

from collections.abc import Mapping
from typing import Any

import httpx

from tests.chat.played import asks
from tests.players.openai_player import Answer, message, whole

__all__ = ["READING", "SAID", "ZONE", "alarm_at", "alarms", "calls", "key"]

READING = (
    "/tools/simple/test",
    "/tools/simple/call",
    "/tools/programmatic",
    "/tool/function/annotation",
    "/tool/function/programmatic",
    "/tool/context/order",
    "/tool/context/order-direct",
    "/tool/control",
)
ZONE = "Pacific/Kiritimati"
"""Fourteen hours ahead of UTC, so that no machine's own zone passes for it."""
SAID = whole(message(content="done"))


def key(name: str = "k-1", **headers: str) -> dict[str, str]:
    return {"Idempotency-Key": name, **{each.replace("_", "-"): value for each, value in headers.items()}}


def calls(*wanted: tuple[str, Mapping[str, Any]]) -> Answer:
    """A turn of the model that asks for tools."""
    return whole(message("tool_calls", **asks(*wanted)))


def alarm_at(*times: str) -> Answer:
    return calls(*(("setAlarm", {"time": time}) for time in times))


async def alarms(client: httpx.AsyncClient, **headers: str) -> list[dict[str, Any]]:
    answer = await client.get("/tool/alarms", headers=headers)
    assert answer.status_code == 200
    listed: list[dict[str, Any]] = answer.json()
    return listed
