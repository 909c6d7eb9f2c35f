"""An example as its reader has it: a copy of its folder, and the commands of its README."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from scripts.readme import BASE_URL, Shown
from tests.command_line import ROOT, WITHOUT_EXAMPLE, Process, environment, installed, started
from tests.waiting import PATIENCE

FOLDER = ROOT / "examples"
INSTALL = ["python3 -m venv .venv && . .venv/bin/activate", "pip install '../..[service]'"]
"""The first commands of an example with the service; the tests run in an environment that has the packages."""
PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
"""What ``python`` is for a reader who has activated an environment with toolchat."""

_BLOCK = re.compile(r"^```(sh|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


class Project:
    """A copy of an example.

    Args:
        name: the folder in ``examples``.
        folder: an empty folder for the copy.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self.path = shutil.copytree(
            FOLDER / name, folder / name, ignore=shutil.ignore_patterns("node_modules", ".venv")
        )
        self.readme = (self.path / "README.md").read_text(encoding="utf-8")
        blocks = _BLOCK.findall(self.readme)
        self.scripts = [block.splitlines() for language, block in blocks if language == "sh"]
        self.shown = [Shown(*each) for language, block in blocks if language == "console" for each in _shown(block)]

    def run(self, command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the README, with this interpreter as ``python``."""
        done = subprocess.run(
            installed(command),
            cwd=self.path,
            env=environment({"PATH": PATH, **variables}),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    def served(self, command: str) -> AbstractContextManager[tuple[Process, str]]:
        """Start the service by the last command of a script, such as ``NAME=value toolchat serve``."""
        *named, program, serve = shlex.split(command)
        assert (program, serve) == ("toolchat", "serve")
        variables: Mapping[str, str] = dict(each.split("=", 1) for each in named)
        return started(serve, cwd=self.path, PATH=PATH, **variables, **WITHOUT_EXAMPLE)

    def answers(self, url: str, **variables: str) -> list[str]:
        """Run the commands that the README shows with answers, against a service."""
        commands = [each.command.replace(BASE_URL, url).replace("curl ", "curl -sS ") for each in self.shown]
        return [self.run(each, TOOLCHAT_URL=url, **variables).stdout.strip() for each in commands]


def _shown(block: str) -> list[tuple[str, str]]:
    return [(command, answer.strip()) for command, answer in _COMMAND.findall(block)]
