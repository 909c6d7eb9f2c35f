"""The folder of the alarms: its documentation, and the switch that it shares with the examples."""

from typing import Any

import httpx

from tests.documented import problems_of


async def shown(client: httpx.AsyncClient) -> dict[tuple[str, str], dict[str, Any]]:
    """What OpenAPI shows of the alarms, by path and method."""
    paths = (await client.get("/openapi.json")).json()["paths"]
    found = {(path, method): each for path, methods in paths.items() for method, each in methods.items()}
    return {at: each for at, each in found.items() if each.get("tags") == ["Alarms"]}


async def test_openapi_shows_the_alarms_under_their_own_tag(offline: httpx.AsyncClient) -> None:
    assert set(await shown(offline)) == {
        ("/tool/alarm", "post"),
        ("/tool/alarms", "get"),
        ("/tool/alarms/{identifier}", "delete"),
    }


async def test_openapi_shows_the_alarm_with_every_status_and_both_ways_to_ask(offline: httpx.AsyncClient) -> None:
    alarm = (await shown(offline))["/tool/alarm", "post"]
    assert set(problems_of(alarm)) >= {403, 409, 415, 422}
    assert problems_of(alarm)[409] == ["idempotency-conflict"]
    assert "query" in [each["name"] for each in alarm["parameters"]]
    assert list(alarm["requestBody"]["content"]["application/json"]["schema"]["properties"]) == ["query"]
