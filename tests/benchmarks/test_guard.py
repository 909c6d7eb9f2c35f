"""The guard against questions that cost more."""

import pytest
from pydantic_core import from_json

from benchmarks.guard import is_worse
from benchmarks.processes import ROOT


@pytest.mark.parametrize(("growth", "worse"), [(1.02, False), (1.05, True)])
def test_a_question_that_costs_more_fails_the_guard(growth: float, worse: bool) -> None:
    recorded = from_json((ROOT / "benchmarks" / "baseline.json").read_bytes())["instructions"]
    assert is_worse(recorded * growth) is worse
