"""The inbox of approvals: what it shows to whom, and its pages."""

from typing import Any

import pytest

from tests.service.access.principals import as_
from tests.service.api.approvals.desk_service import Desk


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
