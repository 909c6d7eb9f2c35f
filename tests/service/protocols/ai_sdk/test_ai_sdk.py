"""The AI SDK's wire: the stream of parts, and what the model receives of the page's messages."""

from typing import Any

import httpx
import pytest

from tests.players.openai_player import OpenAIPlayer, delta, finish, sse
from tests.service.protocols.openai.asking import call, played
from tests.service.protocols.pages import CHAT, SHIP, SHIP_FOLDERS, TIME, asks, parts_of, says, sent, text, user
from tests.serving import service


def said(*parts: dict[str, Any]) -> dict[str, Any]:
    """An assistant message, as a page stores it."""
    return {"id": "m-2", "role": "assistant", "parts": [{"type": "step-start"}, *parts]}


def ended(state: str = "output-available", **fields: Any) -> dict[str, Any]:
    """A finished call, as a page stores it."""
    return {"type": "dynamic-tool", "toolName": "look", "toolCallId": "call_1", "state": state, "input": {}, **fields}


def decided(identifier: str, approved: bool | None) -> dict[str, Any]:
    state = "approval-requested" if approved is None else "approval-responded"
    return ended(state, toolCallId=identifier.partition("/")[2], approval={"id": identifier, "approved": approved})


def kinds(parts: list[dict[str, Any]]) -> list[str]:
    return [each["type"] for each in parts]


async def test_text_is_a_part_within_a_step_of_a_message() -> None:
    async with played([says("Hel", "lo.")]) as (client, _):
        answer = await sent(client, user("Hi"))
    assert parts_of(answer) == [
        {"type": "start"},
        {"type": "start-step"},
        {"type": "text-start", "id": "1"},
        {"type": "text-delta", "id": "1", "delta": "Hel"},
        {"type": "text-delta", "id": "1", "delta": "lo."},
        {"type": "text-end", "id": "1"},
        {"type": "finish-step"},
        {"type": "finish", "finishReason": "stop"},
    ]
    assert answer.headers["x-vercel-ai-ui-message-stream"] == "v1"


SPOKEN, CALLED = ["text-start", "text-delta", "text-end"], ["tool-input-available", "tool-output-available"]


async def test_a_call_has_its_result_and_the_next_text_starts_a_step() -> None:
    async with played([asks(TIME, content="Looking."), says("Noon.")]) as (client, _):
        parts = parts_of(await sent(client, user("What time is it in Shanghai?")))
    first = ["start-step", *SPOKEN, *CALLED, "finish-step"]
    assert kinds(parts) == ["start", *first, "start-step", *SPOKEN, "finish-step", "finish"]
    (asked,), (told,) = ([each for each in parts if each["type"] == kind] for kind in CALLED)
    shown = {"toolName": "getCityTimeFunction", "input": {"timeZoneId": "Asia/Shanghai"}}
    assert asked == {"type": CALLED[0], "toolCallId": "call_1", **shown, "dynamic": True, "providerExecuted": True}
    assert told["toolCallId"] == "call_1"
    assert told["output"].startswith("The current time zone is Asia/Shanghai")


async def test_calls_of_one_round_share_a_step() -> None:
    london = call("getCityTimeFunction", '{"timeZoneId":"Europe/London"}', "call_2")
    async with played([asks(TIME, london), asks(TIME), says("Noon.")]) as (client, _):
        parts = parts_of(await sent(client, user("?")))
    steps = " ".join(kinds(parts)).split("start-step")[1:]
    assert [[kind for kind in step.split() if kind in CALLED] for step in steps] == [
        [CALLED[0], CALLED[0], CALLED[1], CALLED[1]], CALLED, []
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "given", "words"),
    [
        (call("nobody"), {}, "there is no tool 'nobody'"),
        (call("getCityTimeFunction", "{}"), {}, "timeZoneId"),
        (call("getCityTimeFunction", "{broken"), "{broken", "JSON"),
    ],
    ids=["an unknown tool", "a missing argument", "arguments that are no JSON"],
)
async def test_a_failed_call_is_reported_as_text(asked: dict[str, Any], given: Any, words: str) -> None:
    async with played([asks(asked), says("Sorry.")], TOOL_CALL_REPAIRS="0") as (client, _):
        parts = parts_of(await sent(client, user("?")))
    told = {each["type"]: each for each in parts}
    assert told["tool-input-available"]["input"] == given
    assert words in told["tool-output-error"]["errorText"]
    assert not told["tool-output-error"]["errorText"].startswith("{")


async def test_reasoning_is_a_separate_part_before_the_text() -> None:
    script = [sse(delta(reasoning_content="2 and 2"), delta(reasoning_content=" make 4"), delta("stop", content="4"))]
    async with played(script) as (client, _):
        parts = parts_of(await sent(client, user("?")))
    assert [(each["type"], each["id"], each.get("delta")) for each in parts[2:8]] == [
        ("reasoning-start", "1", None),
        ("reasoning-delta", "1", "2 and 2"),
        ("reasoning-delta", "1", " make 4"),
        ("reasoning-end", "1", None),
        ("text-start", "2", None),
        ("text-delta", "2", "4"),
    ]


