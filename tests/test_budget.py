"""The size of the code: a package that grows beyond its line here needs a change of this table, and so a reason."""

import pytest

from tests.architecture import ROOT

BUDGET = {
    "app": 0,
}
"""Lines of Python at most, by package; they only go down."""
TOTAL = 37_500


def lines_of(package: str) -> int:
    """Lines of the package's own files; packages below it that have a line of their own count there."""
    own = (file for file in (ROOT / package).rglob("*.py") if owner_of(file.relative_to(ROOT).as_posix()) == package)
    return sum(file.read_text(encoding="utf-8").count("\n") for file in own)


def owner_of(file: str) -> str:
    return max((each for each in BUDGET if file.startswith(f"{each}/")), key=len)


@pytest.mark.parametrize("package", BUDGET)
def test_a_package_stays_within_its_lines(package: str) -> None:
    assert lines_of(package) <= BUDGET[package]


def test_the_whole_stays_within_its_lines() -> None:
    assert sum(map(lines_of, BUDGET)) <= TOTAL
    assert sum(BUDGET.values()) <= TOTAL
