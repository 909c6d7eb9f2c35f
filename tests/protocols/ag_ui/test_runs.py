"""Runs: their events, and what the model receives of the page's messages."""

from typing import Any

import pytest

from tests.players.openai_player import delta, finish, sse
from tests.protocols.ag_ui.asking import ROLL, Page, asks, call, events_of, kinds, played, says, sent, user

TIME = call("getCityTimeFunction", '{"timeZoneId":"Asia/Shanghai"}')
SUCCESS = {"type": "success"}
DIE = call("roll", '{"sides":6}', "call_2")
START, END = "STEP_STARTED", "STEP_FINISHED"
TEXT = ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]
CALL = ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END"]


def told(player: Any, index: int = -1) -> list[Any]:
    return [each for each in player.requests[index].body["messages"] if each["role"] != "system"]


async def test_text_is_a_message_within_a_run() -> None:
    async with played([says("Hel", "lo.")]) as (client, player):
        answer = await sent(client, user("Hi"))
    events = events_of(answer)
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
    assert told(player) == [{"role": "user", "content": "Hi"}]
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert "x-session-id" not in answer.headers


async def test_each_round_is_a_step_whose_calls_have_their_results_and_belong_to_its_message() -> None:
    async with played([asks(TIME, content="Looking."), says("Noon.")]) as (client, _):
        events = events_of(await sent(client, user("What time is it in Shanghai?")))
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
        page = Page(client)
        await page.run(user("Time?"))
        await page.run(user("And now?"))
        await page.run(user("Thanks"))
    calls = [each for each in told(player) if each.get("tool_calls")]
    assert [[one["id"] for one in each["tool_calls"]] for each in calls] == [["call_1"]] * 3
    assert [each["role"] for each in told(player)][:7] == [*("user", *["assistant", "tool"] * 2), "assistant", "user"]


async def test_reasoning_is_a_message_of_its_own_and_does_not_come_back() -> None:
    script = [sse(delta(reasoning_content="2 and 2"), delta("stop", content="4")), says("ok")]
    async with played(script) as (client, player):
        events = events_of(await sent(client, user("?")))
        thought = {"id": "m-2", "role": "reasoning", "content": "2 and 2"}
        shown = {"id": "m-3", "role": "activity", "activityType": "PLAN", "content": {"steps": []}}
        await sent(client, user("?"), thought, shown, {"id": "m-4", "role": "assistant", "content": "4"}, user("!"))
    message = ["REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_END"]
    assert kinds(events)[1:-1] == [START, "REASONING_START", *message, "REASONING_END", *TEXT, END]
    assert [each["content"] for each in told(player)] == ["?", "4", "!"]


@pytest.mark.parametrize("script", [[asks(TIME, DIE)], None], ids=["one", "two"])
async def test_the_page_runs_its_tool_and_the_answer_goes_on_with_what_the_service_has_done(script: Any) -> None:
    script = script or [asks(TIME), asks(DIE)]
    async with played([*script, says("Done.")]) as (client, player):
        page = Page(client, tools=[ROLL])
        ended = await page.run(user("Roll"))
        started = [each for each in page.events if each.get("toolCallName") == "roll"]
        (pending,) = [each["toolCallId"] for each in started]
        await page.run({"id": "m-9", "role": "tool", "toolCallId": pending, "content": "4"})
    assert ended["outcome"] == SUCCESS
    assert [each["delta"] for each in page.events if "delta" in each] == ["Done."]
    offered = {each["function"]["name"]: each["function"] for each in player.requests[0].body["tools"]}
    assert (offered["roll"]["description"], offered["roll"]["parameters"]) == ("Roll a die", ROLL["parameters"])
    assert "getCityTimeFunction" in offered
    results = [each["content"] for each in told(player) if each["role"] == "tool"]
    assert (results[0].startswith("The current time zone"), results[1:]) == (True, ["4"])


