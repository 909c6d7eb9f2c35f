"""The record of decisions: what it has, who reads it, and that none is lost."""

import json
import logging

import pytest
from pydantic_core import to_json

from tests.service.access.principals import as_
from tests.service.api.approvals.desk_service import Desk, yes
from toolchat.service.api.audit import AuditTrail
from toolchat.state.sqlite import SqliteStateStore


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
