"""A pytest plugin: measures coverage only where a test may reach new code.

Measuring makes Python code run at less than half its speed. So collection is not measured, and neither are the
remaining cases of a parametrized test once several in a row have reached no new branch. This can only lower the
figure: code that only a late case reaches counts as missing.
"""

import sys
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest
from coverage import Coverage

from tests.forked import import_the_application

_ENOUGH = 5
_barren: Counter[object] = Counter()
"""Cases in a row that reached no new branch, by test function; after ``_ENOUGH`` the rest is not measured."""


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Import the application first, so that its import is measured."""
    if session.config.getoption("numprocesses", None) or _collector() is None:
        return (yield)
    import_the_application()
    with _unmeasured():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    if not hasattr(item, "callspec") or (collector := _collector()) is None:
        return (yield)
    function = (item.path, getattr(item, "originalname", item.name))
    if _barren[function] == _ENOUGH:
        with _unmeasured():
            return (yield)
    before = _branches(collector)
    try:
        return (yield)
    finally:
        _barren[function] = _barren[function] + 1 if _branches(collector) == before else 0


def _collector() -> Any:
    coverage = Coverage.current()
    return coverage and coverage._collector


@contextmanager
def _unmeasured() -> Generator[None, None, None]:
    """Stop measuring this thread; other threads and processes are still measured."""
    tracer = sys.gettrace()
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(tracer)


def _branches(collector: Any) -> int:
    return sum(map(len, collector.data.values()))
