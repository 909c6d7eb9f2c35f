"""The offline model, and results to give it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.models.responding import events_of
from toolchat.messages import (
    AssistantMessage,
    Message,
    ToolCall,
    ToolResponse,
    ToolResponseMessage,
    UserMessage,
)
from toolchat.models.base import ChatOptions, ChatResponse, Prompt
from toolchat.service.offline.model import OfflineChatModel
from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.definition import ToolDefinition, ToolMetadata

CLOCK_RESULT = (
    "The current time zone is Asia/Shanghai and the current time is 2026-11-20 20:53:31 CST (Friday, UTC+08:00)"
)
FORECAST = """北京, Beijing, 中国, local time 2026-11-20 20:53
now: 晴, 8°C, humidity 40%, wind 7 km/h
2026-11-20: 晴, high 12°C, low 2°C, rain 0%
2026-11-21: 多云, high 9°C, low -2°C, rain 10%"""
_RESULTS: dict[str, Any] = {
    "getCityTimeFunction": CLOCK_RESULT,
    "getWeatherFunction": FORECAST,
    "baiduTranslateMethod": {"from": "zh", "to": "en", "text": "PLAYED"},
    "getCurrentDateTime": {"date": "2026-11-20", "time": "20:53:31", "weekday": "Friday", "zone": "Asia/Shanghai"},
}


def schema(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def reading_tool(name: str, description: str, /, *required: str, **properties: Any) -> ToolCallback:
    """A tool that changes nothing, with a schema written by hand."""
    return Declared(ToolDefinition(name, description, schema(*required, **properties)), ToolMetadata(read_only=True))


class Declared(ToolCallback):
    """A tool that is offered and never run."""

    def __init__(self, definition: ToolDefinition, metadata: ToolMetadata) -> None:
        self.definition, self.metadata = definition, metadata

    async def call(self, tool_input: str, context: Any) -> str:
        raise NotImplementedError


async def response(
    *messages: Message,
    tools: Sequence[ToolCallback] = (),
    model: OfflineChatModel | None = None,
    options: ChatOptions | None = None,
) -> ChatResponse:
    """What the model says to the conversation, at once and not as a stream."""
    definitions = tuple(each.definition for each in tools)
    metadata = {each.definition.name: each.metadata for each in tools}
    prompt = Prompt(messages, definitions, options or ChatOptions(), metadata=metadata)
    (only,) = await events_of(model or OfflineChatModel(), prompt)
    assert isinstance(only, ChatResponse)
    return only


async def asked(question: str, *tools: ToolCallback) -> list[tuple[str, Any]]:
    """The calls that a question leads to, each with its arguments."""
    answer = await response(UserMessage(question), tools=tools)
    return [(call.name, json.loads(call.arguments)) for call in answer.message.tool_calls]


async def played(
    question: str, tools: Sequence[ToolCallback], before: Sequence[str] = (), results: Mapping[str, Any] | None = None
) -> tuple[Sequence[ToolCall], str]:
    """Ask a question, play a result for every call, and take the calls and the answer."""
    turns = [UserMessage(text) if n % 2 == 0 else AssistantMessage(text) for n, text in enumerate(before)]
    messages = (*turns, UserMessage(question))
    calling = (await response(*messages, tools=tools)).message
    if not calling.tool_calls:
        return (), calling.text
    known = _RESULTS | dict(results or {})
    given = [(each, known.get(each.name, {"played": 1})) for each in calling.tool_calls]
    texts = [(call, text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)) for call, text in given]
    responses = tuple(ToolResponse(call.id, call.name, text) for call, text in texts)
    last = (await response(*messages, calling, ToolResponseMessage(responses), tools=tools)).message
    assert last.tool_calls == ()
    return calling.tool_calls, last.text


async def answered(question: str, result: Any, tool: ToolCallback, arguments: str = "{}") -> str:
    """What the model says to a question whose one call has given a result."""
    call = ToolCall("call_1", tool.definition.name, arguments)
    shown = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    answer = await response(
        UserMessage(question),
        AssistantMessage(tool_calls=(call,)),
        ToolResponseMessage((ToolResponse("call_1", call.name, shown),)),
        tools=(tool,),
    )
    assert answer.message.tool_calls == ()
    return answer.message.text
