"""The webhook tells of every approval that somebody else decides, whatever fails in between."""

import logging
import re
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.service.access.principals import as_
from tests.service.api.approvals.desk_service import Desk
from tests.service.api.approvals.receiver import SECRET, Receiver, told_desk
from tests.serving import configured
from tests.waiting import until
from toolchat.errors import ConfigurationError
from toolchat.service.api import approval_webhook

REQUESTED, DECIDED = "approval.requested", "approval.decided"


async def test_who_decides_is_told_what_waits_and_what_was_decided(desk: Desk, receiver: Receiver) -> None:
    approval = await desk.ask(sessionId="s-1")
    data = await receiver.wait(REQUESTED, approval["id"])
    (call,) = data["calls"]
    assert call == {
        "id": "c0",
        "name": "refund",
        "arguments": {"amount": 50},
        "approver": "manager",
        "description": "Refund an order.",
        "may_edit": False,
    }
    assert (
        data.items()
        >= {
            "status": "waiting",
            "question": "refund 50",
            "asked_by": "asker",
            "tenant": "acme",
            "may_decide": True,
            "inbox": "https://ai.example.org/approvals",
        }.items()
    )
    assert 86_000 < data["expires_in"] <= 86_400
    place, _, token = data["link"].partition("#token=")
    assert place == f"https://ai.example.org/playground/?approval={approval['id']}"
    assert re.fullmatch(r"[\w-]{43}", token)
    await desk.decide(approval["id"], "lead")
    decided = await receiver.wait(DECIDED, approval["id"])
    assert decided.items() >= {"status": "decided", "decision": "approved", "by": "lead", "may_decide": False}.items()
    assert "link" not in decided
    assert len(receiver.ids) == len(set(receiver.ids)) == 2
    assert [each["id"] for each in receiver.events] == receiver.ids


async def test_of_a_confirmation_nobody_is_told(desk: Desk, receiver: Receiver) -> None:
    confirmation, approval = await desk.ask("note 5"), await desk.ask()
    await desk.decide(confirmation["id"], "asker")
    await receiver.wait(REQUESTED, approval["id"])
    assert {each["data"]["id"] for each in receiver.events} == {approval["id"]}


