"""WeatherAPI's errors: what the model is told, what the operator is told, what is tried again."""

import logging

import pytest
from pydantic_core import from_json

from tests.tools.weather.weatherapi_player import (
    DAY,
    HTML,
    KEY,
    both,
    called,
    error,
    failure_of,
    forecast,
    played,
    reply,
)
from toolchat.tool_calling.errors import ToolExecutionError


@pytest.mark.parametrize(
    ("answer", "kind", "warned"),
    [
        (error(1002, 401), "not-configured", True),
        (error(1003), "invalid-place", False),
        (error(1005), "unavailable", True),
        (error(1006), "no-such-place", False),
        (error("1006"), "no-such-place", False),
        (error(1006, 200), "no-such-place", False),
        (error(2006, 401), "not-configured", True),
        (error(2007, 403), "unavailable", True),
        (error(2008, 403), "not-configured", True),
        (error(2009, 403), "unavailable", True),
        (error(9000), "unavailable", False),
        (error(9001), "unavailable", False),
        (error(9999), "unavailable", False),
        (error(4711), "unavailable", True),
        (error([1006]), "unavailable", True),
        (error(True), "unavailable", True),
        (error(None, 200), "unavailable", True),
        (reply({"error": "no"}, 400), "unavailable", True),
        (reply(HTML, 401), "unavailable", True),
        (reply(HTML, 404), "unavailable", True),
        (reply(b"", 204), "unavailable", True),
        (reply(HTML, 429), "unavailable", False),
        (error(1006, 429), "unavailable", False),
        (reply(HTML, 500), "unavailable", False),
        (error(1006, 503), "unavailable", False),
        (reply(forecast(), 502), "unavailable", False),
    ],
)
async def test_every_error_has_its_reaction_and_shows_neither_key_nor_body(
    answer: bytes, kind: str, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "app")
    async with played(answer) as (client, player):
        failure = await failure_of(client)
    assert failure.kind == kind
    assert kind == "unavailable" or len(player.arrivals) == 1
    assert failure.hint
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == warned
    everything = failure.as_result() + "".join(str(vars(record)) for record in caplog.records)
    assert not any(secret in everything for secret in (KEY, "MESSAGE OF", "degrees", "127.0.0.1", "Beijing"))


async def test_an_unknown_place_has_a_hint_for_the_model() -> None:
    async with played(error(1006)) as (client, _):
        for callback in both(client):
            with pytest.raises(ToolExecutionError) as caught:
                await called(callback, city="Nowhere", days=1)
            assert from_json(caught.value.as_result())["error"]["kind"] == "no-such-place"
            assert "pinyin name with its country" in (caught.value.hint or "")


async def test_a_rejected_key_names_its_variable_to_the_operator_only(caplog: pytest.LogCaptureFixture) -> None:
    async with played(error(2006, 401)) as (client, _):
        failure = await failure_of(client)
    (record,) = caplog.records
    assert record.getMessage() == "WeatherAPI: the API key is invalid: check WEATHER_API_KEY"
    assert "WEATHER_API_KEY" not in failure.as_result()


async def test_an_internal_error_is_tried_once_more() -> None:
    async with played(error(9999), reply(forecast())) as (client, player):
        assert (await client.forecast("Beijing", 1))["days"] == [DAY]
    assert len(player.arrivals) == 2
    assert player.arrivals[0].target == player.arrivals[1].target


async def test_an_internal_error_twice_is_the_end() -> None:
    async with played(error(9999)) as (client, player):
        assert (await failure_of(client)).kind == "unavailable"
    assert len(player.arrivals) == 2


async def test_a_plan_without_enough_days_is_asked_again_for_three() -> None:
    async with played(error(2009, 403), reply(forecast(3))) as (client, player):
        answer = await client.forecast("Beijing", 7)
    assert [dict(arrival.parameters)["days"] for arrival in player.arrivals] == ["7", "3"]
    assert (answer["days_requested"], answer["days_delivered"], len(answer["days"])) == (7, 3, 3)


@pytest.mark.parametrize(("days", "requests"), [(3, 1), (1, 1), (4, 2)])
async def test_a_plan_that_refuses_even_three_days_is_unavailable(days: int, requests: int) -> None:
    async with played(error(2009, 403)) as (client, player):
        assert (await failure_of(client, days=days)).kind == "unavailable"
    assert len(player.arrivals) == requests
