"""One version, and the notes of its release."""

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

from tests.command_line import LOG, ROOT, started
from tests.serving import client_of
from tests.waiting import PATIENCE, until
from toolchat import __version__

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


async def test_the_service_prints_the_addresses_of_its_pages(tmp_path: Path) -> None:
    with started(cwd=tmp_path) as (_, url):
        banner = {f"playground: {url}/playground", f"Swagger UI: {url}/docs"}
        await until(lambda: banner <= {json.loads(line)["message"] for line in LOG})
        async with client_of(url) as client:
            pages = [await client.get(path, follow_redirects=True) for path in ("/playground", "/docs")]
    assert [page.status_code for page in pages] == [200, 200]
