"""A service with two hostile MCP servers, shared by the tests of a module, and a model that calls the named tool."""

from collections.abc import AsyncGenerator
from pathlib import Path

import httpx
import pytest

from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, message, whole
from tests.service.mcp_client.playing import hostile, reaches, written
from tests.serving import service


def obedient(request: PlayedRequest) -> Answer:
    """Calls the tool whose name is the question, then says that it is done."""
    last = request.body["messages"][-1]
    if last["role"] == "tool":
        return whole(message("stop", content="done"))
    function = {"name": last["content"], "arguments": "{}"}
    call = {"id": "c1", "type": "function", "function": function}
    return whole(message("tool_calls", content=None, tool_calls=[call]))


@pytest.fixture(scope="module")
async def model() -> AsyncGenerator[OpenAIPlayer, None]:
    async with OpenAIPlayer(obedient) as player:
        yield player


@pytest.fixture(scope="module")
async def client(
    model: OpenAIPlayer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[httpx.AsyncClient, None]:
    folder: Path = tmp_path_factory.mktemp("servers")
    file = written(
        folder,
        first=hostile(exclude=["hidden_*"], env={"OWN": "${UNSET:-its own}"}),
        twin=hostile(timeout=0.3, requires_approval=["echo"]),
    )
    async with service(MCP_SERVERS_FILE=file, OPENAI_BASE_URL=model.base_url) as client:
        await reaches(client, "registered", "first")
        await reaches(client, "registered", "twin")
        yield client
