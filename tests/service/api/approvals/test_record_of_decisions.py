"""The inbox, and the record of what was decided."""

import json
import logging
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from pydantic_core import to_json

from tests.service.access.principals import as_
from tests.service.api.approvals.desk_service import Desk, desk_service, yes
from toolchat.service.api.audit import AuditTrail
from toolchat.state.sqlite import SqliteStateStore


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk, None]:
    async with desk_service(tmp_path) as desk:
        yield desk


def ids(page: dict[str, Any]) -> list[str]:
    return [each["id"] for each in page["approvals"]]


async def test_the_inbox_shows_what_its_reader_may_decide_or_has_asked(desk: Desk) -> None:
    mine, note, theirs = await desk.ask(), await desk.ask("note 5"), await desk.ask(name="stranger")
    large = await desk.ask("refund 5000")
    found = {name: ids(await desk.inbox(name)) for name in ("asker", "lead", "chief", "stranger", "colleague", "")}
    assert found == {
        "asker": [large["id"], note["id"], mine["id"]],
        "lead": [mine["id"]],
        "chief": [large["id"], theirs["id"], mine["id"]],
        "stranger": [theirs["id"]],
        "colleague": [],
        "": [],
    }


async def test_an_approval_is_shown_with_all_that_a_decision_needs(desk: Desk) -> None:
    await desk.ask("payOut 50")
    await desk.ask()
    shown, editable = (await desk.inbox("lead"))["approvals"]
    assert editable["calls"][0]["may_edit"] is True
    assert shown["calls"] == [
        {
            "id": "c0",
            "name": "refund",
            "arguments": {"amount": 50},
            "approver": "manager",
            "description": "Refund an order.",
            "may_edit": False,
        }
    ]
    assert (shown["asked_by"], shown["tenant"], shown["question"]) == ("asker", "acme", "refund 50")
    assert (shown["may_decide"], 0 < shown["expires_in"] <= 86_400) == (True, True)


async def test_what_waits_comes_first_and_pages_continue(desk: Desk) -> None:
    asked = [await desk.ask(f"refund {50 + number}") for number in range(5)]
    for each in asked[3:]:
        await desk.decide(each["id"], "lead")
    expected = [asked[number]["id"] for number in (2, 1, 0, 4, 3)]
    assert ids(await desk.inbox("lead")) == expected
    for size in (1, 2, 3):
        seen, page = [], await desk.inbox("lead", limit=size)
        while page["next"]:
            seen += ids(page)
            page = await desk.inbox("lead", limit=size, before=page["next"])
        assert seen + ids(page) == expected


async def test_a_reader_of_several_lists_gets_the_newest_of_all(desk: Desk) -> None:
    theirs = [await desk.ask() for _ in range(3)]
    own = [await desk.ask(name="lead") for _ in range(3)]
    newest = [each["id"] for each in (*own[::-1], *theirs[::-1])]
    assert ids(await desk.inbox("lead", limit=4)) == newest[:4]
    assert [each["may_decide"] for each in (await desk.inbox("lead"))["approvals"]] == [False] * 3 + [True] * 3


@pytest.mark.parametrize("before", ["x", "waiting:1", "waiting:1e5:x", "else:1:x"])
async def test_a_page_that_is_none_is_refused(before: str, desk: Desk) -> None:
    answer = await desk.client.get("/approvals", params={"before": before}, headers=as_("lead"))
    assert (answer.status_code, answer.json()["code"]) == (422, "validation")


async def test_each_decision_is_recorded_with_all_that_was_decided(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    changed = await desk.ask("payOut 50", sessionId="s-1")
    with caplog.at_level(logging.INFO):
        await desk.decide(changed["id"], "lead", yes(arguments={"amount": 20}))
    refused = await desk.ask()
    await desk.decide(refused["id"], "chief", {"approved": False, "reason": "sold out"})
    await desk.run("lead", key="by itself")
    text = (await desk.client.get("/audit", headers=as_("operator"))).text
    alone, rejected, approved = map(json.loads, text.splitlines())
    assert approved.pop("time").startswith("20")
    assert approved == {
        "approval": changed["id"],
        "call": "c0",
        "tool": "payOut",
        "arguments": {"amount": 50},
        "arguments_run": {"amount": 20},
        "decision": "approved",
        "reason": "",
        "by": "lead",
        "role": "manager",
        "asked_by": "asker",
        "door": "/approvals",
        "tenant": "acme",
        "session": "s-1",
    }
    assert (rejected["decision"], rejected["reason"], rejected["arguments_run"]) == ("rejected", "sold out", None)
    assert (alone["by"], alone["asked_by"], alone["door"]) == ("lead", "lead", "/tools")
    line, *_ = [each for each in caplog.records if each.getMessage() == "a call was decided"]
    assert vars(line)["decision"].items() >= {"tool": "payOut", "by": "lead", "decision": "approved"}.items()
    assert not [each for each in ("s-1", changed["id"]) if each in str(vars(line)["decision"])]


async def test_the_record_is_read_by_operators_and_by_time_tenant_and_tool(desk: Desk) -> None:
    for text, name in (("refund 50", "asker"), ("payOut 50", "stranger")):
        await desk.decide((await desk.ask(text, name))["id"], "chief")

    async def tools(**parameters: str) -> list[str]:
        answer = await desk.client.get("/audit", params=parameters, headers=as_("operator"))
        assert answer.status_code == 200
        return [json.loads(line)["tool"] for line in answer.text.splitlines()]

    assert await tools() == ["payOut", "refund"]
    assert await tools(tenant="acme") == await tools(tool="refund") == ["refund"]
    assert await tools(**{"from": "2020-01-01", "to": "2999-01-01T00:00:00Z"}) == ["payOut", "refund"]
    assert await tools(**{"from": "2999-01-01"}) == await tools(to="2020-01-01") == []
    for name, status in {"asker": 403, "chief": 403, "": 401}.items():
        assert (await desk.client.get("/audit", headers=as_(name))).status_code == status


class OneMoment(SqliteStateStore):
    """A store whose records are of three moments, and which has an exact clock."""

    async def listed(self, name: str, *, limit: int, before: float | None = None) -> list[tuple[str, bytes, float]]:
        every = [
            (str(n), to_json({"call": n}), 3.0 if n < 100 else 2.0 if n < 550 else 1.5 if n < 800 else 1.0)
            for n in range(1200)
        ]
        return [each for each in every if before is None or each[2] < before][:limit]


async def test_records_of_one_moment_come_once_each_over_all_pages() -> None:
    found = [each["call"] async for each in AuditTrail(OneMoment()).entries()]
    assert found == list(range(1200))


async def test_records_are_never_evicted() -> None:
    store = SqliteStateStore(max_bytes=50_000)
    trail = AuditTrail(store)
    for number in range(100):
        await store.commit(trail.writes([{"approval": str(number), "call": "c", "reason": "x" * 1000}]))
        await store.put(f"memory:{number}", bytes(1000), ttl=60)
    assert await store.get("memory:0") is None
    assert len([each async for each in trail.entries()]) == 100
    await store.aclose()
