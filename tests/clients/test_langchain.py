"""langchain-openai: complete, streamed and typed answers, and bound tools."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

from tests.clients.conftest import TIME, Model, calls, says


@pytest.fixture(params=[False, True], ids=["chat completions", "Responses"])
def chat(request: pytest.FixtureRequest, base_url: str) -> ChatOpenAI:
    settings: Any = {"base_url": base_url, "api_key": "unused", "model": "toolchat"}
    return ChatOpenAI(**settings, use_responses_api=request.param)


def test_a_whole_answer_has_text_and_tokens(chat: ChatOpenAI, model: Model) -> None:
    model.plays(calls(TIME), says("It is noon."))
    answer = chat.invoke("What time is it?")
    assert answer.text == "It is noon."
    assert isinstance(answer, AIMessage)
    assert answer.tool_calls == []
    assert answer.usage_metadata is not None
    assert answer.usage_metadata["total_tokens"] == 10


def test_a_stream_is_text(chat: ChatOpenAI, model: Model) -> None:
    model.plays(calls(TIME), says("It is noon."))
    assert "".join([each.text for each in chat.stream("What time is it?")]) == "It is noon."


@tool
def roll(sides: int) -> int:
    """Roll a die."""
    return sides


def test_a_bound_tool_is_called_and_its_result_leads_to_the_answer(chat: ChatOpenAI, model: Model) -> None:
    model.plays(calls(TIME, {"name": "roll", "arguments": '{"sides":6}'}), says("Noon, and 6."))
    bound, asked = chat.bind_tools([roll]), HumanMessage("What time is it? And roll a die.")
    called = bound.invoke([asked])
    assert isinstance(called, AIMessage)
    (call,) = called.tool_calls
    assert (call["name"], call["args"]) == ("roll", {"sides": 6})
    answer = bound.invoke([asked, called, ToolMessage(str(roll.invoke(call["args"])), tool_call_id=call["id"])])
    assert answer.text == "Noon, and 6."


class Moment(BaseModel):
    """A moment."""

    hour: int


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_a_typed_answer_is_an_object(method: Any, chat: ChatOpenAI, model: Model) -> None:
    typed = says('{"hour":12}') if method == "json_schema" else calls({"name": "Moment", "arguments": '{"hour":12}'})
    model.plays(calls(TIME) if method == "json_schema" else typed, typed)
    assert chat.with_structured_output(Moment, method=method).invoke("What time is it?") == Moment(hour=12)
