"""The playground's files, as they are kept and as they are sent."""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest

from tests.command_line import ROOT
from tests.pages.pictures import PICTURES

APP = ROOT / "toolchat" / "service"
FOLDER = APP / "pages" / "playground"
VENDOR = FOLDER / "vendor"
FILES = sorted(file for file in FOLDER.rglob("*") if file.is_file())
OWN = [file for file in FILES if file.parent == FOLDER]
ELSEWHERE = re.compile(r"https?://|(?:src|href)=\"/")
MARKUP = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\bstyle=|\son\w+=|eval\(")
STYLE = (FOLDER / "style.css").read_text(encoding="utf-8")
READABLE = {
    "ink": ("paper", "card", "sunken", "raised", "accent-tint", "bad-tint"),
    "soft": ("paper", "card", "sunken", "line", "bad-tint"),
    "on-accent": ("accent", "accent-strong"),
    "accent-strong": ("accent-tint",),
    "bad": ("bad-tint",),
    "warn": ("warn-tint",),
}
"""Every colour of text, and what it stands on."""


async def test_the_page_may_load_nothing_from_elsewhere(offline: httpx.AsyncClient) -> None:
    # Every file comes with the policy and can be asked for again cheaply.
    for name in ("", *(file.relative_to(FOLDER).as_posix() for file in FILES)):
        answer = await offline.get(f"/playground/{name}")
        first, *rules = answer.headers["content-security-policy"].split("; ")
        assert first == "default-src 'none'"
        assert all(rule.endswith((" 'self'", " 'none'")) for rule in rules)
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-cache"
        again = await offline.get(f"/playground/{name}", headers={"If-None-Match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")


async def test_the_page_is_found_with_and_without_its_last_slash_and_from_the_index(offline: httpx.AsyncClient) -> None:
    listed = (await offline.get("/")).json()["playground"]
    bare = await offline.get(listed)
    assert (bare.status_code, bare.headers["location"]) == (307, "playground/")
    assert "text/html" in (await offline.get(listed, follow_redirects=True)).headers["content-type"]
    for missing in ("nothing", "../pages.py", "%2e%2e/pages.py"):
        assert (await offline.get(f"/playground/{missing}")).json()["code"] == "not-found"


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


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_not_heavy(name: str) -> None:
    content = (ROOT / "docs" / f"{name}.webp").read_bytes()
    assert content[8:12] == b"WEBP"
    assert len(content) <= 100_000


COLOURS = re.findall(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);", STYLE)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize(
    "scheme",
    [{name: light for name, light, _ in COLOURS}, {name: dark for name, _, dark in COLOURS}],
    ids=["light", "dark"],
)
def test_text_has_the_contrast_that_wcag_asks_for(scheme: Mapping[str, str]) -> None:
    # Level AA: 4.5 to 1.
    for front, back in ((front, back) for front, backs in READABLE.items() for back in backs):
        lighter, darker = sorted((luminance(scheme[front]), luminance(scheme[back])), reverse=True)
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5, f"{front} on {back}"
