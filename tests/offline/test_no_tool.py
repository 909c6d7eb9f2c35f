"""The answer where no tool fits, or none is offered."""

import pytest

from tests.offline.asking import ALL, asked, response
from toolchat.messages import UserMessage


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
