"""What of a turn cannot be stored while it waits: it is refused when the turn pauses, and named."""

import logging
from collections.abc import AsyncGenerator

import httpx
import pytest

from tests.chat.played import JSON
from tests.service.api.sessions.conversing import metric
from tests.service.api.sessions.deciding import lit
from toolchat.errors import CannotPause
from toolchat.messages import AssistantMessage, Usage
from toolchat.models.base import ChatResponse
from toolchat.service.api.paused_turns import PausedTurn, PausedTurnCodec
from toolchat.tool_calling.callback import StaticToolCallbackResolver
from toolchat.tool_calling.function_callback import FunctionToolCallback

UNKEEPABLE = [
    *(("/light/context/" + kind, "context value odd") for kind in ("object", "tuple", "number", "key", "text")),
    ("/light/advised", "advisor light.Signed"),
    ("/light/renamed", "tool switchOwnLight"),
]


@pytest.fixture(scope="module")
async def client() -> AsyncGenerator[httpx.AsyncClient, None]:
    async with lit() as (client, _):
        yield client


@pytest.mark.parametrize(("path", "part"), UNKEEPABLE, ids=lambda value: value.split("/")[-1].split()[0])
async def test_the_client_and_the_log_name_the_part_that_cannot_be_stored(
    path: str, part: str, client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    before = await metric(client, "approvals_total")
    answer = await client.get(path, headers=JSON)
    assert (answer.status_code, answer.json()["code"]) == (500, "pause-impossible")
    assert f"the {part} " in answer.json()["detail"]
    (line,) = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert f"the {part} " in vars(line)["reason"]
    assert await metric(client, "approvals_total") == before


async def test_an_answer_that_waits_is_counted_by_the_process_that_paused_it(client: httpx.AsyncClient) -> None:
    before = await metric(client, "approvals_total")
    for path in ("/light/attic", "/light/advised", "/light/chat-tool-function"):
        await client.get(path)
    assert await metric(client, "approvals_total") == before + 2


async def test_a_part_that_cannot_be_stored_affects_only_turns_that_pause(client: httpx.AsyncClient) -> None:
    answer = await client.get("/light/plain", headers=JSON)
    assert answer.json()["answer"] == "It is ."


def test_a_tool_of_another_owner_with_an_equal_definition_is_not_stored_as_if_it_were_the_same() -> None:
    def one() -> str:
        return "one"

    def other() -> str:
        return "other"

    known, another = (
        FunctionToolCallback.from_function(each, name="tell", description="Tell it.") for each in (one, other)
    )
    assert (known.definition, known.owner != another.owner) == (another.definition, True)
    codec = PausedTurnCodec(StaticToolCallbackResolver((known,)), ())
    response = ChatResponse(AssistantMessage(""), "approval_required", Usage(), "")
    assert codec.dump(PausedTurn(response, (known,), ()))["tools"] == ["tell"]
    with pytest.raises(CannotPause, match="the tool tell belongs to no tool module"):
        codec.dump(PausedTurn(response, (another,), ()))
