"""A pytest plugin: with ``TOOLCHAT_NO_SKIP=1`` skipped tests fail, with the reason of the skip.

A developer's machine may lack a program; CI installs all of them, so a skip there hides a test.
"""

import os
from collections.abc import Generator

import pytest

VARIABLE = "TOOLCHAT_NO_SKIP"


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


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.skipped and os.environ.get(VARIABLE) == "1":
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{VARIABLE}=1 allows no skip. {reason}"
