"""The link by which a person without a key decides about one call, and nothing else."""

import logging
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic_core import to_json

from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, message, whole
from tests.players.otlp_receiver import OtlpReceiver
from tests.service.access.principals import as_, principals
from tests.service.protocols.mcp_server.host import Host
from tests.service.protocols.openai.asking import COMPLETIONS, call, chunks_of, user
from tests.serving import service
from tests.waiting import until
from toolchat.errors import NotFound
from toolchat.service.access.principals import Principal
from toolchat.service.api.approval_records import ApprovalTokens
from toolchat.state.sqlite import SqliteStateStore

FOLDERS = "tests.service.protocols.openai.folders"
APPROVE = {"decisions": {"call_1": {"approved": True}}}
LINK = re.compile(
    r"To approve or reject ship within 10 minutes, open (\S+)/playground/\?approval=([\w-]{22})#token=([\w-]{43})"
)


def shipping(request: PlayedRequest) -> Answer:
    """A model that ships as many orders as the last question says please, and then is done."""
    messages = request.body["messages"]
    last = max(place for place, each in enumerate(messages) if each["role"] == "user")
    if len(messages) - last > 2 * messages[last]["content"].count("please"):
        return whole(message(content="It is on its way."))
    return whole(message("tool_calls", content=None, tool_calls=[call("ship", '{"number":1}')]))


@dataclass
class Shop:
    client: httpx.AsyncClient
    player: OpenAIPlayer
    keys: Path

    async def ask(self, text: str = "please", name: str = "alice", **fields: Any) -> httpx.Response:
        body = {"model": "toolchat-ship", "messages": [user(text)], **fields}
        return await self.client.post(COMPLETIONS, json=body, headers=as_(name))

    async def link(self, text: str = "please", name: str = "alice") -> tuple[str, dict[str, str]]:
        """Where an answer is decided, and the headers of who has its link."""
        content = (await self.ask(text, name)).json()["choices"][0]["message"]["content"]
        found = LINK.match(content)
        assert found is not None, content
        assert found[1] == str(self.client.base_url)
        return f"/approvals/{found[2]}", as_("", **{"X-Approval-Token": found[3]})


