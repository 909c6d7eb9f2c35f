"""A support desk with keys for everybody who has a part in a refund."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from pydantic_core import to_json

from tests.chat.played import JSON, USAGE, asks
from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, message, whole
from tests.service.access.principals import as_
from tests.serving import client_of, configured, serving
from toolchat.service.access.keys import digest_of
from toolchat.service.api.service import ServiceState
from toolchat.service.main import create_app
from toolchat.service.settings.service_settings import Tuning

__all__ = ["BODY", "KEYS", "Desk", "decisions", "desk_service", "outcome_of", "write_keys", "yes"]

DESK = "tests.service.api.approvals.desk"
KEYS = {
    "asker": 'roles = ["ask"]\ntenant = "acme"',
    "colleague": 'roles = ["ask"]\ntenant = "acme"',
    "lead": 'roles = ["ask", "manager"]\ntenant = "acme"',
    "chief": 'roles = ["manager", "director"]',
    "stranger": 'roles = ["ask", "manager", "approve"]\ntenant = "other"',
    "approver": 'roles = ["approve"]',
    "operator": 'roles = ["operate"]',
}


def desk_model(request: PlayedRequest) -> Answer:
    """A model that calls the tool that the question names with its amount, and tells the result; it notes 51 first."""
    last = request.body["messages"][-1]
    if last["role"] == "tool" and last["content"].startswith("51 refunded"):
        return whole(message("tool_calls", USAGE, **asks(("note", {"amount": 1}), text="confirm 1")))
    if last["role"] == "tool":
        return whole(message(content=f"Done: {last['content']}"))
    name, amount = last["content"].split()
    return whole(message("tool_calls", USAGE, **asks((name, {"amount": int(amount)}))))


def yes(**fields: Any) -> dict[str, Any]:
    return {"approved": True, **fields}


def decisions(decision: dict[str, Any], call: str = "c0") -> dict[str, Any]:
    return {"decisions": {call: decision}}


@dataclass
class Desk:
    client: httpx.AsyncClient
    keys: Path
    service: ServiceState

    async def ask(self, text: str = "refund 50", name: str = "asker", **more: str) -> dict[str, Any]:
        """The approval that an answer waits for."""
        answer = await self.client.get("/chat", params={"userInput": text, **more}, headers=as_(name, **JSON))
        assert answer.status_code == 200, answer.text
        approval: dict[str, Any] = answer.json()["approval"]
        return approval

    async def decide(self, approval: str, name: str, decision: dict[str, Any] | None = None) -> httpx.Response:
        body = decisions(decision or yes())
        return await self.client.post(f"/approvals/{approval}", json=body, headers=as_(name, **JSON))

    async def show(self, approval: str, name: str = "asker") -> dict[str, Any]:
        answer = await self.client.get(f"/approvals/{approval}", headers=as_(name))
        assert answer.status_code == 200, answer.text
        document: dict[str, Any] = answer.json()
        return document

    async def inbox(self, name: str, **parameters: Any) -> dict[str, Any]:
        answer = await self.client.get("/approvals", params=parameters, headers=as_(name))
        assert answer.status_code == 200, answer.text
        page: dict[str, Any] = answer.json()
        return page

    async def run(self, name: str, amount: int = 50, key: str = "once") -> httpx.Response:
        headers = as_(name, **{"Idempotency-Key": key})
        return await self.client.post("/tools/refund", content=to_json({"amount": amount}), headers=headers | BODY)


BODY = {"Content-Type": "application/json"}


NOBODY = "no answer waits for approval under this id; it was decided before, or has expired"


def outcome_of(answer: httpx.Response) -> tuple[int, str]:
    """The status and the code of an answer."""
    if answer.status_code == 200:
        return 200, ""
    if "json" not in answer.headers["content-type"]:  # for useChat, which shows the text
        code = "approval-by-another" if "must decide about refund; the one who asked cannot" in answer.text else ""
        codes = {"this needs the role ask": "forbidden", NOBODY: "not-found"}
        return answer.status_code, codes.get(answer.text, code)
    document = answer.json()
    return answer.status_code, (document.get("code") or document["error"]["code"]).replace("_", "-")


def write_keys(file: Path, **changed: str) -> None:
    """Write the key file; each key is its name."""
    entries = [f'[[keys]]\nname = "{n}"\nsha256 = "{digest_of(n)}"\n{more}\n' for n, more in (KEYS | changed).items()]
    file.write_text("".join(entries))


@asynccontextmanager
async def desk_service(folder: Path, *parts: Tuning, **variables: str) -> AsyncGenerator[Desk, None]:
    write_keys(folder / "keys.toml")
    keys = {"API_KEYS_FILE": str(folder / "keys.toml"), "TRUSTED_PROXIES": "127.0.0.1", "ALLOW_ANONYMOUS": "true"}
    async with OpenAIPlayer(desk_model) as player:
        read = configured(DESK, *parts, OPENAI_BASE_URL=player.base_url, **keys, **variables)
        app = create_app(read)
        async with serving(app, read.settings) as url, client_of(url) as client:
            yield Desk(client, folder / "keys.toml", app.state.service)
