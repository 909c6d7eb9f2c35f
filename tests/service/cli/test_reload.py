"""``serve --reload``: a changed tool is served without a restart by hand, and a broken one is named."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import IO

import httpx
import pytest

from tests.command_line import environment
from tests.waiting import PATIENCE

TOOL = """from toolchat import ToolModule


async def greeting() -> str:
    return "{word}"


module = ToolModule(functions=(greeting,))
"""


@contextmanager
def reloading(folder: Path) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    """Serve a project's tools, on a new port after each change; gives the process and its log."""
    command = [sys.executable, "-c", "import sys; from toolchat.service.cli import run; sys.exit(run())"]
    with subprocess.Popen(
        [*command, "serve", "--reload", "--port", "0"], cwd=folder, env=environment({"TOOLS_PATH": "tools"}),
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        patience = Timer(PATIENCE, process.terminate)  # so that the log of a service that does not restart has an end
        patience.start()
        try:
            yield process, process.stderr
        finally:
            patience.cancel()
            process.terminate()
            process.communicate(timeout=PATIENCE)


def logged(log: IO[str], pattern: str) -> str:
    return next(found[1] for line in log if (found := re.search(pattern, line)))


def greeted(log: IO[str]) -> str:
    url = logged(log, r"toolchat on (http://[\w.:]+)")
    return str(httpx.post(f"{url}/tools/greeting", json={}, timeout=PATIENCE, trust_env=False).json()["result"])


def test_a_change_is_served_and_a_mistake_is_named_until_it_is_mended(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    file = tmp_path / "tools" / "greetings.py"
    file.write_text(TOOL.format(word="hello"), encoding="utf-8")
    with reloading(tmp_path) as (_, log):
        assert greeted(log) == "hello"
        file.write_text(TOOL.format(word="good morning"), encoding="utf-8")
        assert greeted(log) == "good morning"
        file.write_text("from toolchat import ToolModule\ndef greeting(:", encoding="utf-8")
        assert logged(log, r"(tools/greetings.py.*)") == (
            "tools/greetings.py: cannot be imported: SyntaxError: invalid syntax (line 2)"
        )
        file.write_text(TOOL.format(word="good evening"), encoding="utf-8")
        assert greeted(log) == "good evening"


def test_a_package_that_is_moved_in_and_a_change_of_what_tools_import_are_served(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "shop").mkdir()
    words = tmp_path / "shop" / "words.py"
    words.write_text('HELLO = "hello"', encoding="utf-8")
    package = tmp_path / "elsewhere" / "greetings"
    package.mkdir(parents=True)
    source = TOOL.replace('"{word}"', "HELLO")
    (package / "__init__.py").write_text(f"from shop.words import HELLO\n{source}", encoding="utf-8")
    with reloading(tmp_path) as (_, log):
        logged(log, r"toolchat on (http://[\w.:]+)")
        package.rename(tmp_path / "tools" / "greetings")
        assert greeted(log) == "hello"
        words.write_text('HELLO = "good day"', encoding="utf-8")
        assert greeted(log) == "good day"


def test_closing_the_terminal_ends_the_service_as_well(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    with reloading(tmp_path) as (process, log):
        url = logged(log, r"toolchat on (http://[\w.:]+)")
        process.send_signal(signal.SIGHUP)
        process.wait(PATIENCE)
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{url}/health/live", trust_env=False)
