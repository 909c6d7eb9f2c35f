"""What a project needs that others are to carry on: one version, a hook before a commit, checks and releases."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.command_line import LOG, ROOT, started
from tests.serving import client_of
from tests.waiting import PATIENCE, until
from toolchat import __version__

WELL_FORMED = "x = 1\n"
BADLY_FORMED = "x  =  1\n"
FAULTY = "import os\n"
_PYTHON = [file for package in ("app", "toolchat") for file in (ROOT / package).rglob("*.py")]


def test_the_version_is_defined_once_and_matches_the_changelog() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    newest = re.findall(r"^## (\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.M)[0]
    named = [
        str(file.relative_to(ROOT))
        for file in (*ROOT.glob("[!.]*"), *_PYTHON, *ROOT.glob("docs/*.md"))
        if file.suffix in {".py", ".toml", ".yml", ""} and file.is_file() and f'"{__version__}"' in file.read_text()
    ]

    assert project["project"]["dynamic"] == ["version"]
    assert named == ["toolchat/__init__.py"]
    assert newest == __version__


def test_the_licence_is_the_one_that_the_package_and_the_image_name() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")

    assert project["license"] == "Apache-2.0"
    assert 'licenses="Apache-2.0"' in (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text


WORKFLOWS = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in ROOT.glob(".github/workflows/*")}


@pytest.mark.parametrize("name", WORKFLOWS)
def test_actions_are_pinned_by_commit_and_updated_by_a_bot(name: str) -> None:
    used = re.findall(r"uses: (.*)", (ROOT / f".github/workflows/{name}.yml").read_text(encoding="utf-8"))
    bot = yaml.safe_load((ROOT / ".github/dependabot.yml").read_text(encoding="utf-8"))["updates"]

    assert used
    assert [each for each in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each)] == []
    assert {"github-actions", "docker", "docker-compose", "npm"} == {each["package-ecosystem"] for each in bot}


def _released(tag: str, folder: Path) -> subprocess.CompletedProcess[str]:
    for name in (".ci/release-notes", "toolchat/__init__.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    (folder / "CHANGELOG.md").write_text(f"# Changes\n\n## {__version__} (soon)\n\n- New.\n\n## 0.0.1\n\n- Old.\n")
    return subprocess.run(
        [folder / ".ci/release-notes", tag], capture_output=True, text=True, timeout=PATIENCE, check=False
    )


def test_the_notes_of_a_release_are_its_section_of_the_changelog(tmp_path: Path) -> None:
    done = _released(f"v{__version__}", tmp_path)
    assert (done.returncode, done.stdout.strip()) == (0, "- New.")


def test_a_tag_of_another_version_makes_no_release(tmp_path: Path) -> None:
    done = _released("v0.0.1", tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "the tag v0.0.1 is not the version" in done.stderr


PLAYED = """#!/bin/sh
echo "NAME $*" >> calls
case "NAME $*" in
    "FAILING"*) exit 1 ;;
    *ReadonlyRootfs*) echo true ;;
    *ExitCode*) echo 0 ;;
    curl*) echo "It is 9:00 in Tokyo." ;;
esac
"""


@pytest.mark.parametrize("failing", ["nothing", "docker compose up", "curl", "docker inspect --format {{.State"])
def test_the_image_is_built_run_asked_and_removed(failing: str, tmp_path: Path) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/image", tmp_path / ".ci")
    for name in ("docker", "curl"):
        (tmp_path / name).write_text(PLAYED.replace("NAME", name).replace("FAILING", failing))
        (tmp_path / name).chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run([tmp_path / ".ci/image"], env=environment, capture_output=True, timeout=PATIENCE, check=False)
    calls = (tmp_path / "calls").read_text()

    assert (done.returncode == 0) == (failing == "nothing")
    assert calls.startswith("docker compose up --build --detach --wait")
    assert calls.splitlines()[-1].startswith("docker compose down")
    assert "docker compose logs" in calls or failing == "nothing"


async def test_the_service_prints_the_addresses_of_its_pages(tmp_path: Path) -> None:
    with started(cwd=tmp_path) as (_, url):
        banner = {f"playground: {url}/playground", f"Swagger UI: {url}/docs"}
        await until(lambda: banner <= {json.loads(line)["message"] for line in LOG})
        async with client_of(url) as client:
            pages = [await client.get(path, follow_redirects=True) for path in ("/playground", "/docs")]
    assert [page.status_code for page in pages] == [200, 200]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with the hook in place."""
    for name in ("Makefile", "requirements-dev.lock"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / ".githooks", tmp_path / ".githooks")
    python = tmp_path / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    (tmp_path / ".venv/.dev").touch()
    git(tmp_path, "init", "--quiet")
    made = subprocess.run(["make", "hooks"], cwd=tmp_path, env=lonely(), capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return tmp_path


def lonely() -> dict[str, str]:
    """An environment without anybody's settings of git."""
    nobody = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "PYTHONPATH": ""}
    author = {
        f"GIT_{role}_{what}": "nobody@localhost" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "MAKE"))}
    return inherited | nobody | author


def git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=folder, env=lonely(), capture_output=True, text=True, timeout=PATIENCE)


def committed(folder: Path, source: str, unstaged: str = "") -> tuple[bool, str]:
    """Commit a file, with other text in the folder if given; whether it was taken, and what then is in the commit."""
    (folder / "a file.py").write_text(source)
    git(folder, "add", "a file.py")
    if unstaged:
        (folder / "a file.py").write_text(unstaged)
    done = git(folder, "commit", "--message", "A change")
    return done.returncode == 0, git(folder, "show", "HEAD:a file.py").stdout or done.stdout + done.stderr


def test_unformatted_code_is_formatted_before_a_commit(clone: Path) -> None:
    assert committed(clone, BADLY_FORMED) == (True, WELL_FORMED)


def test_code_that_the_linter_rejects_is_not_committed(clone: Path) -> None:
    taken, said = committed(clone, FAULTY)
    assert not taken
    assert "F401" in said


def test_untracked_files_are_neither_checked_nor_changed(clone: Path) -> None:
    taken, said = committed(clone, BADLY_FORMED, unstaged=FAULTY)
    assert not taken
    assert "a file.py is not formatted, and has changes that are not added" in said
    assert committed(clone, WELL_FORMED, unstaged=FAULTY) == (True, WELL_FORMED)
    assert (clone / "a file.py").read_text() == FAULTY


def test_a_foreign_git_hook_is_left_in_place(clone: Path) -> None:
    hook = clone / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\n")
    refused = subprocess.run(["make", "hooks"], cwd=clone, env=lonely(), capture_output=True, text=True)
    assert refused.returncode != 0
    assert hook.read_text() == "#!/bin/sh\n"
