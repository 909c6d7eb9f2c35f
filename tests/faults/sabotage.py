"""Takes mechanisms out of a copy of the code, one at a time, and runs the rows that must fail without them."""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.faults.mechanisms import MECHANISMS, Mechanism
from tests.faults.service import ROOT

__all__ = ["Outcome", "naming", "sabotage"]

_PACKAGES = ("app", "benchmarks", "tests", "tools", "toolchat")
_LINE = re.compile(r"^(holds|FAILS) \w+/([\w-]+): (.*)$", re.MULTILINE)
_NO_START = "the service did not start"


@dataclass(frozen=True)
class Outcome:
    """What the rows of a mechanism showed without it."""

    mechanism: str
    missed: tuple[str, ...]
    """Rows that hold although the mechanism is gone."""
    noticed: tuple[str, ...]

    @property
    def is_noticed(self) -> bool:
        """Whether every row failed."""
        return bool(self.noticed) and not self.missed


def naming(names: Sequence[str]) -> list[Mechanism]:
    """The mechanisms that one of these rows claims; without names all."""
    return [each for each in MECHANISMS if not names or not set(names).isdisjoint(each.rows)]


def sabotage(mechanisms: Sequence[Mechanism]) -> list[Outcome]:
    """Take out one mechanism after the other, and print for each which rows noticed.

    Raises:
        RuntimeError: a row fails with the mechanism in place as well, so that its failure says nothing.
    """
    rows = sorted({name for each in mechanisms for name in each.rows})
    if broken := _failures(ROOT, rows):
        raise RuntimeError(f"rows fail on the unbroken code: {broken}")
    return [_without(each) for each in mechanisms]


def _without(mechanism: Mechanism) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="toolchat-sabotage-") as folder:
        copy = _copy(Path(folder))
        mechanism.remove_from(copy)
        failures = _failures(copy, mechanism.rows)
    noticed = tuple(name for name in mechanism.rows if name in failures and _NO_START not in failures[name])
    missed = tuple(name for name in mechanism.rows if name not in noticed)
    outcome = Outcome(mechanism.name, missed, noticed)
    print(f"{'noticed' if outcome.is_noticed else 'MISSED '} {mechanism.name}", flush=True)
    for name in mechanism.rows:
        print(f"    {name}: {failures.get(name, 'HOLDS')}", flush=True)
    return outcome


def _copy(folder: Path) -> Path:
    """A copy of the packages that the lab needs, with their compiled files."""
    for package in _PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns(".venv"))
    return folder


def _failures(root: Path, names: Sequence[str]) -> dict[str, str]:
    """Run rows by the lab of a copy; gives those that fail, with their reasons."""
    command = [sys.executable, "-m", "tests.faults", *names]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    rows = {name: (verdict, why) for verdict, name, why in _LINE.findall(done.stdout)}
    if rows.keys() != set(names):
        raise RuntimeError(f"not all rows ran: {done.stdout}{done.stderr}")
    return {name: why for name, (verdict, why) in rows.items() if verdict == "FAILS"}
