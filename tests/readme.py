"""What the README shows: its commands with their answers. Run as a module, it fills the answers in anew."""

import calendar
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.command_line import ROOT, environment, started

READMES = (ROOT / "README.md", ROOT / "README.zh-CN.md")
BASE_URL = "http://127.0.0.1:8083"
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Shown:
    """A command, and the answer that stands below it."""

    command: str
    answer: str


def commands(text: str) -> list[Shown]:
    """Every command of a README, in order."""
    return [_shown(block) for block in _BLOCK.findall(text)]


def tool_folder(text: str) -> str:
    """The Python source that the README shows as a whole tool."""
    found: list[str] = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return found[0]


def project_with_the_tool(folder: Path, text: str) -> Path:
    """Copy the application and add the README's own tool, as a reader adds it."""
    shutil.copytree(ROOT / "app", folder / "app", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "app" / "tools" / "dice").mkdir()
    (folder / "app" / "tools" / "dice" / "__init__.py").write_text(tool_folder(text), encoding="utf-8")
    return folder


def steady(answer: str) -> str:
    """An answer without what differs from run to run: numbers, days, ids, and where a text is cut into pieces."""
    answer = re.sub(r"event: delta\ndata: .*\n\n", "", answer)
    answer = re.sub(r"^id: .*$", "id: …", answer, flags=re.MULTILINE)
    answer = re.sub(r'"request_id": ?"[^"]*"', '"request_id":"…"', answer)
    answer = re.sub(r"\b\w+day\b|星期.", "day", answer)
    answer = re.sub(rf"\b(?:{'|'.join(calendar.month_name[1:])})\b", "month", answer)
    answer = re.sub(r"\d+(?:\.\d+)?", "0", answer)
    return re.sub(r"0 [A-Z]{3,4}\b", "0 zone", answer).strip()


def run(command: str, base_url: str, project: Path) -> str:
    """Run one of the commands that give an answer, against a running service and a copy of the project.

    On the terminal the tool has not been added yet: the README shows that only afterwards.
    """
    command = command.replace(BASE_URL, base_url).replace("curl ", "curl --silent --show-error --max-time 20 ")
    if ".venv/bin/python" in command:
        command, project = command.replace(".venv/bin/python", sys.executable), ROOT
    shell = ["bash", "-c", command]
    done = subprocess.run(
        shell, cwd=project, env=environment({}), capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()


def filled(text: str, answer_of: Callable[[str], str]) -> str:
    """The README with every shown answer made anew."""

    def renewed(match: re.Match[str]) -> str:
        shown = _shown(match[1])
        return f"```console\n$ {shown.command}\n{answer_of(shown.command)}\n```" if shown.answer else match[0]

    return _BLOCK.sub(renewed, text)


def _shown(block: str) -> Shown:
    first, _, answer = block.partition("\n")
    return Shown(first.removeprefix("$ "), answer.strip())


def main() -> None:
    """Fill every answer of every README in anew."""
    with tempfile.TemporaryDirectory() as folder:
        project = project_with_the_tool(Path(folder), READMES[0].read_text(encoding="utf-8"))
        with started(cwd=project, PYTHONPATH=str(project)) as (_, url):
            for readme in READMES:
                text = filled(readme.read_text(encoding="utf-8"), lambda command: run(command, url, project))
                readme.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
