"""A validator of a tool that raises something else than a ValueError: at every door the tool has failed."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import BaseModel, field_validator
from pydantic_core import from_json

from tests.command_line import run, started, with_tools
from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, message, whole
from tests.service.protocols.mcp_server.host import Host
from tests.serving import client_of
from tests.tool_calling.calls import called
from toolchat.tool_calling.function_callback import FunctionToolCallback
from toolchat.tool_calling.limits import CallCounter, ToolCallLimits

COUNTER = '''"""Tools whose input model looks things up."""

import builtins
from typing import Annotated

from pydantic import AfterValidator

from toolchat import ToolModule, tool
from toolchat.tool_calling.errors import ToolExecutionError


def look_up(fault: str) -> str:
    if fault == "ToolExecutionError":
        raise ToolExecutionError("the shop is closed", kind="closed")
    if fault != "none":
        raise getattr(builtins, fault)("secret")
    return fault


Fault = Annotated[str, AfterValidator(look_up)]


@tool
async def count(fault: Fault) -> str:
    """Count the shops."""
    return "counted"


@tool(requires_approval=lambda arguments, context: arguments["fault"] == "none")
async def recount(fault: Fault) -> str:
    """Count the shops again."""
    return "counted"


module = ToolModule(functions=(count, recount), default_query="count none")
'''
JSON = {"Accept": "application/json"}
FAILED = {"kind": "failed", "message": "the tool failed"}
FAULTS: dict[str, dict[str, Any]] = {
    "KeyError": FAILED,
    "SystemExit": FAILED,
    "ToolExecutionError": {"kind": "closed", "message": "the shop is closed"},
}


def play(request: PlayedRequest) -> Answer:
    """Call the tool that the user names, with the fault that he names."""
    asked = request.body["messages"][-1]
    if asked["role"] == "tool":
        return whole(message(content="done"))
    name, fault = asked["content"].split()
    function = {"name": name, "arguments": json.dumps({"fault": fault})}
    tool_call = {"id": "call_1", "type": "function", "function": function}
    return whole(message("tool_calls", content=None, tool_calls=[tool_call]))


@pytest.fixture(scope="module")
def variables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return with_tools(tmp_path_factory.mktemp("own"), {"shops": COUNTER})


@pytest.fixture(scope="module")
async def client(
    variables: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[httpx.AsyncClient, None]:
    async with OpenAIPlayer(play) as player:
        with started(cwd=tmp_path_factory.mktemp("at"), OPENAI_BASE_URL=player.base_url, **variables) as (_, url):
            async with client_of(url) as client:
                yield client


async def ask(client: httpx.AsyncClient, question: str) -> dict[str, Any]:
    answer = await client.get("/shops/chat-tool-function", params={"query": question}, headers=JSON)
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


@pytest.mark.parametrize(("fault", "told"), FAULTS.items())
async def test_every_door_learns_the_same(fault: str, told: dict[str, Any], client: httpx.AsyncClient) -> None:
    asked = (await ask(client, f"count {fault}"))["tool_calls"][0]
    posted = (await client.post("/tools/count", json={"fault": fault})).json()
    hosted = await Host(client).call("count", fault=fault)
    approval = (await ask(client, "recount none"))["approval"]
    changed = {approval["calls"][0]["id"]: {"approved": True, "arguments": {"fault": fault}}}
    decided = await client.post(f"/approvals/{approval['id']}", json={"decisions": changed}, headers=JSON)
    results = [each["result"] for each in (asked, posted, decided.json()["tool_calls"][0])]
    assert [from_json(each)["error"] for each in (*results, hosted["content"][0]["text"])] == [told] * 4
    # A rule is not asked about arguments that cannot be read, so that the call waits.
    assert (await ask(client, f"recount {fault}"))["finish_reason"] == "approval_required"


def test_the_terminal_tells_it_as_well(variables: dict[str, str], tmp_path: Path) -> None:
    done = run("tools", "run", "count", "fault=SystemExit", "--json", cwd=tmp_path, **variables)
    assert (done.returncode, from_json(from_json(done.stdout)["result"])["error"]) == (1, FAILED)


async def test_equal_calls_that_cannot_be_read_are_counted_all_the_same() -> None:
    class Shops(BaseModel):
        names: list[str]

        @field_validator("names")
        @classmethod
        def look_up(cls, names: list[str]) -> list[str]:
            raise KeyError(names[0])

    def count(shops: Shops) -> int:
        """Count the shops."""
        return len(shops.names)

    callback, counter = FunctionToolCallback.from_function(count), CallCounter(ToolCallLimits(identical=2))
    kinds = [(await called(callback, '{"names": ["a"]}', counter=counter)).error_kind for _ in range(3)]
    assert kinds == ["failed", "failed", "repeated-call"]
