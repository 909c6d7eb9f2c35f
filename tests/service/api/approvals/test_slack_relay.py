"""The relay to Slack that the page shows, between the service and a player of Slack."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from tests.command_line import ROOT
from tests.service.api.approvals.desk.refund import PAID
from tests.service.api.approvals.desk_service import decisions, yes
from tests.service.api.approvals.receiver import SECRET, Receiver, bearer_of, told_desk
from tests.serving import serving
from tests.waiting import until

PAGE = (ROOT / "docs" / "approvals.md").read_text(encoding="utf-8")
_, _, SECTION = PAGE.partition("### To a channel of Slack")
RELAY = SECTION.partition("```python\n")[2].partition("\n```\n")[0]


async def test_the_relay_of_the_page_posts_a_button_that_decides_and_refuses_what_is_not_signed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    posted: list[dict[str, Any]] = []

    async def post(request: Request) -> PlainTextResponse:
        posted.append(await request.json())
        return PlainTextResponse("ok", 500 if len(posted) == 1 else 200)

    async with serving(Starlette(routes=[Route("/slack", post, methods=["POST"])])) as slack:
        monkeypatch.setenv("TOOLCHAT_SECRET", SECRET)
        monkeypatch.setenv("SLACK_WEBHOOK_URL", f"{slack}/slack")
        names: dict[str, Any] = {"__name__": "relay"}
        exec(RELAY, names)
        async with serving(names["app"]) as url:
            hook = {"APPROVALS_WEBHOOK_URL": f"{url}/approvals"}
            async with told_desk(tmp_path, Receiver(), **hook) as desk:
                await desk.ask()
                await until(lambda: len(posted) == 2)  # Slack failed once, so the service has tried again
                section, actions = posted[1]["blocks"]
                assert section["text"]["text"] == "asker asks: refund 50\nrefund {'amount': 50}"
                place, bearer = bearer_of(actions["elements"][0]["url"])
                paid = len(PAID)
                assert (await desk.client.post(place, json=decisions(yes()), headers=bearer)).status_code == 200
                assert PAID[paid:] == [("asker", 50)]
                forged = {"webhook-id": "x", "webhook-timestamp": "1", "webhook-signature": "v1,AAAA"}
                async with httpx.AsyncClient(trust_env=False, verify=False) as stranger:
                    for headers in ({}, forged):
                        answer = await stranger.post(f"{url}/approvals", content=b"{}", headers=headers)
                        assert answer.status_code == 401
    assert len(posted) == 2