async def test_what_only_the_provider_understands_comes_back_with_the_result_of_the_page() -> None:
    asked = sse(delta(reasoning_content="A die."), delta(tool_calls=[{"index": 0, **DIE}]), finish("tool_calls"))
    async with played([asked, says("Done.")], OPENAI_MODEL="deepseek-reasoner") as (client, player):
        page = Page(client, tools=[ROLL])
        await page.run(user("Roll"))
        (called,) = [each["toolCallId"] for each in page.events if each["type"] == "TOOL_CALL_START"]
        await page.run({"id": "m-9", "role": "tool", "toolCallId": called, "content": "4"})
    assert told(player)[1]["reasoning_content"] == "A die."


async def test_instructions_and_context_of_the_page_are_appended_to_those_of_the_service() -> None:
    context = [{"description": "The selected row", "value": '{"id":7}'}]
    instructions = [{"id": "s", "role": role, "content": f"Be {role}."} for role in ("system", "developer")]
    async with played([says("ok")], SYSTEM_PROMPT="Be kind.") as (client, player):
        await sent(client, *instructions, user("Hi"), context=context)
    expected = 'Be kind.\n\nThe selected row:\n{"id":7}\n\nBe system.\n\nBe developer.'
    assert player.requests[0].body["messages"][0] == {"role": "system", "content": expected}


async def test_the_model_reads_the_state_of_the_page() -> None:
    async with played([says("ok"), says("ok")], SYSTEM_PROMPT="Be kind.") as (client, player):
        await sent(client, user("Hi"), state={"selected": [7]}, forwardedProps={"selected": 8})
        await sent(client, user("Hi"), state={})
    told = [each.body["messages"][0]["content"] for each in player.requests]
    assert told == ['Be kind.\n\nThe state of the page:\n{"selected":[7]}', "Be kind."]


async def test_an_image_goes_to_a_model_that_takes_it() -> None:
    parts: list[Any] = [{"type": "text", "text": "See"}]
    parts.append({"type": "image", "source": {"type": "data", "value": "AA==", "mimeType": "image/png"}})
    parts.append({"type": "image", "source": {"type": "url", "value": "https://example.org/a.png"}})
    parts.append({"type": "binary", "mimeType": "image/gif", "filename": "a.gif", "data": "AA=="})  # before 1.0
    parts.append({"type": "binary", "mimeType": "image/png", "url": "https://example.org/b.png"})
    async with played([says("ok")], OPENAI_IMAGES="true") as (client, player):
        events_of(await sent(client, user(parts)))
    urls = [each["image_url"]["url"] for each in told(player)[0]["content"][1:]]
    assert urls == [
        "data:image/png;base64,AA==",
        "https://example.org/a.png",
        "data:image/gif;base64,AA==",
        "https://example.org/b.png",
    ]


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
        events_of(await sent(client, user("Look"), *history, user("Hi")))
    assert [call["id"] for call in told(player)[1]["tool_calls"]] == ["y"]
    assert [each["content"] for each in told(player)[2:]] == ["away", "Hi"]


async def test_in_a_session_only_the_last_question_is_read() -> None:
    named = {"X-Session-ID": "s-1"}
    async with played([says("one"), says("two")]) as (client, player):
        first = await sent(client, user("first"), headers=named)
        await sent(client, user("of another page"), user("second"), headers=named)
        kept = (await client.get("/chat/s-1")).json()
    assert (first.headers["x-session-id"], kept["turns"]) == ("s-1", 2)
    assert [each["content"] for each in told(player)] == ["first", "one", "second"]


@pytest.mark.parametrize(("reason", "result"), [("stop", None), ("length", {"finishReason": "length"})])
async def test_a_cut_answer_says_so(reason: str, result: Any) -> None:
    async with played([sse(delta(content="Hel"), finish(reason))]) as (client, _):
        events = events_of(await sent(client, user("?")))
    assert events[-1].get("result") == result


async def test_notices_of_advisors_are_custom_events() -> None:
    async with played([says("Calm.")], "tests.protocols.ai_sdk.folders") as (client, _):
        answer = await sent(client, user("?"))
    assert "x-session-id" not in answer.headers
    events = events_of(answer)
    assert {"type": "CUSTOM", "name": "harbour", "value": {"ships": 2}} in events
