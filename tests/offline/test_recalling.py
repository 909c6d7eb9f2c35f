"""What was said before in the conversation."""

import re

import pytest

from tests.offline.asking import said


@pytest.mark.parametrize(
    ("questions", "answer"),
    [
        (("东京现在几点？", "谢谢", "我刚才问了什么？"), "你刚才问的是：“谢谢”"),
        (("What time is it in Tokyo?", "What did I just ask?"), 'You asked: "What time is it in Tokyo?"'),
        (("a?", "b?", "What have I asked so far?"), 'You asked: "b?"'),
        (("甲？", "乙？", "我都问了哪些问题？"), "你刚才问的是：“乙？”"),
        (("我刚才问了什么？",), "在这之前你没有问过别的。"),
        (("What was my last question?",), "You asked nothing before this."),
    ],
)
async def test_earlier_messages_of_the_user_are_quoted_or_unknown(questions: tuple[str, ...], answer: str) -> None:
    assert await said(*questions) == answer
    assert await said(*questions, tools=()) == answer


@pytest.mark.parametrize(
    "questions",
    [
        ("我叫小明", "我叫什么名字？"),
        ("我叫小明，请问东京几点", "我是谁"),
        ("My name is Ann", "What is my name?"),
        ("Hi, my name's Ann Lee. How are you?", "what's my name"),
        ("My name is Ann", "Call me Bob!", "Who am I?"),
        ("我叫什么名字？",),
        ("call me later", "What is my name?"),
        ("我叫小明",),
        ("Hello, my name is Ann.",),
    ],
)
async def test_a_users_name_is_neither_stored_nor_invented(questions: tuple[str, ...]) -> None:
    answer = await said(*questions)
    assert re.search("离线模型|offline model", answer)
    assert re.search("小明|Ann|Bob", answer) is None


async def test_a_very_long_earlier_question_is_quoted_in_part() -> None:
    assert len(await said("x" * 5000, "What did I just ask?")) < 400
