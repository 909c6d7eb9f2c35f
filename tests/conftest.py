"""Fixtures of every test, and the output of failed tests."""

import gc
import logging
import os
import sys
import tempfile
import traceback
from collections.abc import AsyncGenerator, Generator, Iterator
from pathlib import Path

import httpx
import pytest
from hypothesis import settings

from scripts.env_example import variables
from tests.command_line import LOG
from tests.serving import service
from toolchat.service.observability.logs import JsonFormatter

# HYPOTHESIS_PROFILE selects one; `.ci/nightly hostile` sets it.
settings.register_profile("default", max_examples=50, deadline=None)
settings.register_profile("nightly", max_examples=20_000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

pytest_plugins = ["tests.browser", "tests.grouping", "tests.skips"]


# Without bytecode files each worker compiles every test again, which takes a seventh of the suite's time.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_configure(config: pytest.Config) -> None:
    config.option.randomly_reset_seed = False  # only the order matters here, and each reset takes a millisecond


def pytest_sessionstart(session: pytest.Session) -> None:
    for package in ("app", "toolchat"):
        logging.getLogger(package).setLevel(logging.INFO)
    session.config.pluginmanager.getplugin("logging-plugin").report_handler.setFormatter(_LogOfAFailure())


class _LogOfAFailure(JsonFormatter):
    """Formats log records as the service does, with whole tracebacks."""

    def format(self, record: logging.LogRecord) -> str:
        lines = traceback.format_exception(record.exc_info[1]) if record.exc_info and record.exc_info[1] else []
        return "".join([super().format(record), "\n" * bool(lines), *lines])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two workers for each core: half of the time a test waits for a socket, a process or a timeout."""
    return min(8, 2 * (os.cpu_count() or 1))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Exclude the collected tests, some hundred thousand objects, from garbage collection."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(50_000, 1_000_000)  # what a test makes stays in the two young generations until its end
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Drop the output of what has passed: nobody reads it, and a worker would send it three times."""
    report = yield
    if report.passed:
        report.sections.clear()
    return report


_SHARED = "empty"
"""Name of the working directory of all tests that use no files."""


@pytest.hookimpl(trylast=True)  # when the services of the test have ended
def pytest_runtest_teardown() -> None:
    """Print the logs of service processes, so that pytest shows them after a failure, and see what the test left."""
    sys.stderr.write("".join(LOG))
    LOG.clear()
    here = Path.cwd()
    if here.name == _SHARED and (left := list(here.iterdir())):
        for each in left:
            each.rename(Path(tempfile.mkdtemp(dir=here.parent)) / each.name)
        raise AssertionError(f"{left[0].name}: a test with files in its working directory must use tmp_path")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print how to repeat the random order after a failure."""
    seed = config.getoption("randomly_seed", None)
    if seed is not None and terminalreporter.stats.keys() & {"failed", "error"}:
        terminalreporter.write_line(f"Random order: repeat it with --randomly-seed={seed}")


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, bool]]:
    """Run asynchronous tests on asyncio, with the loop that the service uses."""
    return "asyncio", {"use_uvloop": True}


@pytest.fixture(scope="session", autouse=True)
def _no_settings_of_the_developer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Hide the developer's environment variables and ``.env`` from tests and module fixtures."""
    with pytest.MonkeyPatch.context() as patch:
        for name in variables():
            patch.delenv(name, raising=False)
        patch.setenv("STATE_URL", "memory://")
        patch.setenv("EXAMPLES_ENABLED", "true")  # many tests ask them, or set an alarm
        patch.setenv("WEATHER_PROVIDER", "weatherapi")  # without a key it needs a network, which no test has
        patch.setenv("REDIS_TIMEOUT", "3")  # a busy machine may delay a process for so long
        patch.chdir(tmp_path_factory.mktemp(_SHARED, numbered=False))
        yield


@pytest.fixture(scope="module")
async def offline() -> AsyncGenerator[httpx.AsyncClient, None]:
    """A service without an API key, shared by the tests of a module."""
    async with service() as client:
        yield client


@pytest.fixture(autouse=True, scope="module")
def _leaks_of_the_module() -> Iterator[None]:
    """Collect what the shared services of a module leave: its last test fails with their warnings, and no other."""
    yield
    gc.collect()
    gc.freeze()  # what outlives a module outlives the run, and would cost every later collection


@pytest.fixture(autouse=True)
def _leaks_of_the_test(request: pytest.FixtureRequest) -> Iterator[None]:
    """Collect what a test leaves, so that a warning about it is blamed on this test."""
    yield
    request.node.funcargs.clear()
    gc.collect(1)


@pytest.fixture(autouse=True)
def _own_working_directory(request: pytest.FixtureRequest) -> None:
    """Run a test that uses files in its own directory; all others share an empty one."""
    if "tmp_path" in request.fixturenames:
        request.getfixturevalue("monkeypatch").chdir(request.getfixturevalue("tmp_path"))
