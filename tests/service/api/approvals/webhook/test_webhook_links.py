"""The link that the webhook brings: who has it decides about one approval once, and nothing shows it to who asks."""

import asyncio
import json
import logging
from collections import Counter
from typing import Any

import pytest

from tests.chat.played import JSON
from tests.service.access.principals import alike, as_
from tests.service.api.approvals.desk.refund import PAID
from tests.service.api.approvals.desk_service import Desk, decisions, outcome_of, yes
from tests.service.api.approvals.receiver import Receiver
from tests.service.protocols.mcp_server.host import Host
from tests.service.protocols.openai.asking import COMPLETIONS
from tests.waiting import until


async def test_who_has_the_link_sees_and_decides_and_the_record_says_so(desk: Desk, receiver: Receiver) -> None:
    approval = await desk.ask(sessionId="s-1")
    place, bearer = await receiver.link(approval["id"])
    shown = await desk.client.get(place, headers=bearer)
    assert shown.json().items() >= {"status": "waiting", "may_decide": True, "asked_by": "asker"}.items()
    paid = len(PAID)
    decided = await desk.client.post(place, json=decisions(yes()), headers=bearer | JSON)
    assert decided.json()["tool_calls"][0]["result"] == "50 refunded by asker of acme"
    assert PAID[paid:] == [("asker", 50)]
    record = json.loads((await desk.client.get("/audit", headers=as_("operator"))).text)
    assert (record["door"], record["by"], record["role"]) == ("link", "webhook:127.0.0.1", "manager")
    assert (await desk.show(approval["id"]))["by"] == "webhook:127.0.0.1"


async def test_opening_the_link_decides_nothing(desk: Desk, receiver: Receiver) -> None:
    approval = await desk.ask()
    place, bearer = await receiver.link(approval["id"])
    link = receiver.events[0]["data"]["link"].removeprefix("https://ai.example.org").partition("#")[0]
    for kind in ("GET", "HEAD", "OPTIONS"):
        await desk.client.request(kind, link)
        await desk.client.request(kind, place, headers=bearer)
        await desk.client.request(kind, place)
    assert (await desk.show(approval["id"]))["status"] == "waiting"


async def test_a_stolen_link_gets_the_same_words_after_its_use_after_the_end_and_if_it_is_invented(
    desk: Desk, receiver: Receiver
) -> None:
    used, ended, by_key = [await desk.ask(sessionId=f"s-{number}") for number in range(3)]
    links = [await receiver.link(each["id"]) for each in (used, ended, by_key)]
    await desk.client.post(links[0][0], json=decisions(yes()), headers=links[0][1])
    await desk.client.delete("/chat/s-1", headers=as_("asker"))
    await desk.decide(by_key["id"], "lead", {"approved": False})
    invented = links[0][0], as_("", **{"X-Approval-Token": "x" * 43})
    answers = [
        await desk.client.request(method, place, json=body, headers=bearer)
        for place, bearer in (*links, invented)
        for method, body in (("GET", None), ("POST", decisions(yes())))
    ]
    assert {each.status_code for each in answers} == {404}
    assert all(alike(each) == alike(answers[0]) for each in answers)


async def test_a_link_is_for_its_approval_and_decides_with_no_other_role(desk: Desk, receiver: Receiver) -> None:
    approval, other = await desk.ask("payOut 50"), await desk.ask()
    place, bearer = await receiver.link(approval["id"])
    for path in (f"/approvals/{other['id']}", f"{place}x"):
        assert (await desk.client.post(path, json=decisions(yes()), headers=bearer)).status_code == 404
    listed = await desk.client.get("/approvals", headers=bearer)
    assert listed.json()["approvals"] == []
    assert (await desk.client.get("/audit", headers=bearer)).status_code == 401
    too_much = await desk.client.post(place, json=decisions(yes(arguments={"amount": 5000})), headers=bearer)
    assert outcome_of(too_much) == (403, "approval-by-another")
    changed = await desk.client.post(place, json=decisions(yes(arguments={"amount": 20})), headers=bearer | JSON)
    assert changed.json()["tool_calls"][0]["result"] == "20 paid"


