"""Every command of the READMEs and of the pages does what stands below it."""

import re
import subprocess
from collections import Counter
from pathlib import Path

import httpx
import pytest

from scripts.readme import (
    PAGES,
    READMES,
    TOGETHER,
    TRANSLATIONS,
    Shown,
    commands,
    reader_of,
    steady,
    tool_folders,
)
from tests.application import create_app
from tests.command_line import ROOT, WITHOUT_EXAMPLE, environment, installed, started
from tests.programs import require
from tests.waiting import PATIENCE

ENGLISH, CHINESE = (readme.read_text(encoding="utf-8") for readme in READMES)
ENDPOINTS = (ROOT / "docs" / "endpoints.md").read_text(encoding="utf-8")
COLUMNS = ("/chat", "/chat-tool-function", "/chat-tool-method")
SHOWN = [(page, shown) for page in PAGES for shown in commands(page.read_text(encoding="utf-8"))]
ANSWERED = [(page, shown) for page, shown in SHOWN if shown.answer and "X-API-Key: $" not in shown.command]
"""Without those of several keys, which tests of their pages run against a service that has them."""
IDS = [f"{page.stem}-{shown.command[:60]}" for page, shown in ANSWERED]


@pytest.fixture(scope="module")
def printed() -> list[str]:
    """What the commands print for a reader who types one after the other, with the pages' own tools added."""
    require("curl")
    told: dict[tuple[Path, Shown], str] = {}
    for pages in TOGETHER:
        if any(page in pages for page, _ in ANSWERED):
            with reader_of(*pages) as reader:
                told |= {(page, shown): reader.run(shown.command) for page, shown in ANSWERED if page in pages}
    return [told[each] for each in ANSWERED]


@pytest.mark.parametrize("number", range(len(ANSWERED)), ids=IDS)
def test_a_command_gives_the_answer_that_is_shown(number: int, printed: list[str]) -> None:
    assert steady(printed[number]) == steady(ANSWERED[number][1].answer)


@pytest.mark.parametrize("command", sorted({shown.command for _, shown in SHOWN if not shown.answer}))
def test_a_command_without_an_answer_is_one_that_there_is(command: str) -> None:
    if command.startswith("make "):
        subprocess.run(["make", "-n", command.removeprefix("make ")], cwd=ROOT, check=True, capture_output=True)
    else:
        # There is no Docker engine to ask here; the files that it would read have tests of their own.
        assert command == "docker compose up --build"
        assert (ROOT / "docker-compose.yml").exists()


def test_the_readme_shows_the_first_answer_on_the_first_screen() -> None:
    for text in (ENGLISH, CHINESE):
        lines = text.splitlines()
        assert len(lines) <= 160
        first = "\n".join(lines[:40])
        for named in ("make run", "/chat --data-urlencode", "tools/orders.py"):
            assert named in first, named


def test_both_languages_show_the_same_commands_code_and_chapters() -> None:
    english, chinese = (
        [*(shown.command for shown in commands(text)), *tool_folders(text), *tool_folders(text).values()]
        for text in (ENGLISH, CHINESE)
    )
    assert [without_texts(each) for each in english] == [without_texts(each) for each in chinese]
    assert scripts(ENGLISH) == scripts(CHINESE)
    for pattern in (r"^#+ ", r"^\| ", r"^!\[", r"^- "):
        assert len(re.findall(pattern, ENGLISH, re.MULTILINE)) == len(re.findall(pattern, CHINESE, re.MULTILINE)), (
            pattern
        )


@pytest.mark.parametrize("translation", TRANSLATIONS, ids=lambda page: page.stem)
def test_a_chinese_page_has_the_code_and_the_chapters_of_the_english_one(translation: Path) -> None:
    original = ROOT / "docs" / translation.name
    english, chinese = (page.read_text(encoding="utf-8") for page in (original, translation))
    for pattern in (r"^```.*?^```$", r"^#+ "):
        blocks = re.compile(pattern, re.MULTILINE | re.DOTALL)
        assert blocks.findall(chinese) == blocks.findall(english)
    assert f"](../{original.name})" in chinese
    assert f"](zh/{original.name})" in english


def test_the_clone_leaves_the_folder_of_tools_to_its_reader() -> None:
    assert not (ROOT / "tools").exists()


def without_texts(code: str) -> str:
    """Code without what a translation changes: texts in double quotes, and comments."""
    return re.sub(r'"[^"]*"|#.*', '""', code)


def scripts(text: str) -> list[str]:
    """The blocks of commands without answers."""
    return re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_the_installation_ends_with_a_service_that_has_the_new_tool(tmp_path: Path) -> None:
    (script,) = scripts(ENGLISH)
    *lines, install, new_tool, serve = script.splitlines()
    assert lines == ["python3 -m venv .venv", ". .venv/bin/activate"]
    assert (install, serve) == ("pip install '../toolchat[service]'", "toolchat serve")
    subprocess.run(installed(new_tool), cwd=tmp_path, env=environment({}), check=True, capture_output=True)
    with started("serve", cwd=tmp_path, **WITHOUT_EXAMPLE) as (_, url):
        tools = httpx.get(f"{url}/tools", timeout=PATIENCE, trust_env=False).json()
    assert [each["name"] for each in tools] == ["air_quality"]


