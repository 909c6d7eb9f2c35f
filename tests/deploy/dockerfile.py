"""The instructions of the Dockerfile, and the build of its stages in a folder, without Docker."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[2]


def instructions() -> list[tuple[str, str]]:
    """Each instruction and what follows it, on one line."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(word.upper(), rest.strip()) for word, _, rest in (line.partition(" ") for line in joined.splitlines())]


def the(word: str) -> str:
    """What follows the only such instruction of the final stage."""
    found = instructions()
    last = max(index for index, (name, _) in enumerate(found) if name == "FROM")
    (value,) = [rest for name, rest in found[last:] if name == word]
    return value


def environment() -> dict[str, str]:
    """The variables of the final stage."""
    return dict(each.partition("=")[::2] for each in shlex.split(the("ENV")))


@dataclass
class Image:
    """A folder in which the stages are built one after the other: ``/opt`` of each is the folder's ``opt``."""

    folder: Path
    stages: dict[str, Path] = field(default_factory=dict)
    workdir: Path = Path("/")

    def inside(self, text: str) -> str:
        """A text of the Dockerfile with its absolute paths in the folder."""
        return re.sub(r"/(?=(?:opt|tmp|data)\b)", f"{self.folder / 'root'}/", text)

    def path(self, name: str) -> Path:
        """A path in the stage that is built."""
        return Path(self.inside(str(self.workdir / name)))

    def build(self) -> None:
        """Follow the instructions that make files.

        Raises:
            subprocess.CalledProcessError: a command failed.
            FileNotFoundError: a file is copied that is not there, or that .dockerignore keeps out.
        """
        stage = ""
        for word, rest in instructions():
            if word == "FROM":
                if stage and (self.folder / "root").exists():
                    self.stages[stage] = (self.folder / "root").rename(self.folder / stage)
                stage = rest.partition(" AS ")[2]
            elif word == "WORKDIR":
                self.workdir = Path(rest)
                self.path(".").mkdir(parents=True, exist_ok=True)
            elif word == "COPY":
                self._copy(rest)
            elif word == "RUN":
                self._run(rest)

    def _run(self, command: str) -> None:
        variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        variables["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        subprocess.run(
            ["sh", "-c", self.inside(command)],
            cwd=self.path("."),
            env=variables,
            umask=0o022,
            check=True,
            stdout=sys.stderr,
        )

    def _copy(self, rest: str) -> None:
        options = [each for each in rest.split() if each.startswith("--")]
        *sources, target = [each for each in rest.split() if not each.startswith("--")]
        (stage,) = [each.removeprefix("--from=") for each in options if each.startswith("--from=")] or [""]
        for source in sources:
            origin = self.stages[stage] / source.lstrip("/") if stage else _in_the_context(source)
            here = self.path(target)
            if origin.is_dir():
                shutil.copytree(origin, here, symlinks=True, dirs_exist_ok=True, ignore=None if stage else _ignored)
            else:
                here.mkdir(parents=True, exist_ok=True)
                shutil.copy2(origin, here)


def _patterns() -> list[str]:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def _in_the_context(source: str) -> Path:
    kept = [each[1:].rstrip("/") for each in _patterns() if each.startswith("!")]
    if "*" not in _patterns() or source.rstrip("/") not in kept:
        raise FileNotFoundError(f".dockerignore keeps out {source}")
    return ROOT / source


def _ignored(_folder: str, names: list[str]) -> set[str]:
    patterns = [each.removeprefix("**/") for each in _patterns() if each.startswith("**/")]
    return {name for name in names if any(fnmatch(name, pattern) for pattern in patterns)}
