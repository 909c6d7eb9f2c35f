"""An answer belongs to who asked: neither an expired token nor an approver who leaves takes it away."""

import asyncio
import time
from pathlib import Path

import pytest

from tests.calling_as import calling_as
from tests.chat.played import EVENTS, JSON
from tests.service.access.issuer import AUDIENCE, ISSUER, Issuer
from tests.service.access.principals import as_
from tests.service.api.approvals.desk.refund import HELD, PAID
from tests.service.api.approvals.desk_service import Desk, decisions, desk_service, yes
from tests.waiting import until
from toolchat.chat.memory import current_lock
from toolchat.errors import SessionBusy
from toolchat.service.access.authentication import Authenticator
from toolchat.service.access.keys import KeyRegistry
from toolchat.service.access.principals import Principal
from toolchat.state.base import Lock


@pytest.mark.parametrize("form", [JSON, EVENTS], ids=["document", "stream"])
async def test_an_approver_who_disconnects_takes_nothing_from_who_asked(form: dict[str, str], desk: Desk) -> None:
    approval = await desk.ask("hold 50", sessionId="s-1")
    place, headers = f"/approvals/{approval['id']}", as_("lead", **form)
    leaving = asyncio.create_task(desk.client.post(place, json=decisions(yes()), headers=headers))
    await until(lambda: 50 in HELD)
    leaving.cancel()
    await asyncio.wait({leaving})
    for _ in range(5):  # the service shares this loop, so it has seen the client leave by then
        await desk.client.get("/health/live")
    HELD.discard(50)

    async def is_told() -> bool:
        return (await desk.show(approval["id"])).get("answer") == "Done: 50 held"

    await until(is_told)
    messages = (await desk.client.get("/chat/s-1", headers=as_("asker"))).json()["messages"]
    assert messages[-1]["text"] == "Done: 50 held"


async def test_an_answer_that_takes_too_long_is_told_as_failed(tmp_path: Path) -> None:
    async with desk_service(tmp_path, REQUEST_TIMEOUT="1") as desk:
        approval = await desk.ask("hold 60")
        assert (await desk.decide(approval["id"], "lead")).status_code == 504
        HELD.discard(60)
        assert (await desk.show(approval["id"]))["failure"] == "the answer was interrupted"


async def test_a_token_that_has_expired_since_it_asked_leaves_its_approval_to_be_decided(tmp_path: Path) -> None:
    issuer = Issuer()
    async with issuer.serving() as url:
        tokens = {"JWT_JWKS_URL": url, "JWT_ISSUER": ISSUER, "JWT_AUDIENCE": AUDIENCE}
        async with desk_service(tmp_path, **tokens) as desk:
            # 30 seconds are granted to clocks that differ.
            headers = as_(issuer.token(exp=time.time() - 25, tenant="acme"), **JSON)
            asked = await desk.client.get("/chat", params={"userInput": "refund 50"}, headers=headers)
            paid = len(PAID)

            async def has_expired() -> bool:
                return (await desk.client.get("/approvals", headers=headers)).status_code == 401

            await until(has_expired)
            decided = await desk.decide(asked.json()["approval"]["id"], "lead")
            assert decided.json()["tool_calls"][0]["result"] == "50 refunded by jwt:alice of acme"
            assert PAID[paid:] == [("jwt:alice", 50)]


def test_a_key_that_was_withdrawn_or_has_expired_is_not_known_and_a_token_is() -> None:
    authenticator = Authenticator(KeyRegistry({"x": Principal("shop")}))
    assert authenticator.known(Principal("shop")) == Principal("shop")
    assert authenticator.known(Principal("another")) is None
    assert authenticator.known(Principal("jwt:alice")) == Principal("jwt:alice")


async def test_a_turn_whose_conversation_was_taken_over_leaves_no_approval(desk: Desk) -> None:
    approval, approvals = await desk.ask(sessionId="s-1"), desk.service.approvals
    with calling_as("asker"):
        turn = (await approvals.find(approval["id"])).turn
        # Another request has had the conversation since.
        token = current_lock.set(Lock("memory:asker/s-1", b"expired"))
        try:
            with pytest.raises(SessionBusy):
                await approvals.save(turn, "too-late")
        finally:
            current_lock.reset(token)
    assert not await approvals.is_waiting("too-late")
