"""Baidu's error codes: what the model is told, what the operator is told, what is tried again."""

import asyncio
import logging
import re
from collections.abc import Callable

import pytest

from app.tools.baidu_translate.languages import accepted
from tests.tools.baidu_translate.baidu_player import (
    APP_ID,
    RESULT,
    SECRET_KEY,
    error_of,
    fault,
    played,
)

OPERATOR = {"52003", "54001", "54004", "58000", "58002", "58003", "90107"}


@pytest.mark.parametrize("form", [str, int])
@pytest.mark.parametrize(
    ("code", "kind", "requests"),
    [
        ("52001", "unavailable", 2),
        ("52002", "unavailable", 2),
        ("52003", "not-configured", 1),
        ("54000", "invalid-arguments", 1),
        ("54001", "not-configured", 1),
        ("54004", "unavailable", 1),
        ("58000", "not-configured", 1),
        ("58001", "unsupported-language", 1),
        ("58002", "unavailable", 1),
        ("58003", "unavailable", 1),
        ("90107", "not-configured", 1),
        ("20003", "refused", 1),
        ("12345", "unavailable", 1),
    ],
)
async def test_each_error_code_has_its_own_reaction(
    code: str, kind: str, requests: int, form: Callable[[str], object], caplog: pytest.LogCaptureFixture
) -> None:
    raw = fault(form(code), trans_result=[RESULT])
    error, sent = await error_of(raw, raw, raw)
    assert (error.kind, sent) == (kind, requests)
    assert code in error.message
    assert "MESSAGE OF BAIDU" not in error.as_result()
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == (1 if code in OPERATOR | {"12345"} else 0)
    shown = caplog.text + error.as_result()
    assert SECRET_KEY not in shown
    assert APP_ID not in shown


async def test_an_unsupported_direction_lists_the_languages() -> None:
    error, _ = await error_of(fault("58001"))
    assert accepted() in str(error.hint)


@pytest.mark.parametrize("code", ["52001", "52002"])
async def test_a_passing_failure_is_tried_once_more_with_a_new_salt(code: str) -> None:
    async with played(fault(code)) as (client, player):
        assert (await client.translate("你好", "auto", "en")).text == "<你好>"
    first, second = player.arrivals
    assert first.form["salt"] != second.form["salt"]


@pytest.mark.slow
async def test_a_rate_limit_error_is_retried_once_after_a_second_without_requests() -> None:
    # The others stand in line already when Baidu refuses the first; their turns would come in that second.
    async with played(fault("54003"), requests_per_second=3) as (client, player):
        results = await asyncio.gather(*(client.translate(text, "auto", "en") for text in "abc"))
    assert [result.text for result in results] == ["<a>", "<b>", "<c>"]
    assert [arrival.form["q"] for arrival in player.arrivals] == ["a", "a", "b", "c"]
    assert player.arrivals[1].at - player.arrivals[0].at >= 0.99


@pytest.mark.slow
async def test_a_rate_limit_that_lasts_is_busy_after_the_second_try() -> None:
    error, sent = await error_of(fault("54003"), fault("54003"))
    assert (error.kind, sent) == ("busy", 2)
    assert "54003" in error.message


@pytest.mark.parametrize(("code", "quiet"), [("54003", 1), ("54005", 3)])
async def test_a_retry_that_would_come_too_late_is_refused_at_once(code: str, quiet: int) -> None:
    error, sent = await error_of(fault(code), max_wait=quiet / 2)
    assert (error.kind, sent) == ("busy", 1)
    # A refusal at once tells the wait that it foresees; a call that had waited in vain would tell its own patience.
    (away,) = re.findall(r"would be (\d\.\d) s away", error.message)
    assert 0.75 * quiet < float(away) <= quiet
