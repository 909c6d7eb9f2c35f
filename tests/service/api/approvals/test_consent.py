"""Tools that need the user's consent, over HTTP."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.api.guarded import guarded_service
from tests.serving import events_of
from toolchat.service.api.schemas import ChatAnswer

ASK = "/light/chat-tool-function"
JSON = {"Accept": "application/json"}
EVENTS = {"Accept": "text/event-stream"}
JSON_BODY = {"Content-Type": "application/json"}
DEEP = "[" * 500 + "]" * 500


@pytest.fixture(scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[httpx.AsyncClient, None]:
    """A client of one service for all tests here; each decides about a turn of its own."""
    async with guarded_service(tmp_path_factory.mktemp("guarded")) as client:
        yield client


async def paused(client: httpx.AsyncClient) -> tuple[str, str]:
    """A turn that waits: where it is decided, and the id of its call."""
    approval = (await client.get(ASK, headers=JSON)).json()["approval"]
    return f"/approvals/{approval['id']}", approval["calls"][0]["id"]


def decision(call: str, **fields: Any) -> dict[str, Any]:
    return {"decisions": {call: fields}}


async def assert_waits(client: httpx.AsyncClient, place: str, call: str) -> None:
    """A turn waits if it can still be decided, which ends its waiting."""
    answer = await client.post(place, json=decision(call, approved=True), headers=JSON)
    assert (answer.status_code, answer.json()["tool_calls"][0]["result"]) == (200, "on")


async def test_a_guarded_call_waits_for_consent_and_nothing_runs(client: httpx.AsyncClient) -> None:
    answer = (await client.get(ASK, headers=JSON)).json()
    ChatAnswer.model_validate(answer)
    assert (answer["finish_reason"], answer["tool_calls"]) == ("approval_required", [])
    (call,) = answer["approval"]["calls"]
    assert (call["name"], call["arguments"]) == ("switchLight", {"on": True})


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"approved": True}, {"result": "on"}),
        ({"approved": False, "reason": "it is late"}, {"error_kind": "rejected"}),
        ({"approved": True, "arguments": {"on": False}}, {"result": "off"}),
    ],
    ids=["approved", "rejected", "changed"],
)
async def test_a_decision_is_applied_to_its_call(
    fields: dict[str, Any], expected: dict[str, str], client: httpx.AsyncClient
) -> None:
    place, call = await paused(client)
    answer = (await client.post(place, json=decision(call, **fields), headers=JSON)).json()
    assert answer["tool_calls"][0].items() >= expected.items()
    assert fields.get("reason", "") in answer["answer"]


WRAPPING = '''"""An advisor that marks the results of all tools."""

from toolchat import Advisor, ToolCallback, ToolModule


class Marked(ToolCallback):
    def __init__(self, tool):
        self.definition, self.metadata, self.tool = tool.definition, tool.metadata, tool

    async def call(self, tool_input, context):
        return "marked " + await self.tool.call(tool_input, context)


class Marking(Advisor):
    order = {order}

    async def advise(self, request, chain, emit):
        return await chain.proceed(request.with_tools(tuple(map(Marked, request.tools))), emit)


module = ToolModule(advisors=(Marking,))
'''


@pytest.mark.slow
@pytest.mark.parametrize("form", [JSON, EVENTS], ids=["whole", "streamed"])
@pytest.mark.parametrize("order", [280, 350])
async def test_an_advisor_wraps_tools_after_the_approval_as_well(
    order: int, form: dict[str, str], tmp_path: Path
) -> None:
    async with guarded_service(tmp_path, {"marking": WRAPPING.replace("{order}", str(order))}) as client:
        asked = await client.get("/chat", params={"userInput": "Switch the light on"}, headers=JSON)
        approval = asked.json()["approval"]
        place, call = f"/approvals/{approval['id']}", approval["calls"][0]["id"]
        answer = await client.post(place, json=decision(call, approved=True), headers=form)
    if form == JSON:
        results = [each["result"] for each in answer.json()["tool_calls"]]
    else:
        results = [each.data["result"] for each in events_of(answer.text) if each.name == "tool_call_finished"]
    assert results == ["marked on"]


async def test_a_turn_is_decided_once(client: httpx.AsyncClient) -> None:
    place, call = await paused(client)
    await client.post(place, json=decision(call, approved=True), headers=JSON)
    again = await client.post(place, json={"decisions": {}})
    assert (again.status_code, again.json()["code"]) == (404, "already-decided")
    assert again.json()["detail"].startswith("it was decided before: approved at 20")
    shown = (await client.get(place)).json()
    assert (shown["status"], shown["decision"], shown["may_decide"]) == ("decided", "approved", False)


async def test_a_plain_text_answer_has_the_link_for_people_and_its_id_in_a_header(client: httpx.AsyncClient) -> None:
    _, call = await paused(client)
    answer = await client.get(ASK)
    identifier = answer.headers["x-approval-id"]
    link = f"{client.base_url}/playground/?approval={identifier}"
    assert answer.text == f"To approve or reject switchLight within 10 minutes, open {link}"
    await assert_waits(client, f"/approvals/{identifier}", call)


async def test_a_paused_stream_resumes_as_a_stream(client: httpx.AsyncClient) -> None:
    done = events_of((await client.get(ASK, headers=EVENTS)).text)[-1]
    approval = done.data["approval"]
    changed = decision(approval["calls"][0]["id"], approved=True, arguments={"on": False})
    resumed = await client.post(f"/approvals/{approval['id']}", json=changed, headers=EVENTS)
    assert events_of(resumed.text)[-1].data["tool_calls"][0]["result"] == "off"


@pytest.mark.parametrize(
    "fields",
    [
        '"approved": 1',
        *(f'"approved": true, "arguments": {{"on": {each}}}' for each in ("NaN", '"\\ud800"', DEEP, '"a"')),
    ],
    ids=["number", "not a number", "lone surrogate", "too deep", "not what the tool takes"],
)
async def test_an_invalid_decision_is_rejected_and_the_turn_stays_paused(
    client: httpx.AsyncClient, fields: str
) -> None:
    place, call = await paused(client)
    wrong = await client.post(place, content=f'{{"decisions": {{"{call}": {{{fields}}}}}}}', headers=JSON_BODY)
    assert (wrong.status_code, wrong.json()["code"]) == (422, "validation")
    await assert_waits(client, place, call)


async def test_a_decision_about_an_unknown_call_lists_the_waiting_calls(client: httpx.AsyncClient) -> None:
    place, call = await paused(client)
    unacceptable = await client.post(place, json=decision(call, approved=True), headers={"Accept": "image/png"})
    assert unacceptable.status_code == 406
    other = await client.post(place, json=decision("call_99", approved=True))
    assert (other.status_code, other.json()["code"]) == (422, "validation")
    assert call in other.json()["detail"]
    await assert_waits(client, place, call)


@pytest.mark.parametrize("body", [{}, {"decisions": {"a": {}}}, {"decisions": 1}, {"decisions": {}, "x": 1}], ids=str)
async def test_a_body_of_another_shape_is_refused(client: httpx.AsyncClient, body: dict[str, object]) -> None:
    wrong = await client.post("/approvals/nothing", json=body)
    assert (wrong.status_code, wrong.json()["code"]) == (422, "validation")


async def test_a_body_that_is_no_json_is_refused(client: httpx.AsyncClient) -> None:
    unread = await client.post("/approvals/x", content=b"{", headers=JSON_BODY)
    assert (unread.status_code, unread.json()["code"]) == (400, "invalid-request")