@pytest.fixture(scope="module")
async def shop(receiver: OtlpReceiver, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Shop, None]:
    folder = tmp_path_factory.mktemp("keys")
    traced = receiver.variables | {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true"}
    async with (
        OpenAIPlayer(shipping) as player,
        service(FOLDERS, OPENAI_BASE_URL=player.base_url, **principals(folder), **traced) as client,
    ):
        yield Shop(client, player, folder / "keys.toml")


async def test_the_link_shows_the_call_and_decides_about_it_once(shop: Shop) -> None:
    place, bearer = await shop.link()
    assert (await shop.client.get(place, headers=as_(""))).status_code == 401
    shown = await shop.client.get(place, headers=bearer)
    (call,) = shown.json()["calls"]
    assert call.items() >= {"id": "call_1", "name": "ship", "arguments": {"number": 1}}.items()
    decided = await shop.client.post(place, json=APPROVE, headers=bearer)
    assert (decided.status_code, decided.text) == (200, "It is on its way.")
    again = await shop.client.post(place, json=APPROVE, headers=bearer)
    assert (again.status_code, again.json()["code"]) == (404, "already-decided")
    assert (await shop.client.get(place, headers=bearer)).json()["status"] == "decided"


@pytest.mark.parametrize("kind", ["GET", "HEAD", "OPTIONS"])
async def test_no_preview_of_the_link_decides(kind: str, shop: Shop) -> None:
    place, bearer = await shop.link()
    for preview in ({}, {"Sec-Purpose": "prefetch"}, {"User-Agent": "Slackbot-LinkExpanding"}):
        page = await shop.client.request(kind, place.replace("/approvals/", "/playground/?approval="), headers=preview)
        assert page.status_code != 401
        await shop.client.request(kind, place, headers=bearer | preview)
    assert (await shop.client.post(place, json=APPROVE, headers=bearer)).text == "It is on its way."


async def test_a_token_is_for_one_approval_and_for_nothing_else(shop: Shop) -> None:
    place, bearer = await shop.link()
    other, _ = await shop.link()
    for path in (other, "/approvals/nothing", f"{place}x"):
        assert (await shop.client.post(path, json=APPROVE, headers=bearer)).status_code == 404
    for path in ("/chat", "/tools", "/metrics", "/v1/models", "/approvals", f"/APPROVALS/{place[11:]}"):
        assert (await shop.client.get(path, headers=bearer)).status_code == 401
    for wrong in ("x", "é", bearer["X-Approval-Token"][:-1], "x" * 5000):
        headers = bearer | {"X-Approval-Token": wrong.encode("latin-1").decode("latin-1")}
        raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        assert (await shop.client.post(place, json=APPROVE, headers=raw)).status_code == 404
    assert (await shop.client.post(place, json=APPROVE, headers=bearer)).status_code == 200


@pytest.mark.parametrize("headers", [as_("bob"), as_("", Origin="https://elsewhere.example")], ids=["bob", "page"])
async def test_others_cannot_decide_without_the_token(headers: dict[str, str], shop: Shop) -> None:
    place, bearer = await shop.link()
    assert (await shop.client.post(place, json=APPROVE, headers=headers)).status_code in (401, 404)
    preflight = {
        "Origin": "https://elsewhere.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "x-approval-token",
    }
    asked = await shop.client.options(place, headers=preflight)
    assert "access-control-allow-origin" not in asked.headers
    # The token tells on whose behalf, whatever key the page has besides.
    assert (await shop.client.post(place, json=APPROVE, headers=as_("bob") | bearer)).status_code == 200


async def test_a_link_ends_with_the_key_that_asked(shop: Shop) -> None:
    place, bearer = await shop.link()
    text = shop.keys.read_text()
    shop.keys.write_text(text.replace('name = "alice"', 'name = "another"'))
    try:

        async def is_refused() -> bool:
            return (await shop.client.get(place, headers=bearer)).status_code == 401

        await until(is_refused)
    finally:
        shop.keys.write_text(text)

    async def is_back() -> bool:
        return (await shop.client.get(place, headers=bearer)).status_code == 200

    await until(is_back)


async def test_who_decided_by_a_token_gets_the_next_one(shop: Shop) -> None:
    place, bearer = await shop.link("please, please")
    document = (await shop.client.post(place, json=APPROVE, headers=bearer | {"Accept": "application/json"})).json()
    following = document["approval"]
    bearer = as_("", **{"X-Approval-Token": following["token"]})
    answer = await shop.client.post(f"/approvals/{following['id']}", json=APPROVE, headers=bearer)
    assert answer.text == "It is on its way."


async def test_a_stream_has_the_link_and_only_chat_pages_get_a_token(shop: Shop) -> None:
    chunks = chunks_of((await shop.ask(stream=True)).text)
    text = "".join(each["choices"][0]["delta"].get("content", "") for each in chunks if each != "[DONE]")
    assert LINK.match(text)
    plain = await shop.client.get("/chat", params={"userInput": "please"}, headers=as_("alice"))
    assert plain.text.startswith("To approve or reject ship within 10 minutes, open http")
    document = await shop.client.get(
        "/chat", params={"userInput": "please"}, headers=as_("alice", Accept="application/json")
    )
    called = await Host(shop.client).ask("tools/call", as_("alice"), name="ask", arguments={"question": "please"})
    for answer in (plain, document, called):
        assert "approval" in answer.text
        assert "token=" not in answer.text
        assert '"token"' not in answer.text


async def test_neither_logs_nor_traces_nor_models_get_the_token(
    shop: Shop, receiver: OtlpReceiver, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        place, bearer = await shop.link("please, order 77")
        token = bearer["X-Approval-Token"]
        text = f"To approve it, open http://a/playground/?approval=x#token={token}\nWaiting"
        history = [user("please"), {"role": "assistant", "content": text}, user("What is it?")]
        assert (await shop.ask(messages=history)).status_code == 200
        parts = [user("please"), {"role": "assistant", "content": [{"type": "text", "text": text}]}, user("And now?")]
        assert (await shop.ask(messages=parts)).status_code == 200
        question, alice = {"query": text}, as_("alice")
        assert (await shop.client.get("/chat", params=question, headers=alice)).status_code == 200
        assert (await shop.client.post("/chat", json=question, headers=alice)).status_code == 200
        await shop.client.post(place, json=APPROVE, headers=bearer)

    def has(*texts: str) -> bool:
        return any(all(text in repr(each.attributes) for text in texts) for each in receiver.spans)

    await until(lambda: has("order 77", "ship") and has("order 77", "It is on its way."))
    await until(lambda: has("What is it?") and has("And now?"))
    logged = [vars(each) for each in caplog.records if each.name.startswith("toolchat")]
    assert logged
    assert token not in repr(logged) + repr(receiver.spans)
    assert token not in to_json([each.body for each in shop.player.requests]).decode()
    assert "#token=" in to_json([each.body for each in shop.player.requests]).decode()


async def test_the_store_has_a_hash_only_and_forgets_it_in_time() -> None:
    store = SqliteStateStore()
    tokens = ApprovalTokens(store)
    token = await tokens.issue("x", 0.05)
    assert await tokens.principal("x", token) == Principal("")
    assert token not in repr(vars(store))

    async def is_over() -> bool:
        try:
            await tokens.principal("x", token)
        except NotFound:
            return True
        return False

    await until(is_over)
