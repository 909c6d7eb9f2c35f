"""Every command of the README does what the README says."""

import re
import shutil
import subprocess
from collections import Counter

import pytest

from app.main import create_app
from tests.command_line import ROOT, started
from tests.deploy.env_example import render
from tests.readme import READMES, Reader, commands, project_with_the_tools, steady, tool_folders

ENGLISH, CHINESE = (readme.read_text(encoding="utf-8") for readme in READMES)
COLUMNS = ("/chat", "/chat-tool-function", "/chat-tool-method")
SHOWN = [shown for text in (ENGLISH, CHINESE) for shown in commands(text)]

needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")


ANSWERED = [shown for shown in SHOWN if shown.answer]


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What the commands print for a reader who types one after the other, with the README's own tools added."""
    project = project_with_the_tools(tmp_path_factory.mktemp("project"), ENGLISH)
    with started(cwd=project, PYTHONPATH=str(project)) as (_, base_url):
        reader = Reader(base_url, project)
        return [reader.run(shown.command) for shown in ANSWERED]


@needs_curl
@pytest.mark.parametrize("number", range(len(ANSWERED)), ids=lambda number: ANSWERED[number].command[:60])
def test_a_command_gives_the_answer_that_is_shown(number: int, printed: list[str]) -> None:
    assert steady(printed[number]) == steady(ANSWERED[number].answer)


@pytest.mark.parametrize("command", sorted({shown.command for shown in SHOWN if not shown.answer}))
def test_a_command_without_an_answer_is_one_that_there_is(command: str) -> None:
    if command.startswith("make "):
        subprocess.run(["make", "-n", command.removeprefix("make ")], cwd=ROOT, check=True, capture_output=True)
    else:
        # There is no Docker engine to ask here; the files that it would read have tests of their own.
        assert command == "docker compose up --build"
        assert (ROOT / "docker-compose.yml").exists()


def test_both_languages_show_the_same_commands_code_and_chapters() -> None:
    assert [shown.command for shown in commands(ENGLISH)] == [shown.command for shown in commands(CHINESE)]
    assert tool_folders(ENGLISH) == tool_folders(CHINESE)
    for pattern in (r"^#+ ", r"^\| ", r"^!\[", r"^- "):
        assert len(re.findall(pattern, ENGLISH, re.MULTILINE)) == len(re.findall(pattern, CHINESE, re.MULTILINE)), (
            pattern
        )


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
def test_a_block_of_code_stands_on_lines_of_its_own(text: str) -> None:
    # A block that is pasted into a sentence would swallow what follows.
    fences = re.findall(r".*```.*", text)
    assert [fence for fence in fences if not re.fullmatch(r"```(?:console|python)?", fence)] == []
    assert all(fence != "```" for fence in fences[::2])
    assert all(fence == "```" for fence in fences[1::2])


@pytest.mark.parametrize("text", [ENGLISH, CHINESE], ids=["en", "zh"])
def test_every_route_is_named(text: str) -> None:
    # By its path, or by the row and the column of the table of variants.
    paths = create_app().openapi()["paths"]
    variants = {f"{row}{column}" for row in re.findall(r"^\| `(/\w+)` \|", text, re.MULTILINE) for column in COLUMNS}
    assert [path for path in paths if path not in variants and f"{path}`" not in text] == []


def configured(text: str) -> list[tuple[str, str, str]]:
    """The rows of the configuration table: variable, default, meaning."""
    chapter = re.split(r"^## (?:Configuration|配置)$", text, flags=re.MULTILINE)[1].split("\n## ")[0]
    return re.findall(r"^\| `([A-Z_]+)` \| (?:`([^`]*)`)?(?:.*?) \| (.*) \|$", chapter, re.MULTILINE)


def test_the_configuration_table_says_of_every_variable_what_the_settings_say() -> None:
    # The long default of the system prompt stands in ``.env.example``; the Chinese meanings are translations.
    settings = re.findall(r"^# (.*)\n#?([A-Z_]+)=(.*)$", render(), re.MULTILINE)
    said = {name: ("" if name == "SYSTEM_PROMPT" else value, meaning) for meaning, name, value in settings}
    english = {
        name: ("" if name == "SYSTEM_PROMPT" else value, meaning) for name, value, meaning in configured(ENGLISH)
    }
    assert english == said
    assert [row[:2] for row in configured(CHINESE)] == [row[:2] for row in configured(ENGLISH)]


@pytest.mark.parametrize("text", [ENGLISH, CHINESE], ids=["en", "zh"])
def test_every_file_and_every_chapter_that_is_linked_exists(text: str) -> None:
    chapters = {f"#{title.lower().replace(' ', '-')}" for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}
    linked = set(re.findall(r"\]\((?!http)([^)]+)\)", text)) - chapters
    assert [target for target in linked if target.startswith("#") or not (ROOT / target).exists()] == []
