"""The command ``new-tool``: what it writes works as it stands, by the rules of this project too."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from scripts.readme import tool_folders, written_tools
from tests.command_line import ROOT, WITHOUT_EXAMPLE, environment, installed, run
from tests.waiting import PATIENCE


def passes(*command: str, cwd: Path) -> None:
    """Run a Python module as a developer does, however long it takes; its output is shown if it fails."""
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=cwd, env=environment({}), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def check_like_this_project(folder: Path, files: Sequence[str]) -> None:
    """Run the linters with this project's rules, and the tests."""
    config = str(ROOT / "pyproject.toml")
    passes("ruff", "check", "--no-cache", "--config", config, *files, cwd=folder)
    passes("ruff", "format", "--no-cache", "--check", "--config", config, *files, cwd=folder)
    passes("mypy", "--config-file", config, "--cache-dir", str(ROOT / ".mypy_cache/new-tool"), *files, cwd=folder)
    passes("pytest", "-q", "-p", "no:cacheprovider", *[each for each in files if "test_" in each], cwd=folder)


@pytest.mark.slow(seconds=15)
def test_the_package_and_the_tests_of_the_page_pass_as_they_stand(tmp_path: Path) -> None:
    done = run("new-tool", "air_quality", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.splitlines()[:2] == ["wrote tools/air_quality/__init__.py", "wrote tools/test_air_quality.py"]
    assert "ScriptedModel([call(" in (tmp_path / "tools" / "test_air_quality.py").read_text(encoding="utf-8")
    page = ROOT / "docs" / "tools.md"
    first, its_test, *_, of_the_service = tool_folders(page.read_text(encoding="utf-8"))
    written_tools(tmp_path, page)
    shown = [first, its_test, of_the_service]
    check_like_this_project(tmp_path, ["tools/air_quality", "tools/test_air_quality.py", *shown])


@pytest.mark.parametrize(
    ("variables", "program"), [(WITHOUT_EXAMPLE, "toolchat"), ({}, f"{sys.executable} -m app")], ids=["", "example"]
)
def test_the_commands_that_it_prints_run_the_tool(variables: Mapping[str, str], program: str, tmp_path: Path) -> None:
    printed = run("new-tool", "air_quality", cwd=tmp_path, **variables).stdout.split("next:\n")[1].splitlines()
    test, run_tool, serve = (line.strip() for line in printed)
    assert test == f"{sys.executable} -m pytest tools/test_air_quality.py"
    assert (run_tool, serve) == (f"{program} tools run air_quality city=Paris", f"{program} serve")
    done = subprocess.run(
        installed(run_tool), cwd=tmp_path, env=environment({}), capture_output=True, text=True, timeout=PATIENCE,
        check=True,
    )  # fmt: skip
    assert done.stdout == "Nothing is known about Paris yet.\n"


def test_it_writes_to_the_first_folder_of_tools_path_or_to_the_one_that_is_named(tmp_path: Path) -> None:
    assert "TOOLS_PATH" not in run("new-tool", "one", cwd=tmp_path, TOOLS_PATH="ours:others").stdout
    run("new-tool", "two", "--path", "elsewhere/tools", cwd=tmp_path, TOOLS_PATH="ours:others")
    assert (tmp_path / "ours" / "one" / "__init__.py").is_file()
    assert (tmp_path / "elsewhere" / "tools" / "two" / "__init__.py").is_file()


@pytest.mark.parametrize("existing", ["tools/air/client.py", "tools/test_air.py"])
def test_it_never_overwrites_anything(existing: str, tmp_path: Path) -> None:
    (tmp_path / existing).parent.mkdir(parents=True)
    (tmp_path / existing).write_text("mine")
    done = run("new-tool", "air", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(": exists already; nothing was written\n")
    assert [each.read_text() for each in tmp_path.rglob("*.py")] == ["mine"]


@pytest.mark.parametrize("name", ["Air", "air-quality", "class", "2air", "../air", "json", "weather"])
def test_a_name_that_cannot_work_is_refused(name: str, tmp_path: Path) -> None:
    done = run("new-tool", name, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"toolchat: {name}: ")
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_the_name_is_not_hidden_by_a_package(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "one.py").write_text("", encoding="utf-8")
    done = run("new-tool", "one", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "toolchat: tools/one.py: exists already; nothing was written\n")
    assert [file.name for file in (tmp_path / "tools").iterdir()] == ["one.py"]


def test_a_package_of_tools_is_no_folder_to_write_to(tmp_path: Path) -> None:
    done = run("new-tool", "one", cwd=tmp_path, TOOLS_PATH="app.tools")
    assert (done.returncode, list(tmp_path.iterdir())) == (2, [])
    assert done.stderr.endswith("app.tools is a package; name the folder to write to with --path\n")
