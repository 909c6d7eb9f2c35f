"""Calls that a model behind an OpenAI-compatible server wrote as text, on both wires and up to the tools."""

from dataclasses import dataclass

import pytest

from tests.models.openai import test_responses as responses
from tests.models.openai.playing import CITY, QUESTION, WEATHER, calls_of, played, turn
from tests.models.responding import response_of
from tests.players.openai_player import Answer, OpenAIPlayer, delta, finish, message, sse, whole
from toolchat.chat.advisors.tool_loop import APPROVAL_REQUIRED, ToolCallingAdvisor
from toolchat.chat.client import ChatClient
from toolchat.chat.request import Approval
from toolchat.chat.session_records import from_records, to_records
from toolchat.models.base import Prompt
from toolchat.models.openai import model as openai_model
from toolchat.models.profiles import Profile, find_profile
from toolchat.tool_calling.definition import tool
from toolchat.tool_calling.limits import ToolCallLimits

WRITTEN = f'```json\n{{"name": "get_weather", "arguments": {CITY}}}\n```'
ASKED = Prompt((QUESTION,), (WEATHER,))
STREAMED = Prompt((QUESTION,), (WEATHER,), stream=True)


def piecewise(text: str) -> Answer:
    return sse(*(delta(content=character) for character in text), finish("stop"))


@pytest.mark.parametrize(
    ("answer", "prompt"),
    [
        (whole(message(content=WRITTEN)), ASKED),
        (whole(message(content=f"I need the weather.\n</think>\n\n{WRITTEN}")), ASKED),
        (piecewise(WRITTEN), STREAMED),
        (piecewise(f"<think>\nI need the weather.\n</think>\n\n{WRITTEN}"), STREAMED),
        (whole(message(content=WRITTEN)), STREAMED),
    ],
)
async def test_a_call_in_a_chat_completion_is_read(answer: Answer, prompt: Prompt) -> None:
    response = await turn(answer, prompt)
    [(_, name, arguments)] = calls_of(response)
    assert (name, arguments, response.message.text) == ("get_weather", CITY, "")
    assert response.finish_reason == "tool_calls"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_call_in_a_response_is_read(stream: bool) -> None:
    item = responses.text_item(WRITTEN)
    answer = responses.streamed(item) if stream else whole(responses.response(item))
    response = await responses.turn(answer, STREAMED if stream else ASKED)
    assert [(call.name, call.arguments) for call in response.message.tool_calls] == [("get_weather", CITY)]
    assert (response.message.text, response.finish_reason) == ("", "tool_calls")


async def test_a_profile_leaves_the_text_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_model, "find_profile", lambda *_: Profile(reads_text_calls=False))
    response = await turn(piecewise(WRITTEN), STREAMED)
    assert (response.message.text, response.message.tool_calls) == (WRITTEN, ())


@pytest.mark.parametrize(
    ("host", "model", "reads"),
    [
        ("localhost:11434", "qwen2.5-coder", True),
        ("openrouter.ai/api", "moonshotai/kimi-k2.6", True),
        ("api.minimax.io", "minimax-m2.5", True),
        ("dashscope-intl.aliyuncs.com/compatible-mode", "deepseek-v3.2", True),
        ("dashscope-intl.aliyuncs.com/compatible-mode", "qwen-plus", False),
        ("api.openai.com", "gpt-5.1", False),
        ("mine.openai.azure.com/openai", "gpt-4o", False),
        ("api.deepseek.com", "deepseek-chat", False),
        ("generativelanguage.googleapis.com/v1beta/openai", "gemini-3-pro", False),
        ("api.mistral.ai", "mistral-small", False),
    ],
)
def test_calls_are_read_unless_the_provider_sends_them_apart_in_every_case(host: str, model: str, reads: bool) -> None:
    assert find_profile(f"https://{host}/v1", model).reads_text_calls is reads
    assert find_profile(f"https://{host}/v1", model, {"reads_text_calls": not reads}).reads_text_calls is not reads


@dataclass
class Station:
    """Tools, and what they were asked."""

    asked: list[str]

    @tool(name="get_weather", requires_approval=True)
    async def weather(self, city: str) -> str:
        """Tell the weather."""
        self.asked.append(city)
        return "sunny"


async def test_a_call_that_needs_approval_waits_for_it_and_is_marked_in_its_result() -> None:
    station = Station([])
    script = [piecewise(WRITTEN), piecewise("It is sunny.")]
    async with played(script) as (model, player):
        client = ChatClient(model, advisors=(ToolCallingAdvisor(),))
        paused = await client.prompt("杭州天气怎么样？").tools(station).call().response()
        assert (paused.finish_reason, station.asked) == (APPROVAL_REQUIRED, [])
        [stored] = from_records(to_records([paused.message]))
        assert stored.tool_calls[0].repaired  # type: ignore[union-attr]
        [waiting] = paused.waiting_calls
        response = await client.resume(paused, {waiting.id: Approval(True)}).tools(station).call().response()
    assert (station.asked, response.message.text) == (["杭州"], "It is sunny.")
    assert [each.to_dict()["repaired"] for each in response.executions] == [True]
    sent = called_in(player)
    assert sent == {"id": waiting.id, "type": "function", "function": {"name": "get_weather", "arguments": CITY}}


def called_in(player: OpenAIPlayer) -> object:
    """The call as the last request sent it back."""
    return next(each for each in player.requests[-1].body["messages"] if each["role"] == "assistant")["tool_calls"][0]


async def test_the_limits_hold_for_a_call_that_was_read() -> None:
    @tool(name="get_weather")
    async def weather(city: str) -> str:
        """Tell the weather."""
        return f"sunny in {city}"

    loop = ToolCallingAdvisor(limits=ToolCallLimits(in_total=1))
    twice = "\n".join(WRITTEN.replace("杭州", city) for city in ("Oslo", "Rome"))
    async with played([piecewise(twice), piecewise("It is sunny.")]) as (model, _):
        response = await ChatClient(model, advisors=(loop,)).prompt("Weather?").tools(weather).call().response()
    assert [each.error_kind for each in response.executions] == [None, "limit"]


async def test_a_call_that_stands_in_the_question_stays_text() -> None:
    async with played([piecewise(WRITTEN)]) as (model, _):
        question = type(QUESTION)(f"What does this do? {WRITTEN}")
        response = await response_of(model, Prompt((question,), (WEATHER,), stream=True))
    assert (response.message.text, response.message.tool_calls) == (WRITTEN, ())
