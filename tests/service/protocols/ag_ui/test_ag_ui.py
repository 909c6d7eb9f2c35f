"""AG-UI's wire: the events of a run, and what the model receives of the page's messages."""

from typing import Any

import httpx
import pytest

from tests.players.openai_player import delta, finish, sse
from tests.service.protocols.openai.asking import call, played
from tests.service.protocols.pages import RUN, SHIP, SHIP_FOLDERS, SIDES, TIME, AgUiPage, asks, events_of, run, says

SUCCESS = {"type": "success"}
DIE = call("roll", '{"sides":6}', "call_2")
ROLL = {"name": "roll", "description": "Roll a die", "parameters": SIDES}
START, END = "STEP_STARTED", "STEP_FINISHED"
TEXT = ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]
CALL = ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END"]


def user(content: Any) -> dict[str, Any]:
    return {"id": "m-1", "role": "user", "content": content}


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return [each["type"] for each in events]


def told(player: Any, index: int = -1) -> list[Any]:
    return [each for each in player.requests[index].body["messages"] if each["role"] != "system"]


async def test_text_is_a_message_within_a_run() -> None:
    async with played([says("Hel", "lo.")]) as (client, _):
        events = events_of(await run(client, user("Hi")))
    (identifier,) = {each["messageId"] for each in events if "messageId" in each}
    assert events[1:] == [
        {"type": "STEP_STARTED", "stepName": "round 1"},
        {"type": "TEXT_MESSAGE_START", "messageId": identifier, "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": identifier, "delta": "Hel"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": identifier, "delta": "lo."},
        {"type": "TEXT_MESSAGE_END", "messageId": identifier},
        {"type": "STEP_FINISHED", "stepName": "round 1"},
        {"type": "RUN_FINISHED", "threadId": "t-1", "runId": "r-1", "outcome": SUCCESS},
    ]


async def test_each_round_is_a_step_whose_calls_have_their_results_and_belong_to_its_message() -> None:
    async with played([asks(TIME, content="Looking."), says("Noon.")]) as (client, _):
        events = events_of(await run(client, user("What time is it in Shanghai?")))
    steps = [START, *TEXT, *CALL, "TOOL_CALL_RESULT", END, START, *TEXT, END]
    assert kinds(events) == ["RUN_STARTED", *steps, "RUN_FINISHED"]
    assert [each["stepName"] for each in events if "stepName" in each] == [*["round 1"] * 2, *["round 2"] * 2]
    first, started, arguments, result, second = events[2], events[5], events[6], events[8], events[11]
    assert (started["toolCallName"], started["parentMessageId"]) == ("getCityTimeFunction", first["messageId"])
    assert arguments["delta"] == '{"timeZoneId":"Asia/Shanghai"}'
    assert (result["toolCallId"], result["role"]) == (started["toolCallId"], "tool")
    assert result["content"].startswith("The current time zone is Asia/Shanghai")
    assert second["messageId"] != first["messageId"]


async def test_calls_with_the_same_id_of_the_model_stay_apart_and_go_back_as_the_model_named_them() -> None:
    script = [asks(TIME), asks(TIME), says("Noon."), asks(TIME), says("One."), says("Bye.")]
    async with played(script) as (client, player):
        page = AgUiPage(client)
        for question in ("Time?", "And now?", "Thanks"):
            await page.ask(question)
    calls = [each for each in told(player) if each.get("tool_calls")]
    assert [[one["id"] for one in each["tool_calls"]] for each in calls] == [["call_1"]] * 3
    assert [each["role"] for each in told(player)][:7] == [*("user", *["assistant", "tool"] * 2), "assistant", "user"]


async def test_reasoning_is_a_message_of_its_own_and_does_not_come_back() -> None:
    script = [sse(delta(reasoning_content="2 and 2"), delta("stop", content="4")), says("ok")]
    async with played(script) as (client, player):
        events = events_of(await run(client, user("?")))
        thought = {"id": "m-2", "role": "reasoning", "content": "2 and 2"}
        shown = {"id": "m-3", "role": "activity", "activityType": "PLAN", "content": {"steps": []}}
        await run(client, user("?"), thought, shown, {"id": "m-4", "role": "assistant", "content": "4"}, user("!"))
    message = [f"REASONING_MESSAGE_{each}" for each in ("START", "CONTENT", "END")]
    assert kinds(events)[1:-1] == [START, "REASONING_START", *message, "REASONING_END", *TEXT, END]
    assert [each["content"] for each in told(player)] == ["?", "4", "!"]


async def test_a_call_that_needs_approval_interrupts_the_run() -> None:
    async with played([asks(SHIP, content="Shipping.")], SHIP_FOLDERS) as (client, _):
        page = AgUiPage(client)
        await page.ask("Ship order 1")
    (interrupt,) = page.events[-1]["outcome"]["interrupts"]
    started = next(each for each in page.events if each["type"] == "TOOL_CALL_START")
    assert (interrupt["reason"], interrupt["toolCallId"]) == ("tool_call", started["toolCallId"])
    assert {"message", "responseSchema", "expiresAt"} < interrupt.keys()


@pytest.mark.parametrize(
    ("decision", "words"),
    [
        ({"status": "resolved", "payload": {"approved": True, "editedArgs": {"number": 2}}}, "shipped 2"),
        ({"status": "cancelled"}, "rejected"),
    ],
    ids=["edited", "cancelled"],
)
async def test_the_model_learns_the_decision(decision: dict[str, Any], words: str) -> None:
    async with played([asks(SHIP), says("So be it.")], SHIP_FOLDERS) as (client, player):
        page = AgUiPage(client)
        await page.ask("Ship order 1")
        await page.send(resume=[decision | {"interruptId": each} for each in page.pending])
    assert words in told(player)[-1]["content"]
    assert page.events[-1]["outcome"] == SUCCESS


async def test_another_question_instead_of_a_decision_is_answered() -> None:
    async with played([asks(SHIP), says("Hello.")], SHIP_FOLDERS) as (client, player):
        page = AgUiPage(client)
        await page.ask("Ship order 1")
        await page.ask("Hi", resume=[{"interruptId": each, "status": "cancelled"} for each in page.pending])
    assert [each["content"] for each in told(player)] == ["Ship order 1", "Hi"]


async def test_what_only_the_provider_understands_comes_back_with_the_result_of_the_page() -> None:
    asked = sse(delta(reasoning_content="A die."), delta(tool_calls=[{"index": 0, **DIE}]), finish("tool_calls"))
    async with played([asked, says("Done.")], OPENAI_MODEL="deepseek-reasoner") as (client, player):
        page = AgUiPage(client, has_tool=True)
        await page.ask("Roll")
        await page.roll()
    assert told(player)[1]["reasoning_content"] == "A die."


async def test_the_model_reads_the_context_and_the_state_of_the_page_before_its_instructions() -> None:
    context = [{"description": "The selected row", "value": '{"id":7}'}]
    instructions = [{"id": "s", "role": role, "content": f"Be {role}."} for role in ("system", "developer")]
    async with played([says("ok")] * 3, SYSTEM_PROMPT="Be kind.") as (client, player):
        await run(client, *instructions, user("Hi"), context=context)
        await run(client, user("Hi"), state={"selected": [7]}, forwardedProps={"selected": 8})
        await run(client, user("Hi"), state={})
    assert [each.body["messages"][0]["content"] for each in player.requests] == [
        'Be kind.\n\nThe selected row:\n{"id":7}\n\nBe system.\n\nBe developer.',
        'Be kind.\n\nThe state of the page:\n{"selected":[7]}',
        "Be kind.",
    ]


A, B = "https://example.org/a.png", "https://example.org/b.png"


async def test_an_image_goes_to_a_model_that_takes_it() -> None:
    parts: list[Any] = [
        {"type": "text", "text": "See"},
        {"type": "image", "source": {"type": "data", "value": "AA==", "mimeType": "image/png"}},
        {"type": "image", "source": {"type": "url", "value": A}},
        {"type": "binary", "mimeType": "image/gif", "filename": "a.gif", "data": "AA=="},  # before 1.0
        {"type": "binary", "mimeType": "image/png", "url": B},
    ]
    async with played([says("ok")], OPENAI_IMAGES="true") as (client, player):
        events_of(await run(client, user(parts)))
    urls = [each["image_url"]["url"] for each in told(player)[0]["content"][1:]]
    assert urls == ["data:image/png;base64,AA==", A, "data:image/gif;base64,AA==", B]


async def test_calls_without_a_result_and_all_results_but_the_last_of_a_call_are_left_out() -> None:
    # CopilotKit adds the user's decision as a result of its own before the one of the call.
    called = {"id": "x", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    history: list[dict[str, Any]] = [
        {"id": "a", "role": "assistant", "content": "Hm.", "toolCalls": [called, called | {"id": "y"}]},
        {"id": "p", "role": "tool", "toolCallId": "y", "content": '{"approved":true}'},
        {"id": "t", "role": "tool", "toolCallId": "y", "content": "away"},
        {"id": "t", "role": "tool", "toolCallId": "z", "content": "?"},
    ]
    async with played([says("ok")]) as (client, player):
        events_of(await run(client, user("Look"), *history, user("Hi")))
    assert [call["id"] for call in told(player)[1]["tool_calls"]] == ["y"]
    assert [each["content"] for each in told(player)[2:]] == ["away", "Hi"]


@pytest.mark.parametrize(("reason", "result"), [("stop", None), ("length", {"finishReason": "length"})])
async def test_a_cut_answer_says_so_and_notices_of_advisors_are_custom_events(reason: str, result: Any) -> None:
    script = [sse(delta(content="Hel"), finish(reason))]
    async with played(script, "tests.service.protocols.ai_sdk.folders") as (client, _):
        events = events_of(await run(client, user("?")))
    assert events[-1].get("result") == result
    assert {"type": "CUSTOM", "name": "harbour", "value": {"ships": 2}} in events


FILE = {"type": "document", "source": {"type": "data", "value": "AA==", "mimeType": "application/pdf"}}
PDF = {"type": "binary", "mimeType": "application/pdf", "data": "AA=="}
SVG = {"type": "image", "source": {"type": "data", "value": "AA==", "mimeType": "image/svg+xml"}}
CALLED = {"id": "", "type": "function", "function": {"name": "look", "arguments": "{}"}}
ENTRY = {"interruptId": "x/y", "status": "resolved"}
TWO_TURNS = [{"interruptId": each, "status": "cancelled"} for each in ("a/b", "c/d")]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"messages": []}, "messages: none has a text"),
        ({"messages": None}, "messages: "),
        ({"messages": [user(" ")]}, "messages[0].content: must not be blank"),
        ({"messages": [user([FILE])]}, "messages[0].content[0]: document is not supported"),
        ({"messages": [user([{"type": "text", "text": "?"}, PDF])]}, "messages[0].content[1]: binary is not supported"),
        ({"messages": [user([SVG])]}, "messages[0].content[0]: image is not supported"),
        ({"messages": [{"id": "m", "role": "robot", "content": "?"}]}, "messages[0].role: "),
        ({"messages": [user("?"), {"role": "assistant", "toolCalls": [CALLED]}]}, "messages[1].toolCalls[0].id: "),
        ({"messages": [user("?")] * 4097}, "messages: "),
        ({"threadId": None}, "threadId: "),
        ({"tools": [ROLL, ROLL]}, "tools: the name roll occurs twice"),
        ({"tools": [ROLL | {"name": "a b"}]}, "tools[0].name: "),
        ({"context": [{"description": "x"}]}, "context[0].value: "),
        ({"resume": [ENTRY]}, "resume: a resolved interrupt needs a payload"),
        ({"resume": [ENTRY | {"payload": {"approved": "yes"}}]}, "resume[0].payload.approved: "),
        ({"resume": TWO_TURNS, "messages": []}, "decide about the calls of one answer only"),
    ],
)
async def test_an_invalid_request_gets_400_with_the_field(
    fields: dict[str, Any], words: str, offline: httpx.AsyncClient
) -> None:
    body = {"threadId": "t-1", "runId": "r-1", "messages": [user("?")]} | fields
    answer = await offline.post(RUN, json=body)
    assert (answer.status_code, answer.headers["content-type"]) == (400, "application/problem+json")
    assert answer.json()["detail"].startswith(words)
    assert answer.json()["code"] == "invalid-request"
