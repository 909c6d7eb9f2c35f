"""A tool whose name providers refuse has another one at every door; the rules of keys may name it as it is written."""

from pathlib import Path

import pytest

from tests.command_line import run, with_tools
from tests.players.openai_player import OpenAIPlayer, sensible_model
from tests.service.protocols.mcp_server.host import Host
from tests.serving import service
from toolchat.service.access.keys import digest_of

ORDERS = '''"""Orders."""

from toolchat import ToolModule, tool


@tool(name="orders.find")
async def find() -> str:
    """Find an order."""
    return "found"


@tool(name="orders_find")
async def other() -> str:
    """Find another order."""
    return "other"


module = ToolModule(functions=(find, other), default_query="Find an order")
'''
NAME = "orders_find_cc4ca2ef"


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    return with_tools(tmp_path, {"orders": ORDERS})


async def test_every_door_has_the_same_name(variables: dict[str, str]) -> None:
    async with (
        OpenAIPlayer(sensible_model()) as player,
        service(OPENAI_BASE_URL=player.base_url, **variables) as client,
    ):
        listed = (await client.get("/tools")).json()
        hosted = await Host(client).result("tools/list")
        run_alone = (await client.post(f"/tools/{NAME}", json={})).json()
        called = await Host(client).call(NAME)
        asked = await client.get("/orders/chat-tool-function", headers={"Accept": "application/json"})
    (module,) = [each for each in listed if each["name"] == "orders"]
    assert [each["name"] for each in module["tools"]] == [NAME, "orders_find"]
    assert {NAME, "orders_find", "orders.find"} & {each["name"] for each in hosted["tools"]} == {NAME, "orders_find"}
    assert (run_alone["result"], called["content"][0]["text"]) == ("found", "found")
    assert [each["function"]["name"] for each in player.requests[0].body["tools"]] == [NAME, "orders_find"]
    assert (asked.json()["tool_calls"][0]["name"], asked.json()["tool_calls"][0]["result"]) == (NAME, "found")


async def test_a_key_may_name_the_tool_as_it_is_written(variables: dict[str, str], tmp_path: Path) -> None:
    keys = tmp_path / "keys.toml"
    keys.write_text(f'[[keys]]\nname = "bob"\nsha256 = "{digest_of("bob")}"\ntools = ["orders.find"]\n')
    async with service(CHAT_PROVIDER="offline", API_KEYS_FILE=str(keys), **variables) as client:
        client.headers["X-API-Key"] = "bob"
        mine, others = [await client.post(f"/tools/{each}", json={}) for each in (NAME, "orders_find")]
    assert (mine.status_code, others.status_code) == (200, 404)


def test_the_start_warns_of_the_name_that_is_used(variables: dict[str, str], tmp_path: Path) -> None:
    done = run("tools", "run", NAME, cwd=tmp_path, **variables)
    assert (done.returncode, done.stdout) == (0, "found\n")
    assert f"tool orders.find: is offered as {NAME}: providers take up to 64 of" in done.stderr
