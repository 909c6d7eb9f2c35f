"""Requests of chat pages and editors, and the parts of the responses that they read."""

from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest

from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, chunk, delta, finish, message, sse, whole
from tests.service.protocols.openai.asking import COMPLETIONS, chunks_of, error_of, user
from tests.service.protocols.openai.recordings import recordings
from tests.serving import service
from toolchat.service.access.keys import digest_of

RECORDED = recordings()
TOKENS = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
KNOWN = {"model", "messages", "stream", "stream_options", "tools", "temperature", "top_p", "max_tokens", "n"} | {
    *("presence_penalty", "frequency_penalty", "parallel_tool_calls")
}
"""What a provider is sent of all that."""


def answered(request: PlayedRequest) -> Answer:
    if request.body.get("stream"):
        return sse(delta(content="五"), delta(content="点"), finish("stop"), chunk(usage=TOKENS))
    return whole(message(content='{"title":"Time"}', usage=TOKENS))


@pytest.fixture(scope="module", params=["", "key"], ids=["no key is needed", "with a key"])
async def played(request: pytest.FixtureRequest) -> AsyncGenerator[tuple[httpx.AsyncClient, OpenAIPlayer], None]:
    keys = {"API_KEYS": f"page={digest_of(request.param)}"} if request.param else {}
    async with OpenAIPlayer(answered) as player, service(OPENAI_BASE_URL=player.base_url, **keys) as client:
        yield client, player


async def sent(client: httpx.AsyncClient, name: str, kind: str, key: str = "key") -> httpx.Response:
    """Send a recorded request as it is."""
    recorded = RECORDED[name][kind]
    headers = {header: value.replace("KEY", key) for header, value in recorded["headers"].items()}
    if "body" in recorded:
        return await client.post(COMPLETIONS, json=recorded["body"], headers=headers)
    return await client.get("/v1/models", headers=headers)


def test_every_recording_names_its_source() -> None:
    assert set(RECORDED) == {"open_webui", "librechat", "cherry_studio", "continue"}
    assert all({"at", "Recorded"} & set(" ".join(each["source"]).split()) for each in RECORDED.values())


@pytest.mark.parametrize("name", RECORDED)
async def test_the_list_of_models_has_ids(name: str, played: tuple[httpx.AsyncClient, OpenAIPlayer]) -> None:
    answer = await sent(played[0], name, "models")
    assert {"toolchat", "toolchat-plain"} <= {each["id"] for each in answer.json()["data"]}


@pytest.mark.parametrize("name", RECORDED)
async def test_a_chat_streams_text_then_tokens_then_its_end(
    name: str, played: tuple[httpx.AsyncClient, OpenAIPlayer]
) -> None:
    client, player = played
    answer = await sent(client, name, "chat")
    assert answer.headers["content-type"].startswith("text/event-stream"), answer.text
    *chunks, done = chunks_of(answer.text)
    wants_usage = "stream_options" in RECORDED[name]["chat"]["body"]
    usage = [each["usage"]["total_tokens"] for each in chunks if not each["choices"]]
    deltas = [each["choices"][0]["delta"] for each in chunks if each["choices"]]
    assert "".join(each.get("content") or "" for each in deltas) == "五点"
    assert {each.get("role", "assistant") for each in deltas} == {"assistant"}
    assert not any("tool_calls" in each for each in deltas)
    assert (usage, done) == ([10] if wants_usage else [], "[DONE]")
    told = player.requests[-1].body
    assert told["messages"][-1] == user("现在几点？")
    assert set(told) <= KNOWN
    assert all("reasoning_content" not in each for each in told["messages"])  # it belonged to a turn that is over


@pytest.mark.parametrize("name", RECORDED)
async def test_a_title_is_written_without_tools(name: str, played: tuple[httpx.AsyncClient, OpenAIPlayer]) -> None:
    client, player = played
    answer = await sent(client, name, "title")
    assert answer.json()["choices"][0]["message"]["content"] == '{"title":"Time"}'
    assert "tools" not in player.requests[-1].body
    limit = RECORDED[name]["title"]["body"].get("max_tokens")
    assert player.requests[-1].body.get("max_tokens") == limit


@pytest.mark.parametrize("name", RECORDED)
async def test_a_wrong_key_leads_to_a_message_that_the_client_shows(name: str) -> None:
    async with service(API_KEYS=f"page={digest_of('key')}") as client:
        answer: Any = await sent(client, name, "chat", key="wrong")
    assert error_of(answer) == (401, "invalid_api_key", None)
    assert isinstance(answer.json()["error"]["message"], str)


async def test_an_unsupported_kind_of_tool_is_named() -> None:
    # As LibreChat sends what its users add for Google.
    async with service() as client:
        body = {"model": "toolchat", "messages": [user("?")], "tools": [{"googleSearch": {}}]}
        answer = await client.post(COMPLETIONS, json=body)
    assert error_of(answer) == (400, "invalid_value", "tools[0].function")
