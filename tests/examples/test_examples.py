"""Each example does what its README says."""

import asyncio
import json
import re
from pathlib import Path

import httpx
import pytest

from tests.command_line import ROOT
from tests.docs.test_readme import anchors
from tests.examples.project import FOLDER, INSTALL, Project
from tests.players.openai_player import OpenAIPlayer, sensible_model
from tests.programs import require
from tests.serving import client_of
from tests.waiting import until

READMES = sorted(FOLDER.glob("*/README.md"))
NAMES = ["approvals", "database", "front_end", "library", "mcp_servers"]


def test_each_example_has_a_short_readme() -> None:
    assert [each.parent.name for each in READMES] == NAMES
    assert [each for each in READMES if len(each.read_text(encoding="utf-8").splitlines()) > 25] == []


@pytest.mark.parametrize("readme", READMES, ids=lambda readme: readme.parent.name)
def test_the_links_and_files_of_a_readme_exist(readme: Path) -> None:
    text = readme.read_text(encoding="utf-8")
    for link in re.findall(r"\]\((?!http)([^)\s]+)\)", text):
        file, _, chapter = link.partition("#")
        assert (readme.parent / file).exists(), link
        assert not chapter or chapter in anchors(readme.parent / file), link
    named = re.findall(r"`([\w/]+\.(?:py|jsx?|json))`", text)
    assert [each for each in named if not (readme.parent / each).exists()] == []


def test_each_tenant_gets_its_own_orders_from_the_database(tmp_path: Path) -> None:
    require("curl")
    project = Project("database", tmp_path)
    ((*install, create, serve),) = project.scripts
    assert install == INSTALL
    project.run(create)
    with project.served(serve) as (_, url):
        answers = project.answers(url)
    assert answers == [each.answer for each in project.shown]
    assert len(answers) == 2


def test_the_refund_is_approved_by_the_manager_and_recorded(tmp_path: Path) -> None:
    project = Project("approvals", tmp_path)
    ((*install, clerk, manager, auditor, serve),) = project.scripts
    assert install == INSTALL
    keys = {}
    for name, command in {"CLERK": clerk, "MANAGER": manager, "AUDITOR": auditor}.items():
        (keys[name],) = re.findall(r"toolchat_[\w-]{43}", project.run(command).stderr)
    with project.served(serve) as (_, url):
        answers = project.answers(url, **keys)
    assert answers == [each.answer for each in project.shown]
    assert len(answers) == 1


async def test_the_tool_of_the_mcp_server_answers(tmp_path: Path) -> None:
    require("curl")
    project = Project("mcp_servers", tmp_path)
    ((*install, serve),) = project.scripts
    assert install == INSTALL
    with project.served(serve) as (_, url):
        async with client_of(url) as client:
            await until(lambda: has_connected(client))
        answers = await asyncio.to_thread(project.answers, url)
    assert answers == [each.answer for each in project.shown]
    assert len(answers) == 1


async def has_connected(client: httpx.AsyncClient) -> bool:
    """A service that has started may still wait for the process of a slow server."""
    (module,) = (await client.get("/tools")).json()
    return bool(module["name"] == "mcp-warehouse" and module["registered"])


def test_the_script_with_the_library_runs_without_a_key(tmp_path: Path) -> None:
    project = Project("library", tmp_path)
    (shown,) = project.shown
    assert project.run(shown.command).stdout.strip() == shown.answer


async def test_the_script_with_the_library_asks_the_model_of_the_environment(tmp_path: Path) -> None:
    project = Project("library", tmp_path)
    _, (command,) = project.scripts
    async with OpenAIPlayer(sensible_model({"title": "Emma"})) as player:
        here = command.replace("http://127.0.0.1:11434/v1", player.base_url)
        printed = (await asyncio.to_thread(project.run, here)).stdout
    assert printed.count('tool: due_date {"title": "Emma"} -> 2 December') == 2
    assert [len(each.body["messages"]) for each in player.requests] == [1, 3, 3, 5]


def test_the_front_end_has_the_component_and_the_packages_that_the_tests_of_clients_use() -> None:
    folder = FOLDER / "front_end"
    page = (ROOT / "docs" / "clients.md").read_text(encoding="utf-8")
    (component,) = re.findall(r"^```jsx\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert (folder / "Chat.jsx").read_text(encoding="utf-8") == component
    tested = json.loads((ROOT / "tests" / "clients" / "npm" / "package.json").read_text(encoding="utf-8"))
    assert json.loads((folder / "package.json").read_text(encoding="utf-8"))["dependencies"].items() <= (
        tested["dependencies"].items()
    )