async def test_of_twenty_approvers_with_one_link_one_decides(desk: Desk, receiver: Receiver) -> None:
    # Without a conversation, whose lock would let the decisions in one by one.
    body = {"model": "toolchat", "messages": [{"role": "user", "content": "refund 50"}]}
    approval = (await desk.client.post(COMPLETIONS, json=body, headers=as_("asker"))).json()["approval"]
    place, bearer = await receiver.link(approval["id"])
    claim, all_found, paid = desk.service.approvals.claim, asyncio.Barrier(20), len(PAID)

    async def claim_together(*given: Any) -> None:
        await all_found.wait()
        await claim(*given)

    desk.service.approvals.claim = claim_together  # type: ignore[method-assign, assignment]
    made = [desk.client.post(place, json=decisions(yes()), headers=bearer) for _ in range(20)]
    answers = await asyncio.gather(*made)
    assert Counter(map(outcome_of, answers)) == {(200, ""): 1, (404, "not-found"): 19}
    assert PAID[paid:] == [("asker", 50)]
    assert len((await desk.client.get("/audit", headers=as_("operator"))).text.splitlines()) == 1


async def test_no_answer_log_or_model_has_the_link_and_the_store_has_a_hash(
    desk: Desk, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[str] = []
    with caplog.at_level(logging.DEBUG):
        approval = await desk.ask(sessionId="s-1")
        place, bearer = await receiver.link(approval["id"])
        token = bearer["X-Approval-Token"]
        body = {"model": "toolchat", "messages": [{"role": "user", "content": "refund 50"}]}
        seen.append((await desk.client.post(COMPLETIONS, json=body, headers=as_("asker"))).text)
        host = Host(desk.client, elicitation={"form": {}})
        asked = await host.ask("tools/call", as_("asker"), name="ask", arguments={"question": "refund 50"})
        seen += [asked.text, str(approval), (await desk.run("asker")).text]
        for path in (place, "/approvals", "/sessions"):
            seen += [(await desk.client.get(path, headers=as_(name))).text for name in ("asker", "lead")]
        seen.append((await desk.client.post(place, json=decisions(yes()), headers=bearer | JSON)).text)
        seen += [(await desk.client.get(path, headers=as_("asker"))).text for path in (place, "/chat/s-1")]
    assert not [text for text in (*seen, caplog.text, repr([vars(each) for each in caplog.records])) if token in text]
    assert not [text for text in seen if "#token=" in text]
    stored = [each.value async for each in desk.service.store.records()]
    assert stored
    assert not [value for value in stored if token.encode() in value]


async def test_who_decided_by_a_link_gets_no_token_to_confirm_for_who_asked(desk: Desk, receiver: Receiver) -> None:
    approval = await desk.ask("refund 51")
    place, bearer = await receiver.link(approval["id"])
    answer = await desk.client.post(place, json=decisions(yes()), headers=bearer | JSON)
    assert "confirm 1" in answer.text
    following = answer.json()["approval"]
    assert "token" not in following
    assert "#token=" not in answer.text
    assert (await desk.decide(following["id"], "asker")).status_code == 200


@pytest.mark.slow(seconds=3)
async def test_a_link_ends_when_the_approval_expires(desk: Desk, receiver: Receiver) -> None:
    desk.service.approvals.approver_ttl = 3.0
    approval = await desk.ask()
    place, bearer = await receiver.link(approval["id"])

    async def is_over() -> bool:
        answer = await desk.client.post(place, json={"decisions": {"none": yes()}}, headers=bearer)
        return answer.status_code == 404

    await until(is_over)
    assert outcome_of(await desk.client.get(place, headers=bearer)) == (404, "not-found")
