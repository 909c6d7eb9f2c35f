"""When a model is called by the other of OpenAI's two APIs, and when it is not."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace

import pytest

from tests.models.openai.playing import AT_ONCE
from tests.models.responding import response_of
from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, message, whole
from toolchat.errors import ToolchatError
from toolchat.http.client import OutboundHttp
from toolchat.models.base import ChatOptions
from toolchat.models.openai.model import OpenAICompatibleChatModel

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
ANSWERS = {CHAT: message(content="ok"), RESPONSES: {"status": "completed", "output": [{"type": "message"}]}}
TOOLS = (  # sandialabs/atlas-ui-3#756, robocurve/inspect-robots#131
    "Function tools with reasoning_effort are not supported for gpt-5.6-luna in /v1/chat/completions. "
    "To use function tools, use /v1/responses or set reasoning_effort to 'none'."
)
ONLY = "This model is only supported in v1/responses and not in v1/chat/completions."
ONLY_CHAT = "This model is only supported in v1/chat/completions and not in v1/responses."
Refuses = Callable[[PlayedRequest], tuple[int, str] | None]


@asynccontextmanager
async def standing(refuses: Refuses) -> AsyncGenerator[tuple[OpenAICompatibleChatModel, OpenAIPlayer], None]:
    """Create a model with both APIs, and a server that refuses the given requests."""

    def answer(request: PlayedRequest) -> Answer:
        status, reason = refuses(request) or (200, "")
        return whole({"error": {"message": reason}}, status) if reason else whole(ANSWERS[request.path])

    async with asyncio.timeout(60), aclosing(OutboundHttp()) as http, OpenAIPlayer(answer) as player:
        yield OpenAICompatibleChatModel(base_url=player.base_url, http=http), player


async def ask(model: OpenAICompatibleChatModel, player: OpenAIPlayer, name: str | None = None) -> Sequence[str]:
    """Where a question was asked, with ``failed`` at the end if it was not answered."""
    before = len(player.requests)
    try:
        await response_of(model, replace(AT_ONCE, options=ChatOptions(model=name)))
    except ToolchatError:
        return [*(each.path for each in player.requests[before:]), "failed"]
    return [each.path for each in player.requests[before:]]


@pytest.mark.parametrize("status", [400, 404])
@pytest.mark.parametrize(
    "reason",
    [
        pytest.param(TOOLS, id="atlas-ui-3#756"),
        pytest.param(ONLY, id="OpenAI's models of Responses alone"),
        pytest.param(f"litellm.BadRequestError: OpenAIException - {TOOLS}", id="through LiteLLM"),
    ],
)
async def test_words_of_openai_lead_to_the_other_api(status: int, reason: str) -> None:
    async with standing(lambda request: (status, reason) if request.path == CHAT else None) as (model, player):
        assert await ask(model, player) == [CHAT, RESPONSES]
        assert await ask(model, player) == [RESPONSES]


QUOTED = 'error parsing tool call: raw=\'{"url": "https://host/v1/responses"\', err=unexpected end of JSON input'


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        pytest.param(500, QUOTED, id="ollama#12884, ollama#17638, continue#10221"),
        pytest.param(400, QUOTED, id="a quote in a refusal"),
        pytest.param(500, ONLY, id="a failure in the same words"),
        pytest.param(503, TOOLS, id="an overloaded server in the same words"),
        pytest.param(400, f'cannot parse "{ONLY}"', id="the words within quotes"),
        pytest.param(400, f"cannot parse '{TOOLS}'", id="the words within an unclosed quote"),
        pytest.param(400, "cannot answer: write a client for /v1/responses", id="the path alone"),
        pytest.param(404, "no route for /v1/responses", id="a missing route"),
        pytest.param(400, ONLY_CHAT, id="the API in use"),
    ],
)
async def test_nothing_else_does(status: int, reason: str) -> None:
    async with standing(lambda request: (status, reason) if len(player.requests) == 1 else None) as (model, player):
        assert await ask(model, player) == [CHAT, "failed"]
        assert await ask(model, player) == [CHAT]


@pytest.mark.parametrize(
    ("status", "reason"), [(404, "page not found"), (405, "not allowed"), (400, ONLY_CHAT), (422, "no"), (500, "no")]
)
async def test_an_api_that_does_not_answer_is_not_kept(status: int, reason: str) -> None:
    def refuses(request: PlayedRequest) -> tuple[int, str] | None:
        if request.path == RESPONSES:
            return status, reason
        return (400, ONLY) if len(player.requests) == 1 else None

    async with standing(refuses) as (model, player):
        assert await ask(model, player) == [CHAT, RESPONSES, "failed"]
        assert await ask(model, player) == [CHAT]


async def test_if_both_refuse_the_first_refusal_is_told() -> None:
    reasons = {CHAT: (400, ONLY), RESPONSES: (404, "page not found")}
    async with standing(lambda request: reasons[request.path]) as (model, _):
        with pytest.raises(ToolchatError, match="OPENAI_API=responses"):
            await response_of(model, AT_ONCE)


@pytest.mark.parametrize(("status", "reason"), [(404, "page not found"), (405, "not allowed"), (400, ONLY_CHAT)])
async def test_an_api_that_is_gone_is_left_again(status: int, reason: str) -> None:
    refused = {CHAT: (400, ONLY)}
    async with standing(lambda request: refused.get(request.path)) as (model, player):
        assert await ask(model, player) == [CHAT, RESPONSES]
        refused = {RESPONSES: (status, reason)}
        assert await ask(model, player) == [RESPONSES, CHAT]
        assert await ask(model, player) == [CHAT]


async def test_each_model_has_its_own_api() -> None:
    async with standing(
        lambda request: (400, ONLY) if request.path == CHAT and request.body["model"] == "new" else None
    ) as (model, player):
        assert await ask(model, player, "new") == [CHAT, RESPONSES]
        assert await ask(model, player, "old") == [CHAT]
        assert await ask(model, player, "new") == [RESPONSES]


async def test_the_change_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async with standing(lambda request: (400, ONLY) if request.path == CHAT else None) as (model, player):
        await asyncio.gather(*(ask(model, player, "new") for _ in range(3)))
    (record,) = [each for each in caplog.records if each.levelname == "WARNING"]
    assert (vars(record)["model"], vars(record)["changes"]) == ("new", {"api": "/responses"})
