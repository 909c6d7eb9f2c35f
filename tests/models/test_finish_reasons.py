"""Why an answer ended, in the words of many providers, means the same on every wire."""

import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tests.models.openai.playing import CITY, STREAMED, played
from tests.models.openai.test_responses_wire import CALL, response, text_item
from tests.models.responding import response_of
from tests.players.openai_player import delta, finish, message, sse
from toolchat.errors import ToolchatError
from toolchat.models.dashscope.mapping import DashScopeAnswer
from toolchat.models.openai.responses_wire import ResponsesTurn
from toolchat.models.openai.turn import OpenAITurn
from toolchat.models.resilience import ResilientChatModel, RetryPolicy

Wire = Callable[[str, bool], str]
CALLED: dict[str, Any] = {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "w", "arguments": CITY}}]}
TEXT: dict[str, Any] = {"content": "x"}


def completions(*chunks: dict[str, Any]) -> str:
    turn = OpenAITurn("asked")
    for chunk in chunks:
        turn.add(chunk)
    return turn.response().finish_reason


def streamed(said: str, has_call: bool) -> str:
    return completions(delta(**(CALLED if has_call else TEXT)), finish(said))


def at_once(said: str, has_call: bool) -> str:
    return completions(message(said, **(CALLED if has_call else TEXT)))


def responses(said: str, has_call: bool) -> str:
    turn = ResponsesTurn("asked")
    details: dict[str, Any] = {"status": "incomplete", "incomplete_details": {"reason": said}}
    turn.add(response(CALL if has_call else text_item("x"), **details))
    return turn.response().finish_reason


def dashscope(said: str, has_call: bool) -> str:
    answer = DashScopeAnswer("asked", stream=True)
    for part, reason in ((CALLED if has_call else TEXT, "null"), ({}, said)):
        choice = {"message": part, "finish_reason": reason}
        answer.add(SimpleNamespace(status_code=200, usage=None, output={"choices": [choice]}))
    return answer.response().finish_reason


WIRES: dict[str, Wire] = {"stream": streamed, "whole": at_once, "Responses": responses, "DashScope": dashscope}
MEANINGS: dict[str, str] = {
    "stop": "stop tool_calls function_call end_turn eos stop_sequence completed STOP eos_token tool_use endTurn",
    "length": "length max_tokens LENGTH MAX_TOKENS model_length max_output_tokens model_context_window_exceeded",
    "content_filter": "content_filter CONTENT_FILTER SAFETY IMAGE_SAFETY RECITATION PROHIBITED_CONTENT BLOCKLIST SPII "
    "guardrail_intervened sensitive refusal content_filter:SAFETY",
    "incomplete": "pause_turn LANGUAGE OTHER repetition FINISH_REASON_UNSPECIFIED incomplete whatever ?",
    "upstream-unavailable": "insufficient_system_resource abort error network_error cancelled ERROR aborted failed "
    "abort:shutdown",
    "upstream-invalid": "MALFORMED_FUNCTION_CALL function_call_filter:MALFORMED_FUNCTION_CALL UNEXPECTED_TOOL_CALL",
}


@pytest.mark.parametrize("has_call", [False, True], ids=["text", "call"])
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    ("said", "meaning"), [(said.replace(":", ": "), key) for key, words in MEANINGS.items() for said in words.split()]
)
def test_a_finish_reason_means_the_same_on_every_wire(said: str, meaning: str, wire: str, has_call: bool) -> None:
    try:
        read = WIRES[wire](said, has_call)
    except ToolchatError as error:
        read = error.code if error.retryable else "final"
    assert read == ("tool_calls" if has_call and meaning == "stop" else meaning)


def test_an_unknown_reason_is_logged_in_part(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        streamed("why" * 100, has_call=False)
        streamed("length", has_call=False)
    assert [vars(record)["reason"] for record in caplog.records] == [("why" * 100)[:64]]


@pytest.mark.parametrize("later", ["stop", "tool_calls"])
def test_a_reason_behind_a_cut_does_not_make_the_answer_whole(later: str) -> None:
    choices = [{"message": TEXT, "finish_reason": reason} for reason in ("length", later)]
    assert completions({"choices": choices}) == "length"


async def test_after_a_malformed_call_the_model_is_asked_once_more() -> None:
    answers = [sse(finish("function_call_filter: MALFORMED_FUNCTION_CALL")), sse(delta("stop", content="晴"))]
    async with played(answers) as (model, player):
        patient = ResilientChatModel(model, total_timeout=60, idle_timeout=60, retry=RetryPolicy(base_delay=0.001))
        assert (await response_of(patient, STREAMED)).message.text == "晴"
    assert len(player.requests) == 2
