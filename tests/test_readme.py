"""Every command of the README does what the README says."""

import re
import shutil
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.command_line import ROOT, started
from tests.deploy.env_example import variables
from tests.readme import READMES, Shown, commands, project_with_the_tool, run, steady, tool_folder

ENGLISH, CHINESE = (readme.read_text(encoding="utf-8") for readme in READMES)
SHOWN = list(dict.fromkeys(shown for text in (ENGLISH, CHINESE) for shown in commands(text)))

needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with the README's own tool added, as a reader adds it."""
    return project_with_the_tool(tmp_path_factory.mktemp("project"), ENGLISH)


@pytest.fixture(scope="module")
def url(project: Path) -> Generator[str, None, None]:
    with started(cwd=project, PYTHONPATH=str(project)) as (_, base_url):
        yield base_url


@needs_curl
@pytest.mark.parametrize("shown", [shown for shown in SHOWN if shown.answer], ids=lambda shown: shown.command[:60])
def test_a_command_gives_the_answer_that_is_shown(shown: Shown, url: str, project: Path) -> None:
    assert steady(run(shown.command, url, project)) == steady(shown.answer)


@pytest.mark.parametrize("command", [shown.command for shown in SHOWN if not shown.answer])
def test_a_command_without_an_answer_is_one_that_there_is(command: str) -> None:
    if command.startswith("make "):
        subprocess.run(["make", "-n", command.removeprefix("make ")], cwd=ROOT, check=True, capture_output=True)
    else:
        # There is no Docker engine to ask here; the files that it would read have tests of their own.
        assert command == "docker compose up --build"
        assert (ROOT / "docker-compose.yml").exists()


def test_both_languages_show_the_same_commands_code_and_chapters() -> None:
    assert [shown.command for shown in commands(ENGLISH)] == [shown.command for shown in commands(CHINESE)]
    assert tool_folder(ENGLISH) == tool_folder(CHINESE)
    for pattern in (r"^#+ ", r"^\| ", r"^!\[", r"^- "):
        assert len(re.findall(pattern, ENGLISH, re.MULTILINE)) == len(re.findall(pattern, CHINESE, re.MULTILINE)), (
            pattern
        )


@pytest.mark.parametrize("text", [ENGLISH, CHINESE], ids=["en", "zh"])
def test_the_configuration_table_names_every_variable(text: str) -> None:
    chapter = re.split(r"^## (?:Configuration|配置)$", text, flags=re.MULTILINE)[1].split("\n## ")[0]
    named = re.findall(r"^\| `([A-Z_]+)` \|", chapter, re.MULTILINE)
    assert sorted(named) == sorted(variables())


@pytest.mark.parametrize("text", [ENGLISH, CHINESE], ids=["en", "zh"])
def test_every_file_that_is_linked_exists(text: str) -> None:
    for target in re.findall(r"\]\((?!http)([^)]+)\)", text):
        assert (ROOT / target).exists(), target
