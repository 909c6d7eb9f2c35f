"""Map messages, tools and options to OpenAI's chat completions, in a form that strict servers accept."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

from pydantic_core import to_json

from toolchat.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolResponse,
    ToolResponseMessage,
    UserMessage,
    described,
    text_json,
    turn_start,
)
from toolchat.models.base import ChatOptions, PreparedTools, Prompt
from toolchat.models.openai.turn import OpenAITurn
from toolchat.models.profiles import Profile
from toolchat.models.tool_call_merging import is_json_object
from toolchat.tool_calling.definition import ToolDefinition
from toolchat.tool_calling.json_schema import map_subschemas

OUTPUT = "response_output"
"""The key of an assistant message's ``extra`` for the Responses API: its reasoning items, in place."""
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
"""The fields with the same name and format on both sides."""
_values = attrgetter(*_OPTIONS)
_UNSET = (None,) * len(_OPTIONS)
_NO_PROFILE = Profile()


Mapped = list[dict[str, Any]]


def _parts(message: UserMessage) -> Mapped:
    images = [{"type": "image_url", "image_url": {"url": each}} for each in message.images]
    return [*([{"type": "text", "text": message.text}] if message.text else []), *images]


class ChatCompletionsWire:
    """``POST {base_url}/chat/completions``."""

    path = "/chat/completions"
    turn = OpenAITurn

    def __init__(self) -> None:
        self.definitions = PreparedTools(lambda tools: to_json(list(map(map_tool_definition, tools))))

    def body(self, model: str, prompt: Prompt, options: ChatOptions, _: Profile) -> dict[str, Any]:
        """The request without what :meth:`written` gives."""
        body: dict[str, Any] = {"model": model} | map_options(options)
        if prompt.stream:
            # Without this option a stream has no usage (https://platform.openai.com/docs/api-reference/chat/create).
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        if prompt.tools:
            body |= map_tool_options(options, prompt.tools)
        return body

    def written(self, prompt: Prompt, profile: Profile) -> dict[bytes, bytes]:
        """The parts of the request whose JSON is stored with the messages and the tools."""
        messages = {b"messages": write_messages(prompt.messages, prompt.tools, profile)}
        return messages | ({b"tools": self.definitions.of(prompt.tools)} if prompt.tools else {})


def write_messages(
    messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), profile: Profile = _NO_PROFILE
) -> bytes:
    """Write a conversation as JSON; the profile says which fields of the model's messages are sent back."""
    turn, differs = turn_start(messages), AssistantMessage if profile.filled else ()
    written = [
        (None if isinstance(each, differs) else each.json) or _write(each, tools, profile, in_turn=place >= turn)
        for place, each in enumerate(messages)
    ]
    return b"[%b]" % b",".join(written)


def _write(message: Message, tools: Sequence[ToolDefinition], profile: Profile, *, in_turn: bool) -> bytes:
    if isinstance(message, AssistantMessage) and (message.tool_calls or message.extra or profile.filled):
        return to_json(_map_answer(message, tools, profile, in_turn=in_turn))
    if isinstance(message, ToolResponseMessage):
        return b",".join(map(to_json, _map_results(message.responses, profile, _parts)))
    if isinstance(message, UserMessage) and message.images:
        return b",".join(map(to_json, map_message(message, tools, profile)))
    return text_json(message)


def map_messages(
    messages: Sequence[Message], tools: Sequence[ToolDefinition], profile: Profile, map_one: Callable[..., Mapped]
) -> Mapped:
    """Map a conversation by a function like :func:`map_message`."""
    turn = turn_start(messages)
    mapped = (map_one(each, tools, profile, in_turn=place >= turn) for place, each in enumerate(messages))
    return list(chain.from_iterable(mapped))


def map_message(
    message: Message,
    tools: Sequence[ToolDefinition] = (),
    profile: Profile = _NO_PROFILE,
    *,
    in_turn: bool = True,
    parts: Callable[[UserMessage], Mapped] = _parts,
) -> Mapped:
    """Map one message; several results are several messages, and ``parts`` writes a text with images."""
    match message:
        case ToolResponseMessage():
            return list(_map_results(message.responses, profile, parts))
        case AssistantMessage():
            return [_map_answer(message, tools, profile, in_turn=in_turn)]
        case UserMessage():
            return [{"role": message.role, "content": parts(message) if profile.images else described(message)}]
        case SystemMessage():
            return [{"role": message.role, "content": message.text}]


