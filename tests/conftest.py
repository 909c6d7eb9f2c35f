"""Fixtures that every test shares, and what is left behind when one fails."""

import gc
import logging
import os
import sys
import traceback
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import httpx
import pytest
from hypothesis import settings

from app.observability.logs import JsonFormatter
from tests.command_line import LOG
from tests.deploy.env_example import variables
from tests.serving import service

# Which one is used says HYPOTHESIS_PROFILE; `make nightly` sets it.
settings.register_profile("default", max_examples=100, deadline=None)
settings.register_profile("nightly", max_examples=20_000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

pytest_plugins = ["tests.browser", "tests.grouping", "tests.measuring", "tests.no_skips"]


# Where Python may keep no compiled files, every process compiles all tests anew: a seventh of what the suite costs.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_sessionstart(session: pytest.Session) -> None:
    for package in ("app", "toolchat"):
        logging.getLogger(package).setLevel(logging.INFO)
    session.config.pluginmanager.getplugin("logging-plugin").report_handler.setFormatter(_LogOfAFailure())


class _LogOfAFailure(JsonFormatter):
    """The service's log as it would write it, and whole tracebacks."""

    def format(self, record: logging.LogRecord) -> str:
        lines = traceback.format_exception(record.exc_info[1]) if record.exc_info and record.exc_info[1] else []
        return "".join([super().format(record), "\n" * bool(lines), *lines])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two for each core, since half of the time a test waits: for a socket, another process or a limit."""
    return min(8, 2 * (os.cpu_count() or 1))


def pytest_collection_finish() -> None:
    """Leave the tests themselves, some hundred thousand objects, out of every later search for garbage."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Tell after a failure how to have the same order again."""
    seed = config.getoption("randomly_seed", None)
    if seed is not None and terminalreporter.stats.keys() & {"failed", "error"}:
        terminalreporter.write_line(f"The tests ran in a random order: --randomly-seed={seed} repeats it.")


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, bool]]:
    """Run asynchronous tests on asyncio, with the loop that the service uses."""
    return "asyncio", {"use_uvloop": True}


@pytest.fixture(scope="session", autouse=True)
def _settings_of_nobody(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the developer's own keys and ``.env`` out of every test, and out of what the tests of a module share."""
    with pytest.MonkeyPatch.context() as patch:
        for name in variables():
            patch.delenv(name, raising=False)
        patch.setenv("REDIS_TIMEOUT", "3")  # so long may a busy machine keep a process waiting
        patch.chdir(tmp_path_factory.mktemp("nobody"))
        yield


@pytest.fixture(scope="module")
async def offline() -> AsyncGenerator[httpx.AsyncClient, None]:
    """A service without any key, which the tests of a module share."""
    async with service() as client:
        yield client


@pytest.fixture(autouse=True)
def _log_of_other_processes() -> Iterator[None]:
    """Show after a failure what the services wrote that tests started as processes of their own."""
    yield
    sys.stderr.write("".join(LOG))
    LOG.clear()


@pytest.fixture(autouse=True)
def _folder_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