async def test_approval_is_requested_after_the_call_and_ends_the_answer() -> None:
    async with played([asks(SHIP, content="Shipping."), says("On its way.")], SHIP_FOLDERS) as (client, _):
        parts = parts_of(await sent(client, user("Ship order 1")))
        identifier = parts[6]["approvalId"]
        answer = parts_of(await sent(client, user("Ship order 1"), said(decided(identifier, True))))
    assert kinds(parts[4:]) == ["text-end", "tool-input-available", "tool-approval-request", "finish-step", "finish"]
    assert (parts[5]["input"], parts[-1]["finishReason"]) == ({"number": 1}, "tool-calls")
    assert answer[1] == {"type": "tool-output-available", "output": "shipped 1", "toolCallId": "call_1"}


@pytest.mark.parametrize("approved", [True, False])
async def test_the_named_message_continues_although_another_question_follows(approved: bool) -> None:
    asked = user("Ship order 1")
    async with played([asks(SHIP), says("Hello."), says("So be it.")], SHIP_FOLDERS) as (client, player):
        (identifier,) = [each["approvalId"] for each in parts_of(await sent(client, asked)) if "approvalId" in each]
        later = (user("Hi"), {**said(text("Hello.")), "id": "m-3"})
        await sent(client, asked, said(decided(identifier, None)), user("Hi"))
        refused = await sent(client, asked, said(decided(identifier.replace("call_1", "call_9"), True)))
        parts = parts_of(await sent(client, asked, said(decided(identifier, approved)), *later, messageId="m-2"))
    assert refused.status_code == 422
    assert parts[1]["type"] == ("tool-output-available" if approved else "tool-output-denied")
    assert ("shipped 1" in player.requests[2].body["messages"][-1]["content"]) is approved


@pytest.mark.parametrize(
    ("reason", "told"),
    [("stop", "stop"), ("length", "length"), ("content_filter", "content-filter"), ("pause_turn", "other")],
)
async def test_the_finish_reason_is_one_of_the_sdk(reason: str, told: str) -> None:
    async with played([sse(delta(content="Hel"), finish(reason))]) as (client, _):
        parts = parts_of(await sent(client, user("?")))
    assert parts[-1] == {"type": "finish", "finishReason": told}


async def test_notices_of_advisors_are_transient_data() -> None:
    async with played([says("Calm.")], "tests.service.protocols.ai_sdk.folders") as (client, _):
        parts = parts_of(await sent(client, user("?")))
    assert {"type": "data-harbour", "data": {"ships": 2}, "transient": True} in parts
    assert "text-delta" in kinds(parts)


PNG, PLAIN = ({"type": "file", "url": f"data:{kind};base64,AA=="} for kind in ("image/png", "text/plain"))
ONLY_SHOWN: list[dict[str, Any]] = [
    {"type": "reasoning", "text": "hm"},
    {"type": "data-todo", "data": {}},
    {"type": "source-url", "sourceId": "1", "url": "https://example.org"},
    ended("approval-requested", approval={"id": "x"}),
    ended("input-available"),
    ended(toolName="no such name", output=1),
    text("b"),
]
CONVERTED: dict[str, tuple[list[Any], list[Any]]] = {
    "texts of one message": ([user("Look:", "here")], [("user", "Look:\nhere")]),
    "an image, for a model without images": (
        [{"role": "user", "parts": [text("a"), PNG]}, user("b")],
        [("user", "a\n[image left out]"), ("user", "b")],
    ),
    "a file of an earlier message": (
        [{"role": "user", "parts": [text("a"), PLAIN]}, user("b")],
        [("user", "a\n[file left out: it is no image]"), ("user", "b")],
    ),
    "a call and its result": (
        [user("a"), said(text("I"), ended(input={"at": 1}, output={"x": 2}), {"type": "step-start"}, text("b"))],
        [("user", "a"), ("assistant", "I", '{"at":1}'), ("tool", '{"x":2}'), ("assistant", "b")],
    ),
    "text behind a call in one step": (
        [user("a"), said(ended(output="2"), text("b"))],
        [("user", "a"), ("assistant", "", "{}"), ("tool", "2"), ("assistant", "b")],
    ),
    "a tool that the page knows": (
        [user("a"), said({**ended(output=[1]), "type": "tool-look", "toolName": None})],
        [("user", "a"), ("assistant", "", "{}"), ("tool", "[1]")],
    ),
    "a call that failed": (
        [user("a"), said(ended("output-error", errorText="away"))],
        [("user", "a"), ("assistant", "", "{}"), ("tool", '{"error":{"message":"away"}}')],
    ),
    "a call that was rejected": (
        [user("a"), said(ended("output-denied", approval={"id": "x", "approved": False, "reason": "no"}))],
        [("user", "a"), ("assistant", "", "{}"), ("tool", '{"error":{"message":"no"}}')],
    ),
    "what only pages show": (
        [user("a"), said(*ONLY_SHOWN), user("c")],
        [("user", "a"), ("assistant", "b"), ("user", "c")],
    ),
    "empty messages": ([user("a"), user(" "), said(), user("c")], [("user", "a"), ("user", "c")]),
}


