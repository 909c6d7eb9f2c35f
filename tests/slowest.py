"""A pytest plugin: lists the twenty slowest tests with their share of the total time."""

from collections import Counter

import pytest

_NUMBER = 20
_seconds: Counter[str] = Counter()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _seconds[report.nodeid] += report.duration  # type: ignore[assignment] # a Counter may hold any number


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    total, slowest = sum(_seconds.values()), _seconds.most_common(_NUMBER)
    terminalreporter.section(f"slowest {len(slowest)} of {len(_seconds)} tests, which took {total:.0f} s one by one")
    for test, seconds in slowest:
        terminalreporter.write_line(f"{seconds:6.2f} s {seconds / total:6.1%}  {test}")
    terminalreporter.write_line(f"{sum(seconds for _, seconds in slowest) / total:.0%} of the time in all of these")
