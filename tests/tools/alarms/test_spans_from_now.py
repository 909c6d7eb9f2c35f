"""Spans of time in questions, as the model without a key reads them for an alarm."""

import time

import pytest

from app.offline import OfflineChatModel
from app.offline.numbers import spans_from_now
from tests.models.responding import response_of
from toolchat.messages import UserMessage
from toolchat.models.base import Prompt
from toolchat.tool_calling.definition import ToolDefinition


@pytest.mark.parametrize(
    ("question", "duration"),
    [
        ("10分钟以后的闹钟", "PT10M"),
        ("半小时后叫醒我", "PT30M"),
        ("一个半小时之后", "PT1H30M"),
        ("两小时三十分钟后", "PT2H30M"),
        ("再过十秒钟", "PT10S"),
        ("1天后叫醒我", "PT24H"),
        ("in half an hour", "PT30M"),
        ("in an hour and 5 minutes", "PT1H5M"),
        ("twenty minutes from now", "PT20M"),
        ("1.5 hours later", "PT1H30M"),
        ("10分钟的会议", None),
        ("for 10 minutes", None),
    ],
)
async def test_the_offline_model_reads_spans_from_now_where_a_tool_takes_a_duration(
    question: str, duration: str | None
) -> None:
    schema = {"type": "object", "properties": {"delay": {"type": "string", "format": "duration"}}}
    tool = ToolDefinition("wait", question, schema | {"required": ["delay"]})
    response = await response_of(OfflineChatModel(), Prompt((UserMessage(question),), (tool,)))
    asked = [call.arguments for call in response.message.tool_calls]
    assert asked == ([] if duration is None else [f'{{"delay":"{duration}"}}'])


@pytest.mark.parametrize("piece", ["1 ", " ", "1", "半", "半 个", "一天", "in 1 hour ", "10分钟", "过", "1个半小时"])
def test_a_hostile_text_is_searched_for_spans_in_no_time(piece: str) -> None:
    started = time.process_time()
    list(spans_from_now(f"1{piece * 4000}"[:4000]))
    assert time.process_time() - started < 1
