"""The fault lab runs what it is told to, says what does not hold."""

import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.command_line import ROOT
from tests.faults.__main__ import main
from tests.faults.fault import FAULTS, Bound, Fault, NotHeld
from tests.faults.history import Session, remembering
from tests.faults.mechanisms import MECHANISMS, Mechanism
from tests.faults.run import load
from tests.faults.stage import Stage
from tests.waiting import PATIENCE

INVENTED = "invented-for-the-test"


def test_three_rows_are_done_to_a_real_process() -> None:
    command = [sys.executable, "-m", "tests.faults", "no-host", "deep-json", "pipelined-requests", "--seed", "7"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 rows, --seed 7" in done.stdout
    assert len(re.findall(r"^holds \w+/[\w-]+: [\d.]+ ", done.stdout, re.MULTILINE)) == 3


@pytest.fixture
def invented(monkeypatch: pytest.MonkeyPatch) -> None:
    async def measure(stage: Stage) -> float:
        if stage.seed == 1:
            raise NotHeld("the service sang")
        return 5

    load()
    bound = Bound(None, 4)
    monkeypatch.setitem(FAULTS, INVENTED, Fault("clients", INVENTED, "Done.", "nothing", "songs", bound, measure))


@pytest.mark.usefixtures("invented")
@pytest.mark.parametrize(("seed", "why"), [("1", "the service sang"), ("2", "beyond its bound")])
def test_a_row_that_fails_is_reported_with_its_reason_and_fails_the_run(
    seed: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([INVENTED, "--seed", seed]) == 1
    assert f"FAILS: {INVENTED}: {why}" in capsys.readouterr().err


def test_an_unknown_row_is_not_a_success() -> None:
    assert main(["no-such-row"]) == 2


@pytest.mark.parametrize(
    ("kept", "found"),
    [
        (["a", "b"], ""),
        (["a"], "lost: b"),
        (["a", "b", "b"], "kept twice: b"),
        (["a", "b", "c"], ""),
        (["a", "b", "x"], "invented: x"),
        (["b", "a"], "out of order: b before a"),
        (["a", "c", "b"], "read something else: b after"),
    ],
    ids=" ".join,
)
def test_a_history_is_right_when_one_order_of_turns_explains_it(kept: list[str], found: str) -> None:
    # The turns a and b were acknowledged, b after a; c may have happened or not.
    said = {name: answer(texts) for name, texts in {"a": ["a"], "b": ["a", "b"], "c": ["a", "b", "c"]}.items()}
    session = Session("s")
    for name in ("a", "b"):
        session.add(name, time.monotonic(), said[name])
    session.add("c", time.monotonic(), None)
    messages = [
        {"role": role, "text": text}
        for name in kept
        for role, text in (("user", name), ("assistant", said.get(name, "x")))
    ]
    faults = session.faults(messages)
    assert any(each.startswith(found) for each in faults) if found else faults == []


@pytest.mark.parametrize(("read", "faults"), [([], 0), (["a"], 0), (["x"], 1)])
def test_an_answer_that_waited_for_approval_has_read_the_turns_before_its_pause(read: list[str], faults: int) -> None:
    session = Session("s")
    sent = time.monotonic()
    session.add("a", sent, answer(["a"]))
    session.add("b", sent, answer([*read, "b"]), paused=True)
    texts = ["a", answer(["a"]), "b", answer([*read, "b"])]
    messages = [{"role": ("user", "assistant")[at % 2], "text": text} for at, text in enumerate(texts)]
    assert len(session.faults(messages)) == faults


def answer(texts: list[str]) -> str:
    return remembering({"messages": [{"role": "user", "content": text} for text in texts]})


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda each: each.name)
def test_each_mechanism_can_still_be_taken_out_of_the_code(mechanism: Mechanism, tmp_path: Path) -> None:
    # If this fails, the code has changed: adapt the text in tests/faults/mechanisms.py, and run
    # `python -m tests.faults --sabotage ROW`.
    copy = tmp_path / mechanism.file
    copy.parent.mkdir(parents=True)
    shutil.copy(ROOT / mechanism.file, copy)
    mechanism.remove_from(tmp_path)
    compile(copy.read_text(encoding="utf-8"), mechanism.file, "exec")
    assert set(mechanism.rows) <= set(load())
    with pytest.raises(ValueError, match="0 times"):
        mechanism.remove_from(tmp_path)


def test_a_bound_is_described_in_words() -> None:
    assert [str(Bound(*ends)) for ends in ((None, 2), (3, None), (1, 3), (0, 0))] == ["≤ 2", "≥ 3", "1 … 3", "= 0"]
    assert [Bound(1, 3).holds(figure) for figure in (0.9, 1, 3, 3.1)] == [False, True, True, False]
