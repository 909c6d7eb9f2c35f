"""A pytest plugin: with ``TOOLCHAT_NO_SKIP=1`` a test that would be skipped fails and says why.

A skip is right on a machine that lacks a program, and wrong where everything is said to be installed.
"""

import os
from collections.abc import Generator

import pytest

VARIABLE = "TOOLCHAT_NO_SKIP"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail the skipped test; an expected failure stays what it is."""
    report = yield
    if not hasattr(report, "wasxfail"):
        _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Fail the collection of a module that skips itself as a whole."""
    report = yield
    _refuse_skip(report)
    return report


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.skipped and os.environ.get(VARIABLE) == "1":
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{VARIABLE}=1 allows no skip. {reason}"
