"""The version is one, and the service prints where its pages are."""

import json
import re
import tomllib
from pathlib import Path

from tests.command_line import LOG, ROOT, started
from tests.serving import client_of
from tests.waiting import until
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


async def test_the_service_prints_the_addresses_of_its_pages(tmp_path: Path) -> None:
    with started(cwd=tmp_path) as (_, url):
        banner = {f"playground: {url}/playground", f"Swagger UI: {url}/docs"}
        await until(lambda: banner <= {json.loads(line)["message"] for line in LOG})
        async with client_of(url) as client:
            pages = [await client.get(path, follow_redirects=True) for path in ("/playground", "/docs")]
    assert [page.status_code for page in pages] == [200, 200]
