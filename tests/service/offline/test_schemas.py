"""Tools that nobody foresaw are filled by their schema."""

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.service.offline.asking import asked, reading_tool

ROWS = yaml.safe_load(Path(__file__).with_name("schemas.yaml").read_text("utf-8"))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["ask"]))
async def test_a_value_comes_from_the_question_or_there_is_no_call(row: dict[str, Any]) -> None:
    name = row.get("name", "alerts")
    run = reading_tool("run", "Run it for an order", name, **{name: row["takes"]})
    assert await asked(row["ask"], run) == ([("run", {name: row["value"]})] if "value" in row else [])


async def test_tomorrow_is_a_date() -> None:
    run = reading_tool("run", "Run it", "on", on={"type": "string", "format": "date"})
    days = {(date.today() + timedelta(1)).isoformat()}
    ((_, arguments),) = await asked("run it tomorrow", run)
    days.add((date.today() + timedelta(1)).isoformat())  # at midnight
    assert arguments["on"] in days


async def test_optional_parameters_that_are_not_mentioned_are_left_out() -> None:
    kinds = ({"type": "integer"}, {"enum": ["c", "f"]}, {"type": "string"}, {"type": "boolean"}, {"type": "object"})
    optional = {f"{name}": kind for name, kind in zip("vwxyz", kinds, strict=True)}
    assert await asked("run it", reading_tool("run", "Run it", **optional)) == [("run", {})]
