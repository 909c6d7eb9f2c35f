"""A pytest plugin: the coverage is measured where something new may be found.

To measure makes every step of Python more than twice as dear. So neither is measured how the tests are found, nor the
further cases of a table once several of its cases in a row have run no branch that was new. The figure can only become
smaller by that: what one late case alone would reach is missing.
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
"""How many cases of a function in a row have run nothing new; after enough of them no further one is measured."""


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Import the application first, whose every line that is run by that is measured."""
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
    """Measure nothing in this thread; the others and other processes go on."""
    tracer = sys.gettrace()
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(tracer)


def _branches(collector: Any) -> int:
    return sum(map(len, collector.data.values()))
