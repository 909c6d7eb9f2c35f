"""Time limits that do not lie within one another: said once at start, with both names and both values."""

from pathlib import Path

import pytest

from tests.application import read_configuration
from tests.command_line import run, with_tools


def warnings(monkeypatch: pytest.MonkeyPatch, text: str) -> tuple[str, ...]:
    for name, _, value in (each.partition("=") for each in text.split()):
        monkeypatch.setenv(name, value)
    return read_configuration().warnings


@pytest.mark.parametrize(
    ("set_up", "told"),
    [
        ("MODEL_TIMEOUT=600.5", "MODEL_TIMEOUT (600.5 s) should not be longer than REQUEST_TIMEOUT (600 s)"),
        (
            "REQUEST_TIMEOUT=120 TOOL_TIMEOUT=200",
            "TOOL_TIMEOUT (200 s) should not be longer than REQUEST_TIMEOUT (120 s)",
        ),
        (
            "REQUEST_TIMEOUT=120 SESSION_WAIT=121",
            "SESSION_WAIT (121 s) should not be longer than REQUEST_TIMEOUT (120 s)",
        ),
        (
            "REQUEST_TIMEOUT=120 SERVER_CLIENT_TIMEOUT=300",
            "SERVER_CLIENT_TIMEOUT (300 s) should not be longer than REQUEST_TIMEOUT (120 s)",
        ),
        ("SESSION_TTL=100", "REQUEST_TIMEOUT (600 s) should not be longer than SESSION_TTL (100 s)"),
        (
            "REDIS_TIMEOUT=4",
            "REDIS_TIMEOUT (4 s) should not be longer than two thirds of the lifetime of a conversation's lock (3 s)",
        ),
        (
            "REQUEST_TIMEOUT=15",
            "MODEL_TIMEOUT (120 s) and TOOL_TIMEOUT (20 s) and SERVER_CLIENT_TIMEOUT (20 s) should not be longer than "
            "REQUEST_TIMEOUT (15 s)",
        ),
    ],
)
def test_a_time_limit_above_its_enclosing_limit_is_reported_with_names_and_values(
    set_up: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert warnings(monkeypatch, set_up) == (f"{told}, which ends first",)


@pytest.mark.parametrize(
    "set_up",
    [
        "",
        "REQUEST_TIMEOUT=120",  # as long as what it holds is long enough
        "SHUTDOWN_TIMEOUT=1",  # nothing holds them
    ],
)
def test_limits_that_lie_within_one_another_are_not_spoken_of(set_up: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert warnings(monkeypatch, set_up) == ()


def test_every_combination_that_is_inverted_in_several_places_names_each_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = warnings(monkeypatch, "TOOL_TIMEOUT=500 REQUEST_TIMEOUT=400 SESSION_TTL=300")
    assert [each.partition(" ")[0] for each in told] == ["TOOL_TIMEOUT", "REQUEST_TIMEOUT"]


def test_the_timeout_of_a_tool_module_lies_within_that_of_tools(tmp_path: Path) -> None:
    lamp = """
from toolchat import ToolModule, ToolSettings


class LampSettings(ToolSettings):
    timeout: float = 10


module = ToolModule(settings=LampSettings)
"""
    variables = {**with_tools(tmp_path, {"lamp": lamp}), "CHAT_PROVIDER": "offline"}
    told = "toolchat: WARNING: LAMP_TIMEOUT (25 s) should not be longer than TOOL_TIMEOUT (20 s), which ends first"
    assert run("tools", cwd=tmp_path, LAMP_TIMEOUT="25", **variables).stderr.splitlines() == [told]
    assert run("tools", cwd=tmp_path, LAMP_TIMEOUT="25", LAMP_ENABLED="false", **variables).stderr == ""


def test_check_reports_it_too(tmp_path: Path) -> None:
    done = run("check", cwd=tmp_path, CHAT_PROVIDER="offline", TOOL_TIMEOUT="130", REQUEST_TIMEOUT="120")
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        "toolchat: WARNING: TOOL_TIMEOUT (130 s) should not be longer than REQUEST_TIMEOUT (120 s), which ends first"
    ]