async def test_an_event_is_posted_until_it_has_arrived_under_one_id(
    desk: Desk, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.answers = [500, 307, 404]
    approval = await desk.ask()
    await until(lambda: len(receiver.events) == 4)
    assert len(set(receiver.ids)) == 1
    # The link of each try is another one, since no link is stored; each of them is good for the one decision.
    assert len({each["data"].pop("link") for each in receiver.events}) == 4
    assert {each["timestamp"] for each in receiver.events} == {receiver.events[0]["timestamp"]}
    lines = [each for each in caplog.records if each.name == approval_webhook.__name__]
    assert [(each.levelno, vars(each)["reason"]) for each in lines] == [
        (logging.WARNING, "it answered with status 500")
    ]
    assert (await desk.decide(approval["id"], "lead")).status_code == 200


async def test_what_was_not_posted_is_posted_after_a_restart(receiver: Receiver, tmp_path: Path) -> None:
    state = {"STATE_URL": f"sqlite:///{tmp_path}/state.db"}
    gone = Receiver(url="http://127.0.0.1:1")
    async with told_desk(tmp_path, gone, **state) as desk:
        approval = await desk.ask()
    async with told_desk(tmp_path, receiver, **state):
        await receiver.wait(REQUESTED, approval["id"])


async def test_of_two_processes_one_posts_an_event(receiver: Receiver, tmp_path: Path) -> None:
    state = {"STATE_URL": f"sqlite:///{tmp_path}/state.db"}
    async with told_desk(tmp_path, receiver, **state) as one, told_desk(tmp_path, receiver, **state) as other:
        asked = [(await each.ask())["id"] for each in (one, other) * 4]
        for each in asked:
            await receiver.wait(REQUESTED, each)
    assert len(receiver.ids) == len(set(receiver.ids)) == 8


async def test_what_was_decided_meanwhile_is_no_longer_announced(receiver: Receiver, tmp_path: Path) -> None:
    receiver.answers = [500]
    async with told_desk(tmp_path, receiver) as desk:
        approval = await desk.ask()
        await until(lambda: receiver.events)
        receiver.answers = [500] * 100
        await desk.decide(approval["id"], "lead")
        receiver.answers = []
        await receiver.wait(DECIDED, approval["id"])
        assert receiver.events[-1]["type"] == DECIDED


async def test_an_event_that_never_arrives_is_given_up_with_one_line(
    desk: Desk, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.answers = [500] * 1000
    await desk.ask()
    await until(lambda: len(receiver.events) > 1)
    webhook, store = desk.service.approvals.webhook, desk.service.store
    assert webhook
    webhook.give_up = 0.0

    async def is_empty() -> bool:
        return not await store.listed("webhook", limit=1)

    await until(is_empty)
    lines = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert [each.getMessage() for each in lines] == ["an event for the webhook was given up"]
    metrics = (await desk.client.get("/metrics", headers=as_("operator"))).text
    assert 'toolchat_approvals_webhook_total{outcome="given up"}' in metrics


BASE = {"APPROVALS_WEBHOOK_URL": "https://hooks.example.org/x", "PUBLIC_URL": "https://ai.example.org"}
SIGNED = BASE | {"APPROVALS_WEBHOOK_SECRET": SECRET}


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        (BASE, "APPROVALS_WEBHOOK_URL needs APPROVALS_WEBHOOK_SECRET"),
        (SIGNED | {"APPROVALS_WEBHOOK_SECRET": "whsec_c2hvcnQ="}, "APPROVALS_WEBHOOK_SECRET: must be whsec_"),
        (SIGNED | {"APPROVALS_WEBHOOK_SECRET": "whsec_?"}, "APPROVALS_WEBHOOK_SECRET: must be whsec_"),
        (SIGNED | {"PUBLIC_URL": ""}, "APPROVALS_WEBHOOK_URL needs PUBLIC_URL"),
        *(
            (SIGNED | {"APPROVALS_WEBHOOK_URL": url}, "must be https and lead to a public address")
            for url in (
                "http://hooks.example.org",
                "https://localhost/x",
                "https://127.0.0.1",
                "https://10.1.2.3",
                "https://169.254.169.254/latest",
                "https://[::1]",
                "https://[::ffff:192.168.0.1]",
                "https://[fe80::1]",
                "https://100.64.0.1",
                "https://0.0.0.0",
                "https://224.0.0.1",
            )
        ),
    ],
)
def test_a_webhook_that_is_unsigned_or_points_inside_is_refused_at_the_start(
    variables: dict[str, str], told: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        configured(**variables)
    assert told in str(refused.value)


def test_a_webhook_to_the_outside_is_accepted() -> None:
    assert configured(**SIGNED).settings.approvals_webhook_url == "https://hooks.example.org/x"


async def test_a_name_that_leads_inside_is_refused_when_it_is_called_and_nobody_waits_for_it(
    receiver: Receiver, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = int(receiver.url.rpartition(":")[2])

    async def lead_inside(_: object, host: str, port: int, family: int) -> list[dict[str, Any]]:
        return [{"hostname": host, "host": "127.0.0.1", "port": port, "family": family, "proto": 0, "flags": 0}]

    monkeypatch.setattr(aiohttp.DefaultResolver, "resolve", lead_inside)
    inside = {"APPROVALS_WEBHOOK_URL": f"https://hooks.example.org:{port}", "APPROVALS_WEBHOOK_ALLOW_PRIVATE": "false"}
    async with told_desk(tmp_path, receiver, **inside) as desk:
        approval = await desk.ask()

        def lines() -> list[str]:
            return [vars(each)["reason"] for each in caplog.records if each.name == approval_webhook.__name__]

        await until(lines)
        assert "the name leads to an address that is not public: hooks.example.org" in lines()[0]
        assert (await desk.decide(approval["id"], "lead")).status_code == 200
    assert receiver.events == []


async def test_an_event_that_another_process_has_posted_meanwhile_is_not_posted_again(
    desk: Desk, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, looks = desk.service.store, list[list[tuple[str, bytes, float]]]()
    listed = store.listed

    async def list_as_before(name: str, *, limit: int, before: float | None = None) -> list[tuple[str, bytes, float]]:
        found = await listed(name, limit=limit, before=before)
        looks.append(found or (looks[-1] if looks else []))
        return looks[-1]

    monkeypatch.setattr(store, "listed", list_as_before)
    await desk.ask()
    await until(lambda: len([each for each in looks if each]) > 5)
    assert len(receiver.ids) == 1
