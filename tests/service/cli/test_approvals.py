"""What the commands do with calls that somebody else has to approve, and with the record of decisions."""

import asyncio
import json
import socket
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from tests.command_line import ROOT, run
from tests.service.access.principals import as_
from tests.service.api.approvals.desk_service import Desk, desk_service
from tests.serving import serving
from toolchat.service.cli import Program
from toolchat.service.cli.approvals import approve, list_waiting, show

DESK = str(ROOT / "tests/service/api/approvals/desk")


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
    assert ("a person with the role manager must decide about" in ran.stderr) == (code == 3)


def test_a_dialogue_does_not_let_who_asks_approve(tmp_path: Path) -> None:
    question = ["ask", "--approve", "refund", "refund amount 50"]
    asked = run(*question, cwd=tmp_path, TOOLS_PATH=DESK, STATE_URL="memory://", CHAT_PROVIDER="offline")
    assert (asked.returncode, "refunded by" in asked.stdout) == (3, False), asked.stdout + asked.stderr
    assert "a person with the role manager must decide about refund; the one who asked cannot" in asked.stderr


async def approvals(desk: Desk, tmp_path: Path, *typed: str, key: str = "lead") -> tuple[int, str, str]:
    """What the command prints for a key: its exit code, the output, and the errors without the address."""
    url = str(desk.client.base_url).rstrip("/")
    typed = ("approvals", *typed, "--url", url)
    done = await asyncio.to_thread(run, *typed, cwd=tmp_path, TOOLCHAT_API_KEY=key)
    return done.returncode, done.stdout, done.stderr.replace(url, "URL")


async def test_what_waits_is_listed_and_decided_at_a_running_service(tmp_path: Path) -> None:
    async with desk_service(tmp_path) as desk:
        decided, first, second = [(await desk.ask(f"refund {amount}"))["id"] for amount in (50, 60, 70)]
        assert (await desk.decide(decided, "lead")).status_code == 200
        line = '{}  refund({{"amount":{}}}); asker asked: refund {}'
        lines = [line.format(second, 70, 70), line.format(first, 60, 60)]
        assert await approvals(desk, tmp_path) == (0, "".join(f"{each}\n" for each in lines), "")
        for_asker = (await approvals(desk, tmp_path, "list", key="asker"))[1].splitlines()
        assert for_asker == [f"{each}; somebody else decides" for each in lines]

        assert (await approvals(desk, tmp_path, "approve", first))[:2] == (0, "Done: 60 refunded by asker of acme\n")
        assert "it is late" in (await approvals(desk, tmp_path, "reject", second, "--reason", "it is late"))[1]
        assert json.loads((await approvals(desk, tmp_path, "show", second))[1])["reason"] == "it is late"


async def test_a_decision_that_is_refused_is_told_with_its_reason(tmp_path: Path) -> None:
    async with desk_service(tmp_path) as desk:
        waiting = (await desk.ask())["id"]
        assert (await approvals(desk, tmp_path, "approve", waiting, key="nobody"))[0] == 1
        code, _, told = await approvals(desk, tmp_path, "approve", waiting, key="asker")
        assert (code, "the role manager" in told) == (1, True)
        again = (await desk.ask("refund 51"))["id"]
        assert (await approvals(desk, tmp_path, "approve", again))[0] == 3


async def test_an_empty_list_says_that_nothing_waits(tmp_path: Path) -> None:
    async with desk_service(tmp_path) as desk:
        nothing = (0, "", "Nothing waits for a decision.\n")
        assert await approvals(desk, tmp_path) == nothing
        assert (await desk.decide((await desk.ask())["id"], "lead")).status_code == 200
        assert await approvals(desk, tmp_path) == nothing


@pytest.mark.parametrize("identifier", ["-N8yRz1LcXa5uEgQk3v0dW", "--8yRz1LcXa5uEgQk3v0dW", "-u", "-"])
@pytest.mark.parametrize("command", ["show", "approve", "reject"])
async def test_an_id_may_begin_with_a_hyphen(command: str, identifier: str, tmp_path: Path) -> None:
    async with desk_service(tmp_path) as desk:
        code, _, told = await approvals(desk, tmp_path, command, identifier)
    assert (code, told.startswith("toolchat: URL: "), "option" in told) == (1, True, False), told


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        *(
            (["--url", url], "--url: must be a URL")
            for url in ("foo", "127.0.0.1:18502", "http://", "ftp://127.0.0.1", "http://h:99999", "http://h\udcff")
        ),
        (["reject", "x", "--reason", "\udcff"], "the command line is not UTF-8"),
        (["show", "\udcff"], "the command line is not UTF-8"),
    ],
)
def test_an_unusable_argument_is_refused_in_one_line(typed: list[str], told: str, tmp_path: Path) -> None:
    done = run("approvals", *typed, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert done.stderr.startswith(f"toolchat: {told}")


def test_a_service_that_never_answers_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("toolchat.service.cli.approvals.READ_TIMEOUT", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        codes = [
            list_waiting(Program(), url=url),
            *(use(Program(), url=url, identifier="x") for use in (show, approve)),
        ]
    assert codes == [1, 1, 1]
    assert capsys.readouterr().err == f"toolchat: {url}: the service did not answer within 0.05 s\n" * 3


@pytest.mark.parametrize(
    ("body", "told"), [("<html>", "does not answer as toolchat does"), (None, "could not be reached")]
)
async def test_what_is_no_service_is_told_in_one_line(body: str | None, told: str, tmp_path: Path) -> None:
    async with serving(Starlette(routes=[Route("/approvals", lambda _: PlainTextResponse(body))])) as url:
        address = url if body else "http://127.0.0.1:1"
        done = await asyncio.to_thread(run, "approvals", "--url", address, cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n"), told in done.stderr) == (1, 1, True), done.stderr