def _map_results(
    responses: Sequence[ToolResponse], profile: Profile, parts: Callable[[UserMessage], Mapped]
) -> Iterator[dict[str, Any]]:
    for each in responses:
        text = each.text if profile.images else described(each)
        yield {"role": "tool", "tool_call_id": profile.fitting_id(each.id), "content": text}
    for each in responses:
        if profile.images and each.images:  # results are texts: https://platform.openai.com/docs/api-reference/chat
            yield {"role": "user", "content": parts(UserMessage(f"What {each.name} has returned:", each.images))}


def _map_answer(
    message: AssistantMessage, tools: Sequence[ToolDefinition], profile: Profile, *, in_turn: bool
) -> dict[str, Any]:
    mapped: dict[str, Any] = {"role": message.role, "content": message.text}
    if extra := profile.extra_of(message, in_turn=in_turn):
        mapped = {**extra, **mapped}
        mapped.pop(OUTPUT, None)  # of the other API, which a fallback or an earlier round may have used
    if message.tool_calls:
        mapped["tool_calls"] = [
            map_tool_call(call, tools, profile.extra_of_call(message, place), profile.fitting_id(call.id))
            for place, call in enumerate(message.tool_calls)
        ]
    return mapped


def map_tool_call(
    call: ToolCall, tools: Sequence[ToolDefinition] = (), extra: Mapping[str, Any] = {}, call_id: str = ""
) -> dict[str, Any]:
    """Map a tool call of the model back to the provider's format, with the id and the keys that the provider takes.

    Strict servers reject a conversation whose arguments are not a JSON object or whose names contain other characters,
    so one mistake of a model would otherwise end the conversation.
    """
    name = _NOT_IN_A_NAME.sub("_", call.name)[:_MAX_NAME] or "unknown"
    if name != call.name and any(tool.name == call.name for tool in tools):
        name = call.name
    arguments = call.arguments if is_json_object(call.arguments) else "{}"
    function = {"name": name, "arguments": arguments}
    mapped: dict[str, Any] = {"id": call_id or call.id, "type": "function", "function": function}
    if not extra:
        return mapped
    if isinstance(inner := extra.get("function"), dict):
        mapped["function"] = inner | function
    return {**extra, **mapped}


def map_tool_definition(tool: ToolDefinition) -> dict[str, Any]:
    """Map a tool definition."""
    parameters = map_subschemas(tool.input_schema, _without_closing)
    function = {"name": tool.name, "description": tool.description, "parameters": parameters}
    return {"type": "function", "function": function}


def _without_closing(part: dict[str, Any]) -> dict[str, Any]:
    """Remove ``additionalProperties: false`` from an object with properties.

    Gemini refuses it (https://github.com/BerriAI/litellm/issues/14330), and it costs six tokens a definition.
    """
    is_closed = part.get("additionalProperties") is False and part.get("properties")
    return {name: value for name, value in part.items() if name != "additionalProperties"} if is_closed else part


def map_options(options: ChatOptions) -> dict[str, Any]:
    """Map the options that are set; servers differ in the fields that they reject."""
    values = _values(options)
    if values == _UNSET:  # the usual case
        return {}
    return {name: value for name, value in zip(_OPTIONS, values, strict=True) if value is not None}


def map_tool_options(options: ChatOptions, tools: Sequence[ToolDefinition]) -> dict[str, Any]:
    """Map the options about tools, only for offered tools: servers reject them without any."""
    mapped: dict[str, Any] = {}
    if options.parallel_tool_calls is not None:
        mapped["parallel_tool_calls"] = options.parallel_tool_calls
    if options.tool_choice in ("auto", "none", "required"):
        mapped["tool_choice"] = options.tool_choice
    elif options.tool_choice and any(tool.name == options.tool_choice for tool in tools):
        mapped["tool_choice"] = {"type": "function", "function": {"name": options.tool_choice}}
    return mapped
