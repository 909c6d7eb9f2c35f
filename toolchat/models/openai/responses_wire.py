"""OpenAI's Responses API: the request of a prompt, and the parsing of a response and of its semantic events.

https://platform.openai.com/docs/api-reference/responses. Nothing is stored at the provider (``store: false``), so the
reasoning of a turn is sent back with each round, encrypted by the provider.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic_core import to_json

from toolchat.errors import InvalidRequest
from toolchat.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolResponse,
    ToolResponseMessage,
    UserMessage,
    described,
)
from toolchat.models.base import ChatOptions, PreparedTools, Prompt
from toolchat.models.openai.mapping import OUTPUT, map_messages, map_tool_call, map_tool_definition, map_tool_options
from toolchat.models.openai.turn import OpenAITurn
from toolchat.models.profiles import Profile
from toolchat.models.tool_call_merging import objects_in, text_in
from toolchat.tool_calling.definition import ToolDefinition

_ENCRYPTED: Final = "reasoning.encrypted_content"
_TEXT_DELTAS: Final = ("response.output_text.delta", "response.refusal.delta")
_REASONING_DELTAS: Final = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")
_ENDS: Final = tuple(f"response.{status}" for status in ("completed", "incomplete", "failed", "cancelled"))


class ResponsesWire:
    """``POST {base_url}/responses``."""

    path = "/responses"

    def __init__(self) -> None:
        self.definitions = PreparedTools(lambda tools: to_json(list(map(_map_definition, tools))))
        self.turn = ResponsesTurn

    def body(self, model: str, prompt: Prompt, options: ChatOptions, profile: Profile) -> dict[str, Any]:
        """The request without what :meth:`written` gives."""
        _refuse_missing(options)
        text = _map_format(options.response_format) if options.response_format else None
        values = {
            "temperature": options.temperature,
            "top_p": options.top_p,
            "max_output_tokens": options.max_tokens,
            "reasoning": {"effort": options.reasoning_effort} if options.reasoning_effort else None,
            "text": {"format": text} if text else None,
            "include": [_ENCRYPTED],  # models that do not reason refuse it
            "stream": True if prompt.stream else None,
            **(_map_tool_options(options, prompt.tools) if prompt.tools else {}),
        }
        items = map_messages(prompt.messages, prompt.tools, profile, _map_message)
        body = {"model": model, "input": items, "store": False}
        return body | {name: value for name, value in values.items() if value is not None}

    def written(self, prompt: Prompt, _: Profile) -> dict[bytes, bytes]:
        return {b"tools": self.definitions.of(prompt.tools)} if prompt.tools else {}


def _refuse_missing(options: ChatOptions) -> None:
    # Penalties of 0, which chat pages send with every request, change nothing.
    missing = [name for name in ("stop", "frequency_penalty", "presence_penalty") if getattr(options, name)]
    if options.seed is not None:
        missing.append("seed")
    if missing:
        raise InvalidRequest(
            f"{', '.join(missing)}: the chat provider's Responses API does not have that; leave it out, or set "
            "OPENAI_API=chat"
        )


def _map_tool_options(options: ChatOptions, tools: Sequence[ToolDefinition]) -> dict[str, Any]:
    mapped = map_tool_options(options, tools)
    if isinstance(named := mapped.get("tool_choice"), dict):
        mapped["tool_choice"] = {"type": "function", **named["function"]}
    return mapped


def _map_definition(tool: ToolDefinition) -> dict[str, Any]:
    # The default of "strict" would refuse most schemas.
    return {"type": "function", **map_tool_definition(tool)["function"], "strict": False}


def _map_message(
    message: Message, tools: Sequence[ToolDefinition], profile: Profile, *, in_turn: bool
) -> list[dict[str, Any]]:
    match message:
        case SystemMessage(text):
            return [{"role": "system", "content": text}]
        case UserMessage():
            return [{"role": "user", "content": _content(message, profile)}]
        case ToolResponseMessage(responses):
            fit = profile.fitting_id
            return [
                {"type": "function_call_output", "call_id": fit(one.id), "output": _content(one, profile)}
                for one in responses
            ]
        case AssistantMessage():
            return _map_output(message, tools, profile, in_turn=in_turn)


def _content(message: UserMessage | ToolResponse, profile: Profile) -> str | list[dict[str, Any]]:
    if not message.images or not profile.images:
        return described(message)
    images = [{"type": "input_image", "image_url": each} for each in message.images]
    return [*([{"type": "input_text", "text": message.text}] if message.text else []), *images]


def _map_output(
    message: AssistantMessage, tools: Sequence[ToolDefinition], profile: Profile, *, in_turn: bool
) -> list[dict[str, Any]]:
    """The items of a message in the order in which they came: reasoning belongs to the item behind it."""
    output = message.extra.get(OUTPUT, ()) if profile.wrote(message) else ()
    if OUTPUT not in profile.extra_of(message, in_turn=in_turn):
        output = [each for each in output if not isinstance(each, dict) or each.get("type") != "reasoning"]
    fit = profile.fitting_id
    parts: dict[str, dict[str, Any]] = {
        call.id: {"type": "function_call", "call_id": fit(call.id), **map_tool_call(call, tools)["function"]}
        for call in message.tool_calls
    }
    told = [each for each in output if isinstance(each, dict) and each.get("type") == "message"]
    if "".join(_texts(told)) != message.text:  # it was changed, or has no phase
        output = ["" if each in told else each for each in output]
        parts = {"": {"role": "assistant", "content": message.text}, **parts}
    items = [each if isinstance(each, dict) else parts.pop(each, None) for each in output]
    return [each for each in items if each] + list(parts.values())


def _map_format(response_format: Mapping[str, Any]) -> dict[str, Any]:
    schema = response_format.get("json_schema")
    return {"type": response_format.get("type"), **(schema if isinstance(schema, Mapping) else {})}


class ResponsesTurn(OpenAITurn):
    """Collects the events of one model call, or one whole response, whose last event ends it at once."""

    def __init__(self, model: str) -> None:
        super().__init__(model)
        self._items: dict[object, Mapping[str, Any]] = {}

    def add(self, event: Mapping[str, Any]) -> str:
        """Add one event or a whole response and return its text."""
        kind, self.new_reasoning = event.get("type"), ""
        if kind in _TEXT_DELTAS:
            self._by_deltas = True
            return self._text.add(text_in(event, "delta"))
        if kind in _REASONING_DELTAS:
            self.new_reasoning = text_in(event, "delta")
        elif kind == "response.output_item.done" and isinstance(item := event.get("item"), dict):
            self._items[event.get("output_index", len(self._items))] = item
        elif kind in _ENDS and isinstance(response := event.get("response"), dict):
            return self._end(response)
        elif isinstance(event.get("output"), list):  # a whole response; LiteLLM 1.83 calls it a chat completion
            return self._end(event)
        return ""

    def _message(self) -> AssistantMessage:
        output: list[Any] = []
        for item in self._items.values():
            if item.get("type") == "reasoning" or item.get("phase"):
                output.append({name: value for name, value in item.items() if value is not None})
            elif item.get("type") == "function_call":
                output.append(text_in(item, "call_id"))
                self._calls.add({"index": len(output), "id": item.get("call_id"), "function": item})
            else:
                output.append("")
        extra = {OUTPUT: output} if any(isinstance(each, dict) for each in output) else {}
        return AssistantMessage(self._text.text, self._calls.finish(), extra)

    def _end(self, response: Mapping[str, Any]) -> str:
        details = response.get("incomplete_details")
        said = text_in(details, "reason") if isinstance(details, dict) else ""
        self._stop(said or text_in(response, "status") or "completed")
        self._count(response.get("usage"))
        self.ended, self._answered = True, bool(response)
        self._model = text_in(response, "model") or self._model
        if output := objects_in(response, "output"):  # some servers leave it empty at the end of a stream
            self._items = dict(enumerate(output))
        if self._by_deltas:
            return ""
        return self._text.add("".join(_texts(self._items.values())))


def _texts(items: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The texts and refusals of the messages among the items."""
    for item in items:
        for part in objects_in(item, "content") if item.get("type") == "message" else ():
            yield text_in(part, "refusal" if part.get("type") == "refusal" else "text")
