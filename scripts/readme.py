"""What the READMEs and the pages show: commands with their answers. Run as a module, it fills the answers in anew."""

import calendar
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.command_line import ROOT, application, environment, installed, started
from tests.waiting import PATIENCE

READMES = (ROOT / "README.md", ROOT / "README.zh-CN.md")
PAGES = (*READMES, *sorted((ROOT / "docs").glob("*.md")))
TRANSLATIONS = tuple(sorted((ROOT / "docs" / "zh").glob("*.md")))
"""Chinese pages, each with the code of the English page of its name."""
ALONE = (READMES[1], ROOT / "docs" / "from-spring-ai.md")
"""Pages whose tools have the names or the paths of others, so that one service cannot have all."""
TOGETHER = (tuple(page for page in PAGES if page not in ALONE), *((page,) for page in ALONE))
"""Pages, grouped by services that can have all their tools."""
BASE_URL = "http://127.0.0.1:8083"
APPROVAL_ID = "Qk3v0dWnT8yRz1LcXa5uEg"
"""Stands on a page for the id of the answer that waits for approval, which is another one each time."""
_TOOL = re.compile(r"`(tools/[\w/]+\.py)`[^\n]*\n\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_APPROVAL = re.compile(r'"approval": \{\s*"id": "([\w-]+)"')
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Shown:
    """A command, and the answer that stands below it."""

    command: str
    answer: str


def commands(text: str) -> list[Shown]:
    """Every command of a page, in order."""
    return [_shown(block) for block in _BLOCK.findall(text)]


def tool_folders(text: str) -> dict[str, str]:
    """The Python sources that a page shows as whole tools, by the file that it names right above them."""
    return dict(_TOOL.findall(text))


def written_tools(folder: Path, *pages: Path) -> Path:
    """Write the tools that pages show into the folder ``tools``, as a reader does; gives that folder."""
    for page in pages:
        for file, source in tool_folders(page.read_text(encoding="utf-8")).items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(source, encoding="utf-8")
    return folder / "tools"


def steady(answer: str) -> str:
    """An answer without what differs from run to run: numbers, days, ids, and pieces whose number the clock decides."""
    answer = re.sub(r"event: (?:delta|tool_call_progress)\ndata: .*\n\n", "", answer)
    answer = re.sub(r'"run_\w+"', '"run_…"', answer)
    answer = re.sub(r"^id: .*$", "id: …", answer, flags=re.MULTILINE)
    answer = re.sub(r'"request_id": ?"[^"]*"', '"request_id":"…"', answer)
    answer = re.sub(r"chatcmpl-\w+", "chatcmpl-…", answer)
    answer = re.sub(r"\b\w+day\b|星期.", "day", answer)
    answer = re.sub(rf"\b(?:{'|'.join(calendar.month_name[1:])})\b", "month", answer)
    answer = re.sub(r"\d+(?:\.\d+)?", "0", answer)
    return re.sub(r"0 [A-Z]{3,4}\b", "0 zone", answer).strip()


class Reader:
    """Types the commands that give an answer, one after the other, at a running service and in a project.

    Args:
        base_url: address of the example application, with the tools of all pages.
        project: an empty folder; it gets the README's tool only.
    """

    def __init__(self, base_url: str, project: Path) -> None:
        self._base_url = base_url
        self._project = project
        self._approval = APPROVAL_ID
        written_tools(project, READMES[0])

    def run(self, command: str) -> str:
        """Run a command, with the id of the approval that was waited for last in the place of the page's."""
        command = command.replace(BASE_URL, self._base_url).replace(APPROVAL_ID, self._approval)
        command = command.replace("curl ", f"curl --silent --show-error --max-time {PATIENCE} ")
        here = command.replace(".venv/bin/python", sys.executable)
        here = here.replace(f"{sys.executable} -m app", shlex.join(application()))
        done = subprocess.run(
            installed(here),
            cwd=self._project,
            env=environment({"STATE_URL": "", "EXAMPLES_ENABLED": ""}),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        if command != "toolchat check":  # which fails without a chat model, as its page shows
            done.check_returncode()
        # As in a project's environment: the one that runs the tests is elsewhere, and has no command toolchat.
        printed = done.stdout.replace(sys.executable, ".venv/bin/python")
        printed = printed.replace("\n  toolchat ", "\n  .venv/bin/toolchat ")
        for identifier in _APPROVAL.findall(printed):
            self._approval = identifier
        return printed.replace(self._approval, APPROVAL_ID).strip("\n")


@contextmanager
def reader_of(*pages: Path) -> Iterator[Reader]:
    """Start the example application with the tools of pages, for a reader who types their commands."""
    with tempfile.TemporaryDirectory() as clone, tempfile.TemporaryDirectory() as project:
        written_tools(Path(clone), *pages)
        with started(cwd=Path(clone)) as (_, url):
            yield Reader(url, Path(project))


def filled(text: str, answer_of: Callable[[str], str]) -> str:
    """A page with every shown answer made anew."""

    def renewed(match: re.Match[str]) -> str:
        shown = _shown(match[1])
        return f"```console\n$ {shown.command}\n{answer_of(shown.command)}\n```" if shown.answer else match[0]

    return _BLOCK.sub(renewed, text)


def _shown(block: str) -> Shown:
    first, _, answer = block.partition("\n")
    return Shown(first.removeprefix("$ "), answer.strip("\n"))


def main() -> None:
    """Fill every answer of every page in anew."""
    for pages in TOGETHER:
        with reader_of(*pages) as reader:
            for page in pages:
                page.write_text(filled(page.read_text(encoding="utf-8"), reader.run), encoding="utf-8")


if __name__ == "__main__":
    main()
