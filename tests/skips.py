"""A pytest plugin: names what was skipped, one line per reason; with ``TOOLCHAT_NO_SKIP=1`` skipped tests fail.

A developer's machine may lack a program; CI installs all of them, so a skip there hides a test.
"""

import os
from collections import Counter
from collections.abc import Generator

import pytest

VARIABLE = "TOOLCHAT_NO_SKIP"

_ALLOWED = "needs kubectl"  # the one of Debian 12 is too old for the manifests


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a skipped test; expected failures are left alone."""
    report = yield
    if not hasattr(report, "wasxfail"):
        _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Fail the collection of a module that skips itself."""
    report = yield
    _refuse_skip(report)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Count the skipped tests by reason; pytest itself would list them by place, on two hundred lines."""
    reasons = Counter(map(_reason, terminalreporter.stats.get("skipped", [])))
    for reason, number in reasons.most_common():
        terminalreporter.write_line(f"skipped {number}: {reason}")


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.skipped and os.environ.get(VARIABLE) == "1" and _ALLOWED not in _reason(report):
        report.outcome = "failed"
        report.longrepr = f"{VARIABLE}=1 allows no skip: {_reason(report)}"


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return reason.removeprefix("Skipped: ")