def given(player: OpenAIPlayer) -> list[Any]:
    """The last request to the model, without instructions: texts, and the arguments of calls."""
    told = [each for each in player.requests[-1].body["messages"] if each["role"] != "system"]
    arguments = [[call["function"]["arguments"] for call in each.get("tool_calls", ())] for each in told]
    return [(each["role"], each.get("content") or "", *calls) for each, calls in zip(told, arguments, strict=True)]


@pytest.mark.parametrize("case", CONVERTED)
async def test_each_message_is_converted_for_the_provider(case: str) -> None:
    messages, expected = CONVERTED[case]
    async with played([says("ok")]) as (client, player):
        parts_of(await sent(client, *messages))
    assert given(player) == expected


async def test_instructions_of_the_request_precede_those_of_its_messages() -> None:
    system = {"id": "s", "role": "system", "parts": [text("In rhymes.")]}
    async with played([says("ok")], SYSTEM_PROMPT="Be kind.") as (client, player):
        parts_of(await sent(client, system, user("Hi"), system="Be brief.", tools={}, trigger="regenerate-message"))
    assert player.requests[0].body["messages"][0]["content"] == "Be kind.\n\nBe brief.\n\nIn rhymes."


async def test_a_page_that_resumes_learns_that_nothing_runs() -> None:
    async with service() as client:
        answer = await client.get(f"{CHAT}/c-1/stream")
    assert (answer.status_code, answer.content) == (204, b"")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"messages": []}, "messages: "),
        ({"messages": None}, "messages: "),
        ({"messages": [user()]}, "messages: none has a text"),
        ({"messages": [{"role": "tool", "parts": []}]}, "messages[0].role: "),
        ({"messages": [user("a"), {"role": "user", "content": "b"}]}, "messages[1].parts: "),
        ({"messages": [user("a"), {"role": "user", "parts": [{}]}]}, "messages[1].parts[0].type: "),
        ({"messages": [{"role": "user", "parts": [text("?"), PLAIN]}]}, "messages[0].parts[1]: must be a png, jpeg"),
        ({"messages": [user("?")] * 4097}, "messages: "),
        ({"messages": [user("?"), said(ended(toolCallId="x" * 257))]}, "messages[1].parts[1].toolCallId: "),
        (
            {"messages": [user("?"), said(decided("a/b", True), decided("c/d", True))]},
            "decide about the calls of one answer",
        ),
        ({"messages": [user("?")], "tools": {"a b": {}}}, "tools"),
        ({"messages": [user("?")], "tools": {"roll": {"parameters": 5}}}, "tools.roll.parameters"),
        ({"messages": [user("?")], "tools": ["roll"]}, "tools: "),
    ],
)
async def test_an_invalid_request_gets_400_with_the_field(
    fields: dict[str, Any], words: str, offline: httpx.AsyncClient
) -> None:
    answer = await offline.post(CHAT, json=fields)
    assert (answer.status_code, answer.headers["content-type"]) == (400, "text/plain; charset=utf-8")
    assert answer.text.startswith(words)
    assert len(answer.text) < 500
    assert answer.headers["x-request-id"]


def nested(depth: int) -> Any:
    value: Any = {}
    for _ in range(depth):
        value = {"a": [value]}
    return value


HOSTILE: list[dict[str, Any]] = [
    user("\u0000"),
    user("x" * 1_000_000),
    *(said(ended(input=nested(depth), output=nested(depth))) for depth in (60, 97, 400)),
    said(ended(input=10**400, output=-(10**400))),
    said(ended(input=None, output=None)),
    said(ended(input="}{", output="\u2028")),
    said(*[ended(output="x")] * 100),
    said({"type": "tool-"}, {"type": "dynamic-tool"}, {"type": ""}, {"type": "step-start"}),
    {"role": "system", "parts": [text("?")]},
]


@pytest.mark.parametrize("message", HOSTILE, ids=range(len(HOSTILE)))
async def test_hostile_requests_never_break_the_service(message: dict[str, Any], offline: httpx.AsyncClient) -> None:
    answer = await sent(offline, user("What time is it?"), message, user("And in London?"))
    if answer.status_code != 400:
        assert parts_of(answer)[-1]["type"] == "finish"
