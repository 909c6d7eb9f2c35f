"""A decision counts once, by the rights of the moment, and for who asked."""

import asyncio
from collections import Counter
from typing import Any

from tests.calling_as import calling_as
from tests.service.access.principals import as_
from tests.service.api.approvals.desk.refund import PAID
from tests.service.api.approvals.desk_service import Desk, decisions, outcome_of, write_keys, yes
from tests.service.protocols.openai.asking import COMPLETIONS
from tests.waiting import until


async def test_of_twenty_decisions_at_once_one_counts_and_runs_once(desk: Desk) -> None:
    # Without a conversation, whose lock would let the decisions in one by one.
    body = {"model": "toolchat", "messages": [{"role": "user", "content": "refund 50"}]}
    approval = (await desk.client.post(COMPLETIONS, json=body, headers=as_("asker"))).json()["approval"]
    paid, names = len(PAID), ["lead", "chief", "approver", "lead"] * 5
    claim, all_found = desk.service.approvals.claim, asyncio.Barrier(len(names))

    async def claim_together(*given: Any) -> None:
        await all_found.wait()
        await claim(*given)

    desk.service.approvals.claim = claim_together  # type: ignore[method-assign, assignment]
    rejecting = {"approved": False}
    made = [desk.decide(approval["id"], name, rejecting if n % 2 else yes()) for n, name in enumerate(names)]
    answers = await asyncio.gather(*made)
    assert Counter(map(outcome_of, answers)) == {(200, ""): 1, (404, "already-decided"): 19}
    (won,) = [number for number, each in enumerate(answers) if each.status_code == 200]
    shown = await desk.show(approval["id"])
    assert (shown["by"], shown["decision"]) == (names[won], "rejected" if won % 2 else "approved")
    assert len(PAID) == paid + (won % 2 == 0)
    records = (await desk.client.get("/audit", headers=as_("operator"))).text.splitlines()
    assert len(records) == 1


async def test_who_asked_learns_what_came_of_it(desk: Desk) -> None:
    alone, in_session = await desk.ask(), await desk.ask(sessionId="s-1")
    assert (await desk.show(alone["id"])).items() >= {"status": "waiting", "may_decide": False}.items()
    await desk.decide(alone["id"], "lead")
    told = "Done: 50 refunded by asker of acme"
    for name in ("asker", "lead"):
        shown = await desk.show(alone["id"], name)
        assert (shown["status"], shown["by"], shown["answer"]) == ("decided", "lead", told)
    await desk.decide(in_session["id"], "lead", {"approved": False, "reason": "sold out"})
    shown = await desk.show(in_session["id"])
    assert (shown["decision"], shown["reason"]) == ("rejected", "sold out")
    assert "sold out" in shown["answer"]
    # The conversation is that of who asked, and of nobody else.
    messages = (await desk.client.get("/chat/s-1", headers=as_("asker"))).json()["messages"]
    assert "sold out" in messages[-1]["text"]
    assert (await desk.client.get("/chat/s-1", headers=as_("lead"))).status_code == 404


async def test_the_conversation_tells_who_has_approved(desk: Desk) -> None:
    approval = await desk.ask(sessionId="s-1")
    await desk.decide(approval["id"], "lead")
    last = (await desk.client.get("/chat/s-1", headers=as_("asker"))).json()["messages"][-1]
    assert last["tool_calls"][0].items() >= {"approved_by": "lead", "outcome": "ok"}.items()


async def test_who_has_lost_the_role_no_longer_decides(desk: Desk) -> None:
    approval = await desk.ask()
    write_keys(desk.keys, lead='roles = ["ask"]\ntenant = "acme"')

    async def is_refused() -> bool:
        return (await desk.client.get(f"/approvals/{approval['id']}", headers=as_("lead"))).status_code == 404

    await until(is_refused)
    assert (await desk.decide(approval["id"], "lead")).status_code == 404


async def test_a_role_that_is_lost_while_the_decision_waits_does_not_count(desk: Desk) -> None:
    approval = await desk.ask(sessionId="s-1")
    known, paid = desk.service.approvals.known, len(PAID)
    asked: list[str] = []

    def lost(principal: object) -> object:
        asked.append(getattr(principal, "name", ""))
        # The second time is when the turn is claimed.
        return None if asked.count("lead") == 2 else known(principal)  # type: ignore[arg-type]

    desk.service.approvals.known = lost  # type: ignore[assignment]
    assert (await desk.decide(approval["id"], "lead")).status_code == 404
    desk.service.approvals.known = known
    assert (asked.count("lead"), len(PAID)) == (2, paid)
    assert (await desk.decide(approval["id"], "lead")).status_code == 200


async def test_nothing_runs_for_a_key_that_was_withdrawn(desk: Desk) -> None:
    approval = await desk.ask()
    paid = len(PAID)
    write_keys(desk.keys, asker='roles = ["operate"]\ntenant = "acme"')

    async def is_withdrawn() -> bool:
        return (await desk.client.get("/chat", headers=as_("asker"))).status_code == 403

    await until(is_withdrawn)
    answer = await desk.decide(approval["id"], "lead")
    assert outcome_of(answer) == (403, "forbidden")
    assert "the key that asked was withdrawn, has expired or may not ask any more" in answer.text
    assert len(PAID) == paid
    assert (await desk.show(approval["id"], "lead"))["status"] == "waiting"


async def test_a_token_of_a_link_acts_for_who_asked_and_so_never_decides(desk: Desk) -> None:
    approval = await desk.ask()
    with calling_as("asker"):
        token = await desk.service.approvals.tokens.issue(approval["id"], 60)
    bearer = as_("", **{"X-Approval-Token": token})
    place = f"/approvals/{approval['id']}"
    refused = await desk.client.post(place, json=decisions(yes()), headers=bearer)
    assert outcome_of(refused) == (403, "approval-by-another")
    assert (await desk.decide(approval["id"], "lead")).status_code == 200


async def test_a_tool_runs_with_the_rights_and_for_the_tenant_of_who_asked(desk: Desk) -> None:
    approval = await desk.ask()
    answer = (await desk.decide(approval["id"], "chief")).json()
    assert answer["tool_calls"][0]["result"] == "50 refunded by asker of acme"
