"""A question that goes on with the one before."""

import json
from typing import Any

import pytest

from tests.offline.asking import ALL, CLOCK, CLOCK_RESULT, response, talk
from toolchat.messages import AssistantMessage, ToolCall, ToolResponse, ToolResponseMessage, UserMessage


async def calls_for(*questions: str) -> list[dict[str, Any]]:
    """The arguments of the calls for the last of these questions."""
    answer = await response(*talk(*questions), tools=ALL)
    return [json.loads(call.arguments) for call in answer.message.tool_calls]


@pytest.mark.parametrize(
    ("questions", "zones"),
    [
        (("东京现在几点？", "那纽约呢？"), ["America/New_York"]),
        (("What time is it in Tokyo?", "And in Paris?"), ["Europe/Paris"]),
        (("What time is it in Tokyo?", "what about London?"), ["Europe/London"]),
        (("东京现在几点？", "那纽约呢？", "还有巴黎呢？"), ["Europe/Paris"]),
        (("纽约和东京现在分别是几点？", "那伦敦呢"), ["Europe/London"]),
        (("time in Tokyo", "New York and London?"), ["America/New_York", "Europe/London"]),
        (("法国巴黎现在几点", "那纽约呢"), ["America/New_York"]),
        (("现在几点？", "北京"), ["Asia/Shanghai"]),
        (("what time is it?", "Paris"), ["Europe/Paris"]),
        (("weather in Tokyo", "and what time is it?"), ["Asia/Tokyo"]),
    ],
)
async def test_a_place_alone_is_a_follow_up_question(questions: tuple[str, ...], zones: list[str]) -> None:
    # Only the new place is looked up, with the tool of the question before.
    assert await calls_for(*questions) == [{"timeZoneId": zone} for zone in zones]


@pytest.mark.parametrize(
    ("questions", "city", "days"),
    [
        (("上海未来三天天气怎么样", "北京呢"), "北京", 3),
        (("weather in Springfield tomorrow", "and in Paris?"), "Paris", 2),
        (("weather in Paris tomorrow", "what about Springfield?"), "Springfield", 2),
        (("weather in Paris, France", "what about Rome, Italy?"), "Rome, Italy", 1),
        (("请告诉我北京1天以后的天气", "那后天呢？"), "北京", 3),
        (("weather in Paris", "and tomorrow?"), "Paris", 2),
        (("weather in Paris tomorrow", "and in 3 days?"), "Paris", 4),
        (("东京现在几点？", "那天气呢？"), "东京", 1),
    ],
)
async def test_a_follow_up_keeps_what_it_does_not_name(questions: tuple[str, ...], city: str, days: int) -> None:
    # A new place keeps the days, a new day keeps the place, a new topic keeps the place.
    assert await calls_for(*questions) == [{"city": city, "days": days}]


@pytest.mark.parametrize(
    ("questions", "q", "target"),
    [
        (("把“早上好”翻译成日语", "那“晚安”呢？"), "晚安", "ja"),
        (("Translate hello to French", "And goodbye?"), "goodbye", "fr"),
        (("translate a to French", "what about b?"), "b", "fr"),
        (("how do you say thank you in Japanese?", "and “good night”?"), "good night", "ja"),
        (("把你好翻译成日语", "那法语呢？"), "你好", "fr"),
        (("Translate hello to French", "and into German?"), "hello", "de"),
    ],
)
async def test_a_text_or_a_language_alone_is_translated_as_the_one_before(
    questions: tuple[str, ...], q: str, target: str
) -> None:
    assert await calls_for(*questions) == [{"q": q, "from": "auto", "to": target}]


@pytest.mark.parametrize(
    "questions",
    [
        ("东京现在几点？", "谢谢"),
        ("东京现在几点？", "那你呢？"),
        ("Translate hello to French", "and who is the president?"),
        ("Translate hello to French", "thanks"),
        ("给我讲个故事", "那纽约呢？"),
        ("那纽约呢？",),
    ],
)
async def test_a_follow_up_without_a_name_or_a_context_calls_nothing(questions: tuple[str, ...]) -> None:
    # A follow-up is not read into chit-chat, nor an intent into a lone name.
    assert await calls_for(*questions) == []


@pytest.mark.parametrize(
    ("last", "answer"),
    [
        pytest.param("And in Paris?", "In Paris it is", id="English after Chinese"),
        pytest.param("巴黎", "巴黎现在是", id="a bare name, in the language of the question before"),
    ],
)
async def test_a_follow_up_is_answered_in_its_own_language(last: str, answer: str) -> None:
    messages = (
        *talk("东京现在几点？", last),
        AssistantMessage(tool_calls=(ToolCall("call_1", CLOCK.name, '{"timeZoneId":"Europe/Paris"}'),)),
        ToolResponseMessage((ToolResponse("call_1", CLOCK.name, json.dumps(CLOCK_RESULT)),)),
    )
    assert (await response(*messages, tools=ALL)).message.text.startswith(answer)


async def test_results_of_earlier_questions_are_looked_up_anew() -> None:
    old = ToolResponseMessage((ToolResponse("call_1", CLOCK.name, json.dumps(CLOCK_RESULT | {"time": "01:01:01"})),))
    new = ToolResponseMessage((ToolResponse("call_2", CLOCK.name, json.dumps(CLOCK_RESULT)),))
    before = (UserMessage("东京几点"), AssistantMessage(tool_calls=(ToolCall("call_1", CLOCK.name, "{}"),)), old)
    asked = (*before, AssistantMessage("东京现在是……"), UserMessage("那北京呢？"))
    (call,) = (await response(*asked, tools=(CLOCK,))).message.tool_calls
    assert call.id == "call_2"
    told = (await response(*asked, AssistantMessage(tool_calls=(call,)), new, tools=(CLOCK,))).message.text
    assert "20:53:31" in told
    assert "01:01:01" not in told
