"""The connections to the provider, signs of life, and which of OpenAI's two APIs a model is asked by."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

import toolchat.models.openai.model as openai
from tests.models.openai.playing import (
    AT_ONCE,
    CITY,
    LIMIT,
    QUESTION,
    STREAMED,
    calls_of,
    play,
    played,
    tool_delta,
    turn,
)
from tests.models.responding import begun, events_of, response_of, streamed_text
from tests.players.openai_player import (
    Answer,
    OpenAIPlayer,
    PlayedRequest,
    chunk,
    delta,
    event,
    finish,
    message,
    sse,
    whole,
)
from toolchat.errors import ProviderRateLimited, ToolchatError
from toolchat.http.client import OutboundHttp
from toolchat.models.base import ChatOptions, ChatResponse, Progress, Prompt, TextDelta
from toolchat.models.openai.model import OpenAICompatibleChatModel
from toolchat.models.resilience import KEEPALIVE

BOTH = pytest.mark.parametrize("prompt", [AT_ONCE, STREAMED], ids=["at once", "stream"])


async def test_leaving_the_stream_closes_the_upstream_connection() -> None:
    async with played([sse(delta(content="晴"), done=False, ending="hang")]) as (model, player):
        async with begun(model, STREAMED) as first:
            assert first == TextDelta("晴")
        await player.aborted.wait()


@BOTH
async def test_cancelling_the_question_closes_the_upstream_connection(prompt: Prompt) -> None:
    async with played([Answer(ending="hang")]) as (model, player):
        task = asyncio.create_task(events_of(model, prompt))
        await player.asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await player.aborted.wait()


async def test_one_connection_serves_all_questions_and_all_kinds_of_answers() -> None:
    text = sse(delta("stop", content="a"))
    async with played([text, whole(message(content="b")), whole({"error": LIMIT}, 429), text]) as (model, player):
        for _ in range(2):
            await events_of(model, STREAMED)
        with pytest.raises(ProviderRateLimited):
            await events_of(model, STREAMED)
        await events_of(model, STREAMED)
    assert player.connections == 1


FINISHED = [delta(content="晴"), finish("stop")]
CALLED = [tool_delta(id="a", name="get_weather", arguments=CITY), finish("tool_calls")]
EVENTS = {"Content-Type": "text/event-stream"}


@pytest.mark.parametrize(
    "beat",
    # DeepSeek's queue, openai-go#227, half of a comment, an event without data, one without anything
    [b": keep-alive\n\n", b": OPENROUTER PROCESSING\n\n", b":\n", b"data: \n\n", b"event: ping\n\n"],
)
async def test_whatever_arrives_shows_that_the_stream_is_alive(beat: bytes) -> None:
    events = await play([sse(beat, beat, b"\n\n", delta(reasoning="hm"), *FINISHED)])
    assert events[:3] == [KEEPALIVE] * 3
    assert events[3:-1] == [Progress("hm"), TextDelta("晴"), Progress()]


BLANKS = [*[b"\n"] * 3, *whole(message(content="晴")).pieces]  # DeepSeek


@pytest.mark.parametrize(
    "answer",
    [
        Answer(BLANKS, headers={"Content-Type": "application/json"}),
        sse(FINISHED[0], delta(content=""), delta(content=""), FINISHED[1]),
    ],
    ids=["empty lines before a whole answer", "a stream"],
)
async def test_whatever_arrives_of_a_whole_answer_shows_that_the_model_is_alive(answer: Answer) -> None:
    *events, last = await play([answer], AT_ONCE)
    assert isinstance(last, ChatResponse)
    assert (last.message.text, set(events)) == ("晴", {KEEPALIVE})
    assert len(events) >= 4


@pytest.mark.parametrize(
    "chunks",
    [
        FINISHED,  # claude-code-router#1271, bifrost#6784
        CALLED,  # pi#7954
        [*FINISHED, chunk(usage={"prompt_tokens": 1})],
        [*FINISHED, b'data: {"choices'],
        [*FINISHED, *[b": keep-alive\n\n"] * 3],
    ],
    ids=["text", "calls", "usage", "half of an event", "comments"],
)
async def test_silence_after_the_finish_reason_ends_the_answer(
    chunks: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai, "FINISH_TIMEOUT", 0.05)
    response = await turn(sse(*chunks, done=False, ending="hang"))
    assert (response.message.text, calls_of(response)) in [("晴", []), ("", [("a", "get_weather", CITY)])]


USAGE = chunk(usage={"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7})


@pytest.mark.parametrize(
    ("pieces", "seconds", "text"),
    [
        ([*FINISHED, USAGE], 60, "晴"),
        (
            [delta("stop", content="The total is 10"), delta("stop", content="0 euros."), USAGE],
            0.01,
            "The total is 100 euros.",
        ),
    ],
    ids=["within the time", "a finish reason on each piece"],
)
async def test_what_follows_the_finish_reason_belongs_to_the_answer(
    pieces: list[Any], seconds: float, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai, "FINISH_TIMEOUT", seconds)
    gate = asyncio.Event()
    async with played([Answer([*map(event, pieces)], headers=EVENTS, gate=gate, ending="close")]) as (model, _):
        asked = asyncio.create_task(response_of(model, STREAMED))
        asyncio.get_running_loop().call_later(0.1, gate.set)
        response = await asked
    assert (response.message.text, response.usage.total_tokens) == (text, 7)


STREAM = b"".join(map(event, FINISHED)) + b"data: [DONE]\n\n"
TYPES = [None, "text/plain", "application/octet-stream", "application/json", "application/json; charset=utf-8"]


def cut(content: bytes, size: int, media_type: str | None = None) -> Answer:
    pieces = [content[at : at + size] for at in range(0, len(content), size)]
    return Answer(pieces, headers={"Content-Type": media_type} if media_type else {})


@BOTH
@pytest.mark.parametrize("begun", [b"", b"\xef\xbb\xbf", b": OPENROUTER PROCESSING\n\n", b"event: x\n", b"id: 1\n"])
@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize("media_type", TYPES)
async def test_a_stream_is_read_whatever_its_type_says(  # ktor#5836
    media_type: str | None, size: int, begun: bytes, prompt: Prompt
) -> None:
    *events, response = await play([cut(begun + STREAM, size, media_type)], prompt)
    assert isinstance(response, ChatResponse)
    assert (response.message.text, streamed_text(events)) == ("晴", "晴" if prompt.stream else "")


@pytest.mark.parametrize("size", [1, 1000])
async def test_json_is_still_read_as_json_without_a_type(size: int) -> None:
    assert (await turn(cut(json.dumps(message(content="x")).encode(), size))).message.text == "x"


CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
ANSWERS = {CHAT: message(content="ok"), RESPONSES: {"status": "completed", "output": [{"type": "message"}]}}
TOOLS = (  # sandialabs/atlas-ui-3#756, robocurve/inspect-robots#131
    "Function tools with reasoning_effort are not supported for gpt-5.6-luna in /v1/chat/completions. "
    "To use function tools, use /v1/responses or set reasoning_effort to 'none'."
)
ONLY = "This model is only supported in v1/responses and not in v1/chat/completions."
ONLY_CHAT = "This model is only supported in v1/chat/completions and not in v1/responses."
QUOTED = 'error parsing tool call: raw=\'{"url": "https://host/v1/responses"\', err=unexpected end of JSON input'
Refuses = Callable[[PlayedRequest], tuple[int, str] | None]


@asynccontextmanager
async def standing(
    refuses: Refuses, **arguments: Any
) -> AsyncGenerator[tuple[OpenAICompatibleChatModel, OpenAIPlayer], None]:
    """Create a model with both APIs, and a server that refuses the given requests."""

    def answer(request: PlayedRequest) -> Answer:
        status, reason = refuses(request) or (200, "")
        return whole({"error": {"message": reason}}, status) if reason else whole(ANSWERS[request.path])

    async with asyncio.timeout(60), aclosing(OutboundHttp()) as http, OpenAIPlayer(answer) as player:
        yield OpenAICompatibleChatModel(base_url=player.base_url, http=http, **arguments), player


def only_chat_is_refused(status: int = 400, reason: str = ONLY) -> Refuses:
    return lambda request: (status, reason) if request.path == CHAT else None


async def ask(model: OpenAICompatibleChatModel, player: OpenAIPlayer, name: str | None = None) -> Sequence[str]:
    """Where a question was asked, with ``failed`` at the end if it was not answered."""
    before = len(player.requests)
    try:
        await response_of(model, replace(AT_ONCE, options=ChatOptions(model=name)))
    except ToolchatError:
        return [*(each.path for each in player.requests[before:]), "failed"]
    return [each.path for each in player.requests[before:]]


@pytest.mark.parametrize("status", [400, 404])
@pytest.mark.parametrize("reason", [TOOLS, ONLY, f"litellm.BadRequestError: OpenAIException - {TOOLS}"])
async def test_words_of_openai_lead_to_the_other_api(status: int, reason: str) -> None:
    async with standing(only_chat_is_refused(status, reason)) as (model, player):
        assert await ask(model, player) == [CHAT, RESPONSES]
        assert await ask(model, player) == [RESPONSES]


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        pytest.param(500, QUOTED, id="ollama#12884, ollama#17638, continue#10221"),
        pytest.param(400, QUOTED, id="a quote in a refusal"),
        pytest.param(500, ONLY, id="a failure in the same words"),
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


async def test_a_chosen_api_is_kept_and_the_error_says_what_to_set() -> None:
    async with standing(only_chat_is_refused(), api="chat") as (model, player):
        with pytest.raises(ToolchatError, match="OPENAI_API=responses"):
            await response_of(model, AT_ONCE)
    assert len(player.requests) == 1


@pytest.mark.parametrize(("status", "reason"), [(404, "page not found"), (405, "not allowed"), (400, ONLY_CHAT)])
async def test_an_api_that_is_gone_is_left_again(status: int, reason: str) -> None:
    refused = {CHAT: (400, ONLY)}
    async with standing(lambda request: refused.get(request.path)) as (model, player):
        assert await ask(model, player) == [CHAT, RESPONSES]
        refused = {RESPONSES: (status, reason)}
        assert await ask(model, player) == [RESPONSES, CHAT]
        assert await ask(model, player) == [CHAT]


async def test_each_model_has_its_own_api_and_the_change_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    def refuses(request: PlayedRequest) -> tuple[int, str] | None:
        return (400, ONLY) if request.path == CHAT and request.body["model"] == "new" else None

    async with standing(refuses) as (model, player):
        await asyncio.gather(*(ask(model, player, "new") for _ in range(3)))
        assert await ask(model, player, "old") == [CHAT]
        assert await ask(model, player, "new") == [RESPONSES]
    (record,) = [each for each in caplog.records if each.levelname == "WARNING"]
    assert record.message == "the model is asked in another way from now on"
    assert (vars(record)["model"], vars(record)["changes"]) == ("new", {"api": "/responses"})


@pytest.mark.parametrize(
    ("base_url", "api", "path"),
    [
        (None, "auto", "/responses"),
        ("https://api.openai.com/v1/", "auto", "/responses"),
        ("https://api.openai.com/v1", "chat", "/chat/completions"),
        ("https://api.deepseek.com", "auto", "/chat/completions"),
        ("https://api.deepseek.com", "responses", "/responses"),
    ],
)
def test_openai_itself_is_asked_by_responses_and_others_by_chat_completions(
    base_url: str | None, api: Any, path: str
) -> None:
    model = OpenAICompatibleChatModel(base_url=base_url, api=api)
    assert model._known_profile(model.name).api == path


@pytest.mark.parametrize(("api", "path"), [("chat", CHAT), ("responses", RESPONSES)])
async def test_options_of_the_model_hold_unless_a_question_has_its_own(api: str, path: str) -> None:
    extra: dict[str, Any] = {"extra_body": {"chat_template_kwargs": {"x": 1}}, "extra_headers": {"X-Team": "a"}}
    async with standing(lambda _: None, api=api, options=ChatOptions(temperature=0.1, top_p=0.5), **extra) as (
        model,
        player,
    ):
        await response_of(model, Prompt((QUESTION,), options=ChatOptions(temperature=0.9)))
    (request,) = player.requests
    assert request.body.items() >= {"temperature": 0.9, "top_p": 0.5, "chat_template_kwargs": {"x": 1}}.items()
    assert (request.headers["x-team"], request.path) == ("a", path)
