"""A pytest plugin: which tests are slow, and which run in the same worker.

Slow is what needs a browser, another process or more than a second. The first two are found here: a test is slow when
its code, or that of a fixture or helper that it uses, names what starts a process. The third says its mark.

The tests of a file, which may share a service and a browser, run in one worker. Files with many slow tests come first,
so that in the end no worker waits long for the last one.
"""

import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

import pytest

_STARTERS = {"subprocess", "create_subprocess_exec", "async_playwright", "Forked"}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: needs a browser, another process or more than a second")


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    known: dict[Callable[..., Any], bool] = {}
    for item in items:
        assert isinstance(item, pytest.Function)
        if any(_starts_a_process(each, known) for each in [item.function, *_fixtures(item)]):
            item.add_marker(pytest.mark.slow)
    if hasattr(config, "workerinput"):
        slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
        items.sort(key=lambda item: -slow[item.path])


def _fixtures(item: pytest.Function) -> Iterator[Callable[..., Any]]:
    """What the fixtures of a test run; one with parameters marks those that are slow itself."""
    for definitions in item._fixtureinfo.name2fixturedefs.values():
        yield from (each.func for each in definitions if not each.params)


def _starts_a_process(function: Callable[..., Any], known: dict[Callable[..., Any], bool]) -> bool:
    function = inspect.unwrap(function)
    if function not in known:
        known[function] = False  # for those that call each other
        names = _names(function.__code__)
        known[function] = bool(names & _STARTERS) or any(
            _starts_a_process(each, known) for name in names for each in _functions(function.__globals__.get(name))
        )
    return known[function]


def _functions(value: object) -> list[Callable[..., Any]]:
    """A helper of the tests, or the methods of a class among them; nothing for anything else."""
    if not str(getattr(value, "__module__", "")).startswith("tests."):
        return []
    return [each for each in (vars(value).values() if inspect.isclass(value) else [value]) if inspect.isfunction(each)]


def _names(code: CodeType) -> set[str]:
    """All names that code uses, that within it included."""
    within = (_names(each) for each in code.co_consts if isinstance(each, CodeType))
    return set(code.co_names).union(*within)
