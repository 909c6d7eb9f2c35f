"""One command sets everything up: the Makefile, the locks and the check that runs before a change is taken."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.programs import require
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCKS = ["requirements.lock", "requirements-dev.lock"]
SET_UP_FILES = [
    *LOCKS,
    "Makefile",
    "Dockerfile",
    "docker-compose.yml",
    ".ci/run",
    ".github/workflows/ci.yml",
    ".github/workflows/nightly.yml",
]

RECORDING_PYTHON = """#!/bin/sh
echo "$@" >> calls
"""


def _make(*arguments: str, folder: Path = ROOT, **variables: str) -> subprocess.CompletedProcess[str]:
    own = ("MAKE", "MFLAGS", "COVERAGE", "PYTHON")  # of the make that runs the tests
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    return subprocess.run(
        [require("make"), *arguments],
        cwd=folder,
        env=inherited | variables,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def _pins(lock: str) -> dict[str, str]:
    text = (ROOT / lock).read_text(encoding="utf-8")
    return dict(re.findall(r"^([\w.-]+)==(\S+)", text, flags=re.M))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose .venv is made, with an interpreter that writes down what it is called with."""
    for name in ["Makefile", *LOCKS]:
        shutil.copy(ROOT / name, tmp_path)
    python = tmp_path / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(RECORDING_PYTHON)
    python.chmod(0o755)
    return tmp_path


def _calls(checkout: Path) -> list[str]:
    """What the interpreter was called with since the last time, pip's installations in short."""
    log = checkout / "calls"
    lines = log.read_text().splitlines()
    log.unlink()
    return [re.sub(r"^-m pip install .*--no-deps --require-hashes -r ", "install ", line) for line in lines]


def test_the_locks_which_pip_installs_without_dependencies_name_every_package() -> None:
    check = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True, timeout=PATIENCE)
    assert check.returncode == 0, check.stdout


def test_make_alone_explains_every_target() -> None:
    phony = re.findall(r"^\.PHONY: (.*)", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.M)
    targets = [line.split()[1] for line in _make().stdout.splitlines()]
    assert sorted(targets) == sorted(" ".join(phony).split())


def test_running_needs_the_runtime_lock_only_and_installs_it_once(checkout: Path) -> None:
    _make("run", folder=checkout)
    first = _calls(checkout)
    _make("run", folder=checkout)
    assert first == ["install requirements.lock", "-m app"]
    assert _calls(checkout) == ["-m app"]


def test_a_newer_lock_is_installed_again(checkout: Path) -> None:
    _make("run", folder=checkout)
    _calls(checkout)
    stamp = checkout / ".venv/.runtime"
    os.utime(stamp, (stamp.stat().st_atime, (checkout / "requirements.lock").stat().st_mtime - 10))
    _make("run", folder=checkout)
    assert _calls(checkout) == ["install requirements.lock", "-m app"]


def test_make_test_checks_the_code_runs_the_tests_and_serves_for_running_as_well(checkout: Path) -> None:
    _make("test", folder=checkout)
    calls = _calls(checkout)
    _make("run", folder=checkout)
    install = "install requirements.lock -r requirements-dev.lock"
    assert calls[:3] == [install, "-m ruff check .", "-m ruff format --check ."]
    types, tests = sorted(calls[3:])  # both at once
    assert types == "-m mypy"
    assert re.fullmatch(r"-m pytest .*", tests)
    assert "--cov" not in tests
    assert _calls(checkout) == ["-m app"]


@pytest.mark.parametrize("failing", ["ruff", "mypy", "pytest", "coverage"])
def test_make_test_fails_and_shows_why_when_one_of_its_checks_fails(failing: str, checkout: Path) -> None:
    python = checkout / ".venv/bin/python"
    python.write_text(f'{RECORDING_PYTHON}[ "$2" != {failing} ] || {{ echo {failing} is not content; exit 1; }}\n')
    failed = _make("test", "COVERAGE=1", folder=checkout)
    assert failed.returncode != 0
    assert f"{failing} is not content" in failed.stdout


def test_without_a_usable_python_the_set_up_names_what_is_missing(checkout: Path) -> None:
    shutil.rmtree(checkout / ".venv")
    for name in ("python3", "python3.11"):
        too_old = checkout / name
        too_old.write_text("#!/bin/sh\nexit 1\n")
        too_old.chmod(0o755)
    done = _make("run", folder=checkout, PATH=str(checkout))
    assert done.returncode != 0
    assert "needs Python 3.11 or newer with venv" in done.stderr
    assert "PYTHON=" in done.stderr


@pytest.mark.parametrize("name", SET_UP_FILES)
def test_no_package_registry_is_named(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert re.findall(r"https?://(?!127\.0\.0\.1)\S+|--(?:extra-)?index-url\S*|pypi\b\S*", text) == []


EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
LOCKED = ("service", "dashscope", "httpx", "redis", "jwt", "otel")


@pytest.mark.parametrize(
    ("lock", "wanted"),
    [
        ("requirements.lock", [*PROJECT["dependencies"], *(each for extra in LOCKED for each in EXTRAS[extra])]),
        ("requirements-dev.lock", EXTRAS["dev"]),
    ],
)
def test_the_lock_file_contains_every_dependency_of_the_project(lock: str, wanted: list[str]) -> None:
    pins = _pins("requirements.lock") | _pins(lock)
    requirements = [each for each in map(Requirement, wanted) if each.name != "toolchat"]
    unmet = [str(r) for r in requirements if not r.specifier.contains(pins.get(canonicalize_name(r.name), "0.dev0"))]
    assert unmet == [], "run `make lock`"
