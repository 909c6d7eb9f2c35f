"""A person who uses all that stores something, and what a store holds then."""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.architecture import ROOT
from tests.calling_as import calling_as
from tests.chat.played import JSON, asks, says, turns, update
from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest
from tests.service.api.sessions.deciding import LIGHTS
from tests.serving import client_of, configured, serving
from tests.waiting import until
from toolchat.service.access.keys import digest_of
from toolchat.service.main import create_app
from toolchat.service.protocols.mcp_server.back_channel import accept_response, open_request
from toolchat.state.base import StateStore

__all__ = ["MARK", "NAME", "PERSON", "Keeping", "keeping", "kinds_of_the_source"]

MARK, NAME = "rosebud", "page~zoe"
"""A word of every question, and the principal of the person."""
PERSON = {"X-API-Key": "page", "X-User-Id": "zoe"}
_KEYS = f"""
[[keys]]
name = "page"
sha256 = "{digest_of("page")}"
people = {{ header = "X-User-Id" }}

[[keys]]
name = "officer"
sha256 = "{digest_of("officer")}"
roles = ["privacy"]

[[keys]]
name = "other"
sha256 = "{digest_of("other")}"
"""
_KIND = re.compile(r'f"([a-z-]+):\{|ConversationState\(\w+, "([a-z-]+)"')
_NO_KEYS = {"of", "list", "log", "sessions", "tenant", "key", "data", "examples", "approvals-waiting"}
"""What looks like the kind of a key, and is the name of a list, or is not stored."""
_OF_NOBODY = {"lock", "quota", "check", "jwt", "mcp-asked", "background-cancel", "webhook", "audit"}
"""What holds no question and no conversation, except for the record of decisions, which is kept on purpose."""
_CLIENT_TOOL = {"type": "function", "name": "openDoor", "parameters": {"type": "object", "properties": {}}}


def kinds_of_the_source() -> set[str]:
    """The kinds of all keys that the code stores for somebody."""
    files = [file for part in ("toolchat", "app") for file in (ROOT / part).rglob("*.py")]
    found = [_KIND.findall(file.read_text(encoding="utf-8")) for file in files]
    return {one or other for each in found for one, other in each} - _NO_KEYS - _OF_NOBODY


def _model(request: PlayedRequest) -> Answer:
    """A model that does what the question names."""
    body = request.body
    last = max(place for place, each in enumerate(body["messages"]) if each["role"] == "user")
    question, is_first = str(body["messages"][last]["content"]), len(body["messages"]) == last + 1
    if "slow" in question and not is_first:
        return Answer([], ending="hang")
    if is_first and ("plan" in question or "slow" in question):
        return turns(asks(update((MARK, "pending"))))(request)
    if is_first and "light" in question:
        return turns(asks(("switchLight", {"on": True})))(request)
    if is_first and "door" in question:
        return turns(asks(("openDoor", {"name": MARK})))(request)
    if is_first and "alarm" in question:
        return turns(asks(("setAlarm", {"time": "PT1H"})))(request)
    return turns(says(f"{question} indeed"))(request)


@dataclass
class Keeping:
    client: httpx.AsyncClient
    store: StateStore

    async def post(self, path: str, body: Any = None, **headers: str) -> httpx.Response:
        answer = await self.client.post(path, json=body, headers=PERSON | headers)
        assert answer.status_code < 300, answer.text
        return answer

    async def chat(self, question: str, session: str, **headers: str) -> httpx.Response:
        return await self.post("/chat", {"query": f"{MARK} {question}", "sessionId": session}, **headers)

    async def in_background(self, question: str, session: str, status: str, tool: str = "") -> None:
        body = {"query": f"{MARK} {question}", "sessionId": session, "tools": [tool] if tool else []}
        place = (await self.post("/chat", body, Prefer="respond-async")).headers["location"]

        async def is_so() -> bool:
            return bool((await self.client.get(place, headers=PERSON)).json()["status"] == status)

        await until(is_so)

    async def decided(self, session: str) -> None:
        approval = (await self.chat("light", session, **JSON)).json()["approval"]
        decisions = {each["id"]: {"approved": True} for each in approval["calls"]}
        await self.post(f"/approvals/{approval['id']}", {"decisions": decisions})

    async def conversation(self) -> str:
        """Everything that can be stored for a conversation; returns its session."""
        session = str((await self.post("/v1/conversations", {"metadata": {"about": MARK}})).json()["id"])
        await self.chat("hello", session)
        await self.decided(session)
        shown = {"model": "toolchat", "messages": [{"role": "user", "content": f"{MARK} light"}]}
        await self.post("/v1/chat/completions", shown, **{"X-Session-ID": session})
        asked = {"model": "toolchat", "input": f"{MARK} door", "conversation": session, "tools": [_CLIENT_TOOL]}
        await self.post("/v1/responses", asked)
        await self.post("/tools/switchLight?sessionId=" + session, {"on": True}, **{"Idempotency-Key": "k"})
        await self.in_background("hello", session, "completed")
        # What mentions an image is stored apart, as a question with images is.
        await self.in_background("slow data:image/", session, "running", "todoUpdate")
        await until(self._has_a_list)
        return session

    async def person(self) -> None:
        """Everything that can be stored for a person besides."""
        await self.post("/v1/responses", {"model": "toolchat", "input": f"{MARK} hello"})
        await self.post(f"/tool/alarm?query={MARK} alarm", **{"Idempotency-Key": "a"})
        with calling_as(NAME):
            identifiers = [await open_request(self.store) for _ in range(2)]
            await accept_response(self.store, _response(identifiers[0]))

    async def _has_a_list(self) -> bool:
        return "todo-rounds" in await self.kinds()

    async def kinds(self) -> set[str]:
        return {each.key.partition(":")[0] async for each in self.store.records()}

    async def with_any(self, *words: str) -> list[str]:
        """The keys of what contains one of the words, wherever it does, except for the record of decisions."""
        found = []
        async for each in self.store.records():
            text = b"\n".join([each.key.encode(), each.value, *each.log]).decode(errors="replace")
            if any(word in text for word in words) and not each.key.startswith("audit:"):
                found.append(each.key)
        return found


def _response(identifier: str) -> Any:
    from mcp_types import JSONRPCResponse

    return JSONRPCResponse(jsonrpc="2.0", id=identifier, result={"content": {"text": MARK}})


@asynccontextmanager
async def keeping(folder: Path) -> AsyncGenerator[Keeping, None]:
    """A service with a person."""
    (folder / "keys.toml").write_text(_KEYS)
    variables = {"API_KEYS_FILE": str(folder / "keys.toml"), "STATE_URL": f"sqlite:///{folder}/state.db"}
    async with OpenAIPlayer(_model) as player:
        read = configured(
            LIGHTS,
            OPENAI_BASE_URL=player.base_url,
            TOOL_MAX_CALLS_PER_SESSION="50",
            EXAMPLES_ENABLED="true",
            **variables,
        )
        app = create_app(read)
        async with serving(app, read.settings) as url, client_of(url) as client:
            yield Keeping(client, app.state.service.store)
