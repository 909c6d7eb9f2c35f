"""The tutorial: its tool, its commands and its files, as far as a machine without Docker can try them."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from scripts.env_example import variables
from tests.command_line import ROOT, WITHOUT_EXAMPLE, environment, installed, started
from tests.service.cli.parsing import is_understood
from tests.waiting import PATIENCE
from toolchat.service.cli import Program

PAGE = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """The contents of the page's blocks in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reader's repository, with the files that the page shows."""
    folder = tmp_path_factory.mktemp("reader") / "shop"
    tool, test = blocks("python")
    (folder / "tools").mkdir(parents=True)
    (folder / "tools" / "orders.py").write_text(tool, encoding="utf-8")
    (folder / "tools" / "test_orders.py").write_text(test, encoding="utf-8")
    return folder


def typed(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of the page, with this environment in the place of the one that the reader has activated."""
    here = re.sub("^python ", f"{sys.executable} ", re.sub("^pytest ", f"{sys.executable} -m pytest ", command))
    return subprocess.run(
        installed(here), cwd=folder, env=environment({}), capture_output=True, text=True, timeout=PATIENCE
    )


def test_the_commands_do_what_the_page_says(shop: Path) -> None:
    running, inserting, keys, _ = blocks("sh")
    test, look_up = running.splitlines()
    assert typed(test, shop).returncode == 0
    assert "there is no order A-1042" in typed(look_up, shop).stdout
    insert, again = inserting.splitlines()
    assert typed(insert, shop).returncode == 0
    assert typed(again, shop).stdout == "Order A-1042: shipped on 20 November\n"
    secrets = [typed(command, shop).stderr.split()[-1] for command in keys.splitlines()]
    entries = (shop / "keys.toml").read_text(encoding="utf-8")
    limits, people = blocks("toml")
    limited = entries.replace("[[keys]]\n", f"[[keys]]\n{limits}") + people  # the last entry is that of the chat page
    (shop / "keys.toml").write_text(limited, encoding="utf-8")

    with (
        started(cwd=shop, API_KEYS_FILE="keys.toml", CHAT_PROVIDER="offline", **WITHOUT_EXAMPLE) as (_, url),
        httpx.Client(base_url=url, timeout=PATIENCE, trust_env=False) as client,
    ):
        question = {"query": "What is the status of order A-1042?"}
        person = {"X-OpenWebUI-User-Id": "u-1"}
        answers = [
            client.get("/chat", params=question, headers={"X-API-Key": each} | named)
            for each, named in zip((*secrets, secrets[1], "wrong"), ({}, person, {}, {}), strict=True)
        ]
        metrics = client.get("/metrics", headers={"X-API-Key": secrets[0]})
    assert [each.status_code for each in (*answers, metrics)] == [200, 200, 403, 401, 403]
    assert "shipped on 20 November" in answers[0].text


def test_the_commands_in_the_container_are_ones_that_there_are() -> None:
    inside = re.findall(r"^docker compose .* toolchat toolchat ([a-z ]+)", PAGE, re.MULTILINE)
    assert [each.strip() for each in inside] == ["check", "state export", "state import", "check"]
    assert all(is_understood(Program(), each.split()) for each in inside)


def test_the_services_have_known_variables_and_only_caddy_is_published() -> None:
    services: dict[str, Any] = yaml.safe_load(blocks("yaml")[0])["services"]
    toolchat = services["toolchat"]
    own = {name for name in toolchat["environment"] if not name.startswith("ORDERS_")}
    assert own <= set(variables())
    assert (toolchat["read_only"], toolchat["cap_drop"], toolchat["user"]) == (True, ["ALL"], "10001:0")
    assert [name for name, service in services.items() if "ports" in service] == ["caddy"]
    assert services["openwebui"]["environment"]["OPENAI_API_BASE_URL"] == "http://toolchat:8083/v1"
    proxied = re.findall(r"reverse_proxy (\w+):\d+", PAGE)
    assert set(proxied) <= set(services)
