"""Write our words in the form of OpenAI's chat completions, so that strict servers take them too."""

import re
from collections.abc import Collection, Sequence
from operator import attrgetter
from typing import Any

from toolchat.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolResponseMessage, UserMessage
from toolchat.models.base import ChatOptions
from toolchat.models.merging import is_json_object
from toolchat.tool_calling.definition import ToolDefinition

__all__ = ["map_message", "map_messages", "map_options", "map_tool_call", "map_tool_definition", "map_tool_options"]

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")
_MAX_NAME = 64
_OPTIONS = (
    "model",
    "temperature",
    "top_p",
    "max_tokens",
    "stop",
    "seed",
    "frequency_penalty",
    "presence_penalty",
    "reasoning_effort",
    "response_format",
)
"""The fields that have one name and one form on both sides."""
_values = attrgetter(*_OPTIONS)
_UNSET = (None,) * len(_OPTIONS)


def map_messages(messages: Sequence[Message], tools: Collection[str] = ()) -> list[dict[str, Any]]:
    """Write a conversation; reasoning goes back within the running turn only, as DeepSeek demands."""
    turn = len(messages)
    while turn and not isinstance(messages[turn - 1], UserMessage):
        turn -= 1
    mapped: list[dict[str, Any]] = []
    for place, message in enumerate(messages):
        mapped += map_message(message, tools, replay=place >= turn)
    return mapped


def map_message(message: Message, tools: Collection[str] = (), *, replay: bool = True) -> list[dict[str, Any]]:
    """Write one message; a :class:`ToolResponseMessage` becomes one message for each of its responses.

    Args:
        message: the message.
        tools: the names of the tools that are offered, see :func:`map_tool_call`.
        replay: whether the provider gets back what it added to an assistant message, such as its reasoning.
    """
    match message:
        case SystemMessage():
            return [{"role": "system", "content": message.text}]
        case UserMessage():
            return [{"role": "user", "content": message.text}]
        case ToolResponseMessage():
            return [{"role": "tool", "tool_call_id": one.id, "content": one.text} for one in message.responses]
        case AssistantMessage():
            mapped: dict[str, Any] = {"role": "assistant", "content": message.text}
            if replay and message.extra:
                mapped = {**message.extra, **mapped}
            if message.tool_calls:
                mapped["tool_calls"] = [map_tool_call(call, tools) for call in message.tool_calls]
            return [mapped]


def map_tool_call(call: ToolCall, tools: Collection[str] = ()) -> dict[str, Any]:
    """Write a call back as the provider sent it, extra keys included, in a form that strict servers take.

    They refuse a conversation for arguments that are not a JSON object and for names with other characters than
    theirs, so a model's slip would otherwise end the conversation.
    """
    name = call.name if call.name in tools else _NOT_IN_A_NAME.sub("_", call.name)[:_MAX_NAME] or "unknown"
    arguments = call.arguments if is_json_object(call.arguments) else "{}"
    function = {"name": name, "arguments": arguments}
    mapped: dict[str, Any] = {"id": call.id, "type": "function", "function": function}
    if not call.extra:
        return mapped
    if isinstance(inner := call.extra.get("function"), dict):
        mapped["function"] = inner | function
    return {**call.extra, **mapped}


def map_tool_definition(tool: ToolDefinition) -> dict[str, Any]:
    """Write a tool's definition."""
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.input_schema)}
    return {"type": "function", "function": function}


def map_options(options: ChatOptions) -> dict[str, Any]:
    """Write the options that are set; servers differ in the fields that they refuse."""
    values = _values(options)
    if values == _UNSET:  # as nearly always
        return {}
    return {name: value for name, value in zip(_OPTIONS, values, strict=True) if value is not None}


def map_tool_options(options: ChatOptions, tools: Collection[str]) -> dict[str, Any]:
    """Write what the options say of the tools that are offered; servers refuse it where there are none."""
    mapped: dict[str, Any] = {}
    if options.parallel_tool_calls is not None:
        mapped["parallel_tool_calls"] = options.parallel_tool_calls
    if options.tool_choice in ("auto", "required"):
        mapped["tool_choice"] = options.tool_choice
    elif options.tool_choice in tools:
        mapped["tool_choice"] = {"type": "function", "function": {"name": options.tool_choice}}
    return mapped
