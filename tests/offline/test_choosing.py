"""Which tools a question is for, and what is said where none fits."""

import pytest

from tests.offline.asking import (
    ALARM,
    ALL,
    CLOCK,
    DICE,
    MEETING,
    ORDER,
    TRANSLATE,
    WEATHER,
    asked,
    response,
)
from toolchat.messages import UserMessage
from toolchat.tool_calling.definition import ToolDefinition


@pytest.mark.parametrize(
    ("question", "calls"),
    [
        (
            "What time is it in Tokyo and the weather in Paris?",
            [("getCityTimeFunction", "Asia/Tokyo"), ("getWeatherFunction", "Paris")],
        ),
        ("东京时间和巴黎天气", [("getCityTimeFunction", "Asia/Tokyo"), ("getWeatherFunction", "巴黎")]),
        ("呼和浩特天气和东京时间", [("getWeatherFunction", "呼和浩特"), ("getCityTimeFunction", "Asia/Tokyo")]),
        (
            "北京今天天气怎么样，现在几点了",
            [("getWeatherFunction", "北京"), ("getCityTimeFunction", "Asia/Shanghai")],
        ),
        (
            "把“天气”翻译成英文，并告诉我东京时间",
            [("baiduTranslateFunction", "天气"), ("getCityTimeFunction", "Asia/Tokyo")],
        ),
        (
            "weather in Tokyo, Osaka and time in London",
            [
                ("getWeatherFunction", "Tokyo"),
                ("getWeatherFunction", "Osaka"),
                ("getCityTimeFunction", "Europe/London"),
            ],
        ),
    ],
)
async def test_a_question_about_two_things_calls_both_tools_in_one_message(
    question: str, calls: list[tuple[str, str]]
) -> None:
    assert [(name, next(iter(arguments.values()))) for name, arguments in await asked(question, *ALL)] == calls


@pytest.mark.parametrize(
    "question",
    [
        "你好",
        "你好，你是谁",
        "Thank you very much",
        "给我讲个故事",
        "who is the president?",
        "",
        "   ",
        "???",
        "1+1等于几",
    ],
)
async def test_chit_chat_calls_nothing_and_the_answer_shows_a_question_for_each_tool(question: str) -> None:
    answer = await response(UserMessage(question), tools=ALL)
    assert answer.message.tool_calls == ()
    assert answer.finish_reason == "stop"
    assert not any(tool.name in answer.message.text for tool in ALL)
    assert "离线" in answer.message.text or "offline" in answer.message.text
    examples = [line[2:] for line in answer.message.text.splitlines() if line.startswith("- ")]
    assert [[name for name, _ in await asked(each, *ALL)] for each in examples] == [[tool.name] for tool in ALL]


async def test_a_question_about_the_time_does_not_set_an_alarm() -> None:
    assert await asked("现在几点了", ALARM) == []


@pytest.mark.parametrize(
    ("question", "tool", "named"),
    [
        ("现在几点了", CLOCK, "timeZoneId"),
        ("火星现在几点", CLOCK, "火星"),
        ("明天会下雨吗", WEATHER, "city"),
        ("请翻译", TRANSLATE, "q"),
        ("翻译成日文", TRANSLATE, "q"),
        ("what time is it?", CLOCK, "timeZoneId"),
        ("set an alarm", ALARM, "time"),
        ("查订单", ORDER, "orderId"),
        ("book a meeting room for 6 people", MEETING, "start_time"),
        ("roll a dice", DICE, "sides"),
    ],
)
async def test_a_missing_detail_is_requested_instead_of_guessed(
    question: str, tool: ToolDefinition, named: str
) -> None:
    answer = await response(UserMessage(question), tools=(tool,))
    assert answer.message.tool_calls == ()
    assert named in answer.message.text


@pytest.mark.parametrize(
    "question",
    ["Do not tell me the time in Paris", "don't look up the weather in Paris", "不要告诉我北京的时间", "请别查北京天气",
     "Cancel the weather in Paris", "取消北京的天气"],
)  # fmt: skip
async def test_forbidden_and_undo_requests_call_nothing(question: str) -> None:
    answer = await response(UserMessage(question), tools=(CLOCK, WEATHER))
    assert answer.message.tool_calls == ()


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("请告诉我现在北京时间几点了", ["离线模型", "不知道现在几点", "DASHSCOPE_API_KEY", "OPENAI_API_KEY"]),
        ("请告诉我北京1天以后的天气", ["离线模型", "不知道天气", "/chat-tool-function"]),
        ("帮我把以下内容翻译成英文：Good evening, ladies and gentlemen.", ["没有办法翻译"]),
        ("What time is it?", ["offline model", "cannot know what time it is", "DASHSCOPE_API_KEY"]),
        ("翻訳して", ["离线模型"]),
    ],
)
async def test_without_tools_it_introduces_itself_and_explains_how_to_get_a_real_answer(
    question: str, said: list[str]
) -> None:
    answer = (await response(UserMessage(question))).message.text
    assert [each for each in said if each not in answer] == []
    assert not any(character.isdigit() for character in answer)


@pytest.mark.parametrize(
    ("question", "promised"),
    [
        ("hello", False),
        ("给我讲个故事", False),
        ("What time is it in Paris?", True),
        ("北京天气", True),
        ("翻译：早上好", True),
    ],
)
async def test_tools_are_suggested_only_for_questions_they_can_answer(question: str, promised: bool) -> None:
    answer = (await response(UserMessage(question))).message.text
    assert ("/chat-tool-function" in answer) is promised
    assert "DASHSCOPE_API_KEY" in answer
