"""The guard against dearer questions."""

import pytest
from pydantic_core import from_json

from benchmarks.guard import INSTRUCTIONS, PAIRS, Kind
from benchmarks.processes import ROOT


@pytest.mark.parametrize(
    ("kind", "growth", "worse"),
    [(INSTRUCTIONS, 1.02, False), (INSTRUCTIONS, 1.05, True), (PAIRS, 1.2, False), (PAIRS, 1.4, True)],
)
def test_a_question_that_has_become_dearer_fails_the_guard(kind: Kind, growth: float, worse: bool) -> None:
    # Counted instructions allow a narrow tolerance, CPU time on a shared machine does not.
    recorded = from_json((ROOT / "benchmarks" / "baseline.json").read_bytes())[kind.name]
    assert kind.is_worse(recorded * growth, recorded) is worse
