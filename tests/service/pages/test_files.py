"""The playground's files, as they are kept and as they are sent."""

import hashlib
import json
import re
from pathlib import Path

import httpx
import pytest

from tests.command_line import ROOT

APP = ROOT / "toolchat" / "service"
FOLDER = APP / "pages" / "playground"
VENDOR = FOLDER / "vendor"
FILES = sorted(file for file in FOLDER.rglob("*") if file.is_file())
OWN = [file for file in FILES if file.parent == FOLDER]
ELSEWHERE = re.compile(r"https?://|(?:src|href)=\"/")
MARKUP = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\bstyle=|\son\w+=|eval\(")


async def test_the_page_may_load_nothing_from_elsewhere(offline: httpx.AsyncClient) -> None:
    # Every file comes with the policy and can be asked for again cheaply.
    for name in ("", *(file.relative_to(FOLDER).as_posix() for file in FILES)):
        answer = await offline.get(f"/playground/{name}")
        first, *rules = answer.headers["content-security-policy"].split("; ")
        assert first == "default-src 'none'"
        assert all(rule.removesuffix(" data:").endswith((" 'self'", " 'none'")) for rule in rules)
        assert [rule for rule in rules if "data:" in rule] == ["img-src 'self' data:"]  # pasted images
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-cache"
        again = await offline.get(f"/playground/{name}", headers={"If-None-Match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("file", OWN, ids=lambda file: file.name)
def test_a_file_names_no_other_host_and_writes_no_markup(file: Path) -> None:
    content = file.read_text(encoding="utf-8").replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert ELSEWHERE.findall(content) == []
    assert MARKUP.findall(content) == []
    assert "EventSource" not in content  # it can send no key
    assert content.count("\n") <= 250


def test_vendored_files_are_unchanged_and_have_their_licence() -> None:
    # Its name, version and source are told, and every file by its hash.
    told = json.loads((VENDOR / "vendored.json").read_text(encoding="utf-8"))
    assert all(each["name"] and each["version"] and each["licence"] and each["source"] for each in told)
    hashes = {file: digest for each in told for file, digest in each["sha256"].items()}
    assert {f"{each['name']}.{end}" for each in told for end in ("js", "LICENSE")} == set(hashes)
    kept = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in VENDOR.iterdir()}
    assert {name: digest for name, digest in kept.items() if name != "vendored.json"} == hashes
    assert all(each["version"] in (VENDOR / f"{each['name']}.js").read_text(encoding="utf-8") for each in told)
