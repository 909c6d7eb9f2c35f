"""A pytest plugin: marks slow tests and those of pages, and orders files for the workers.

A test is slow if it needs a browser, another process or more than a second. This plugin finds the first two: the code
of the test, or of a fixture or helper that it uses, names a function that starts a process. Tests that take more than
a second for other reasons carry the mark themselves. A test that uses the fixture ``browser`` gets the mark ``page``.

The tests of a file may share a service and a browser, so they run in one worker. Files whose slow tests take longest
come first, so that the workers finish at about the same time: a slow test counts as one second, or as many as its mark
gives, ``@pytest.mark.slow(seconds=10)``.
"""

import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

_STARTERS = {"subprocess", "create_subprocess_exec", "async_playwright", "Forked"}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow(seconds=1): needs a browser, another process or more than a second")
    config.addinivalue_line("markers", "page: looks at a page in a browser")
    config.addinivalue_line("markers", "package: installs the wheel from a package index")
    config.addinivalue_line("markers", "nightly: too slow for every change (tests/faults)")
    config.addinivalue_line("markers", "loud: services may report errors (tests/faults)")


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    known: dict[Callable[..., Any], bool] = {}
    slow: dict[int, bool] = {}  # the cases of a function share what tells
    for item in items:
        assert isinstance(item, pytest.Function)
        shared = id(item._fixtureinfo)
        if shared not in slow:
            slow[shared] = any(_starts_a_process(each, known) for each in [item.function, *_fixtures(item)])
        if slow[shared] and not item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.slow)
        if "browser" in item.fixturenames:
            item.add_marker(pytest.mark.page)
    if hasattr(config, "workerinput"):
        seconds = Counter[Path]()
        for item in items:
            if marked := item.get_closest_marker("slow"):
                seconds[item.path] += marked.kwargs.get("seconds", 1)
        items.sort(key=lambda item: -seconds[item.path])


def _fixtures(item: pytest.Function) -> Iterator[Callable[..., Any]]:
    """Functions of the fixtures of a test; a parametrized fixture marks its slow parameters itself."""
    for definitions in item._fixtureinfo.name2fixturedefs.values():
        yield from (each.func for each in definitions if not each.params)


def _starts_a_process(function: Callable[..., Any], known: dict[Callable[..., Any], bool]) -> bool:
    function = inspect.unwrap(function)
    if function not in known:
        known[function] = False  # ends recursion
        names = _names(function.__code__)
        known[function] = bool(names & _STARTERS) or any(
            _starts_a_process(each, known) for name in names for each in _functions(function.__globals__.get(name))
        )
    return known[function]


def _functions(value: object) -> list[Callable[..., Any]]:
    """A helper function of the tests, or the methods of a helper class; empty for everything else."""
    if not str(getattr(value, "__module__", "")).startswith("tests."):
        return []
    return [each for each in (vars(value).values() if inspect.isclass(value) else [value]) if inspect.isfunction(each)]


def _names(code: CodeType) -> set[str]:
    """All names that code uses, including nested functions."""
    within = (_names(each) for each in code.co_consts if isinstance(each, CodeType))
    return set(code.co_names).union(*within)
