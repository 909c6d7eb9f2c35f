"""What the commands do with calls that somebody else has to approve, and with the record of decisions."""

import json
from pathlib import Path

import pytest

from tests.command_line import run
from tests.service.access.principals import as_
from tests.service.api.approvals.desk_service import desk_service

DESK = str(Path(__file__).parent / "desk")


async def test_the_decisions_are_exported_while_the_service_runs(tmp_path: Path) -> None:
    store = {"STATE_URL": f"sqlite:///{tmp_path / 'state.db'}"}
    async with desk_service(tmp_path, **store) as desk:
        await desk.decide((await desk.ask())["id"], "lead")
        shown = (await desk.client.get("/audit", headers=as_("operator"))).text
        found = [run("audit", "export", *more, cwd=tmp_path, **store) for more in ([], ["--tool", "other"])]
    assert [(each.returncode, each.stdout) for each in found] == [(0, shown), (0, "")]
    assert json.loads(shown)["by"] == "lead"


@pytest.mark.parametrize("arguments", [["--from", "x"], ["--until", "2026-01-01"]])
def test_what_is_no_time_is_refused(arguments: list[str], tmp_path: Path) -> None:
    assert run("audit", "export", *arguments, cwd=tmp_path).returncode == 2


@pytest.mark.parametrize(("amount", "code"), [("50", 3), ("5", 0)])
def test_the_terminal_does_not_run_what_somebody_else_has_to_approve(amount: str, code: int, tmp_path: Path) -> None:
    ran = run("tools", "run", "refund", f"amount={amount}", cwd=tmp_path, TOOLS_PATH=DESK, STATE_URL="memory://")
    assert ran.returncode == code, ran.stderr
    assert ("a person with the role manager decides about" in ran.stderr) == (code == 3)


def test_a_dialogue_does_not_let_who_asks_approve(tmp_path: Path) -> None:
    question = ["ask", "--approve", "refund", "refund amount 50"]
    asked = run(*question, cwd=tmp_path, TOOLS_PATH=DESK, STATE_URL="memory://", CHAT_PROVIDER="offline")
    assert (asked.returncode, "refunded by" in asked.stdout) == (3, False), asked.stdout + asked.stderr
    assert "a person with the role manager decides about refund, not who asked" in asked.stderr
