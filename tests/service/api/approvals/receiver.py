"""Receives what the webhook of approvals posts, and checks its signature as the specification says."""

import base64
import hashlib
import hmac
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic_core import from_json
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from tests.service.access.principals import as_
from tests.service.api.approvals.desk_service import Desk, desk_service
from tests.serving import serving
from tests.waiting import until
from toolchat.service.settings.service_settings import Tuning

__all__ = ["SECRET", "Receiver", "bearer_of", "receiving", "told_desk"]

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()


@dataclass
class Receiver:
    url: str = ""
    answers: list[int] = field(default_factory=list)
    """The statuses of the next answers; afterwards 204."""
    events: list[dict[str, Any]] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)

    async def receive(self, request: Request) -> Response:
        body = await request.body()
        sent = request.headers
        text = f"{sent['webhook-id']}.{sent['webhook-timestamp']}.{body.decode()}".encode()
        signature = base64.b64encode(hmac.new(bytes(range(32)), text, hashlib.sha256).digest()).decode()
        assert sent["webhook-signature"] == f"v1,{signature}"
        self.events.append(from_json(body))
        self.ids.append(sent["webhook-id"])
        status = self.answers.pop(0) if self.answers else 204
        return RedirectResponse(f"{self.url}/elsewhere") if status == 307 else Response(status_code=status)

    async def wait(self, kind: str, approval: str) -> dict[str, Any]:
        """What an event of this kind tells of an approval."""

        def found() -> list[dict[str, Any]]:
            return [each for each in self.events if (each["type"], each["data"]["id"]) == (kind, approval)]

        await until(found)
        data: dict[str, Any] = found()[-1]["data"]
        return data

    async def link(self, approval: str) -> tuple[str, dict[str, str]]:
        """Where an approval is decided, and the headers of who has its link."""
        return bearer_of((await self.wait("approval.requested", approval))["link"])


def bearer_of(link: str) -> tuple[str, dict[str, str]]:
    parts = urlsplit(link)
    return (
        f"/approvals/{parts.query.removeprefix('approval=')}",
        as_("", **{"X-Approval-Token": parts.fragment.removeprefix("token=")}),
    )


@asynccontextmanager
async def receiving() -> AsyncGenerator[Receiver, None]:
    receiver = Receiver()
    app = Starlette(routes=[Route("/{path:path}", receiver.receive, methods=["POST"])])
    async with serving(app) as url:
        receiver.url = url
        yield receiver


@asynccontextmanager
async def told_desk(folder: Path, receiver: Receiver, **variables: str) -> AsyncGenerator[Desk, None]:
    """The support desk that tells a receiver of its approvals, and tries again soon."""
    settings = {
        "APPROVALS_WEBHOOK_URL": f"{receiver.url}/hook",
        "APPROVALS_WEBHOOK_SECRET": SECRET,
        "APPROVALS_WEBHOOK_ALLOW_PRIVATE": "true",
        "PUBLIC_URL": "https://ai.example.org",
    }
    async with desk_service(folder, Tuning(webhook_pause=0.05), **settings | variables) as desk:
        yield desk