def names(text: str) -> list[Counter[str]]:
    """What each chapter sets as code within its sentences; quoted words are in the reader's language."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    chapters = re.split(r"^## ", prose, flags=re.MULTILINE)
    return [Counter(re.sub('".*"', '""', name) for name in re.findall(r"`([^`]+)`", each)) for each in chapters]


def test_both_languages_name_the_same_things_in_every_chapter() -> None:
    # Routes, variables, codes and events: a translation that loses one, or holds something else, is seen.
    for english, chinese in zip(names(ENGLISH), names(CHINESE), strict=True):
        assert english == chinese


@pytest.mark.parametrize("text", [ENGLISH, CHINESE], ids=["en", "zh"])
def test_a_code_block_starts_on_its_own_line(text: str) -> None:
    # A block that is pasted into a sentence would swallow what follows.
    fences = re.findall(r".*```.*", text)
    assert [fence for fence in fences if not re.fullmatch(r"```(?:console|python|sh)?", fence)] == []
    assert all(fence != "```" for fence in fences[::2])
    assert all(fence == "```" for fence in fences[1::2])


def test_every_route_is_named() -> None:
    # By its path; the three variants of a tool by the row and the columns of a table.
    named = re.findall(r"^\| `(/\w+)` \|", ENDPOINTS, re.MULTILINE)
    paths = [path for path in create_app().openapi()["paths"] if not re.fullmatch(rf"/\w+({'|'.join(COLUMNS)})", path)]
    assert named == ["/time", "/weather", "/translate"]
    assert [path for path in (*paths, "/todo/chat") if f"{path}`" not in ENDPOINTS] == []


def anchors(page: Path) -> set[str]:
    """The chapters of a page, as links name them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


OTHERS = ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "benchmarks/README.md", "tests/faults/README.md")
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))
LINKING = [*PAGES, *TRANSLATIONS, *DECISIONS, *(ROOT / name for name in OTHERS)]


@pytest.mark.parametrize("page", LINKING, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_and_every_chapter_that_is_linked_exists(page: Path) -> None:
    for link in re.findall(r"\]\((?!http)([^)\s]+)\)", page.read_text(encoding="utf-8")):
        file, _, chapter = link.partition("#")
        target = page.parent / file if file else page
        assert target.exists(), link
        assert not chapter or chapter in anchors(target), link


def test_the_index_leads_to_every_page_and_both_readmes_to_the_index() -> None:
    index = ROOT / "docs" / "index.md"
    text = index.read_text(encoding="utf-8")
    assert [page.name for page in PAGES if page not in (*READMES, index) and f"]({page.name})" not in text] == []
    assert [page.name for page in TRANSLATIONS if f"](zh/{page.name})" not in text] == []
    assert all("](docs/index.md)" in readme for readme in (ENGLISH, CHINESE))


def test_the_site_has_every_page_in_its_navigation() -> None:
    shown = re.findall(r"^ +- (?:.*: )?(\S+\.md)$", (ROOT / "docs" / "site" / "mkdocs.yml").read_text(), re.MULTILINE)
    assert {str(page.relative_to(ROOT)) for page in (*PAGES, *TRANSLATIONS)} <= set(shown)
    assert [name for name in shown if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", LINKING, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_test_that_a_page_names_is_there(page: Path) -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)`", page.read_text(encoding="utf-8"))
    assert [name for name in named if not (ROOT / name).exists()] == []


def words_of(*names: str) -> int:
    """Words outside of blocks of code, in pages of the documentation."""
    texts = [(ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in names]
    return sum(len(re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL).split()) for text in texts)


LONGEST = {
    "../README": 900,
    "start": 700,
    "tools": 1_800,
    "approvals": 1_500,
    "sessions": 900,
    "clients mcp": 1_900,
    "security": 900,
    "deploy": 1_500,
    "state scaling monitoring runbook running": 6_000,
    "library advisors evaluation comparison architecture": 3_500,
    "questions": 700,
}


@pytest.mark.parametrize("pages", LONGEST)
def test_pages_are_short_enough_to_be_read(pages: str) -> None:
    assert words_of(*pages.split()) <= LONGEST[pages]


@pytest.mark.parametrize("decision", DECISIONS, ids=lambda page: page.stem)
def test_a_decision_is_dated_has_a_status_and_fits_one_page(decision: Path) -> None:
    text = decision.read_text(encoding="utf-8")
    assert re.match(r"# .+\n\n\d{4}-\d\d-\d\d, (in force|rejected)", text)
    assert len(text.split()) <= 400
    named = re.findall(r"`((?:toolchat|app|tests|deploy)/[\w/.]+)`", text)
    assert [name for name in named if not (ROOT / name).exists()] == []
