"""Map messages and tools to DashScope's native format, and its replies to a response."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from json import dumps
from typing import Any

from pydantic_core import PydanticSerializationError, from_json, to_json

from toolchat.errors import UpstreamInvalid
from toolchat.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolResponseMessage,
    Usage,
    UserMessage,
    described,
    turn_start,
)
from toolchat.models.base import CUT, ChatOptions
from toolchat.models.finish_reasons import read_finish_reason
from toolchat.models.merging import TextMerger, usage_from
from toolchat.models.profiles import Profile, profile_named
from toolchat.models.provider_errors import provider_error, retry_after_from
from toolchat.models.tool_call_merging import ToolCallMerger, is_json_object
from toolchat.tool_calling.definition import ToolDefinition

MAX_ANSWER_BYTES = 32 * 2**20
"""The size limit of all JSON of one model call; 64k tokens in as many events take about half of it."""


def map_messages(messages: Sequence[Message], profile: Profile, *, multimodal: bool) -> list[dict[str, Any]]:
    """Map a conversation; the profile says which fields of the model's messages are sent back."""
    turn = turn_start(messages)
    mapped: list[dict[str, Any]] = []
    for place, message in enumerate(messages):
        mapped.extend(_map_message(message, profile, multimodal=multimodal, in_turn=place >= turn))
    return mapped


def _map_message(message: Message, profile: Profile, *, multimodal: bool, in_turn: bool) -> list[dict[str, Any]]:
    match message:
        case SystemMessage():
            return [{"role": "system", "content": message.text}]
        case UserMessage():
            return [{"role": "user", "content": _parts(message) if multimodal else described(message)}]
        case AssistantMessage():
            return [_map_assistant_message(message, profile, in_turn=in_turn)]
        case ToolResponseMessage():
            results = [(it, it.text if multimodal else described(it)) for it in message.responses]
            shown = [UserMessage(f"What {it.name} has returned:", it.images) for it in message.responses if it.images]
            pictures = [{"role": "user", "content": _parts(each)} for each in shown] if multimodal else []
            return [*({"role": "tool", "content": text, "tool_call_id": it.id} for it, text in results), *pictures]


def _parts(message: UserMessage) -> list[dict[str, str]]:
    """The content of a multimodal message: https://help.aliyun.com/en/model-studio/vision."""
    return [*([{"text": message.text}] if message.text else []), *({"image": each} for each in message.images)]


def _map_assistant_message(message: AssistantMessage, profile: Profile, *, in_turn: bool) -> dict[str, Any]:
    mapped: dict[str, Any] = {"role": "assistant", "content": message.text}
    if reasoning := profile.extra_of(message, in_turn=in_turn).get("reasoning_content"):
        mapped["reasoning_content"] = reasoning
    if message.tool_calls:
        calls = enumerate(message.tool_calls)
        mapped["tool_calls"] = [_map_tool_call(call, profile.extra_of_call(message, place)) for place, call in calls]
    return mapped


def _map_tool_call(call: ToolCall, extra: Mapping[str, Any]) -> dict[str, Any]:
    inner = extra.get("function")
    arguments = call.arguments if is_json_object(call.arguments) else "{}"
    function = {**(inner if isinstance(inner, Mapping) else {}), "name": call.name, "arguments": arguments}
    return {**extra, "id": call.id, "type": "function", "function": function}


def map_tool_options(options: ChatOptions, tools: Sequence[ToolDefinition]) -> dict[str, Any]:
    """Map the options about tools; DashScope does not support ``required``."""
    mapped: dict[str, Any] = {"parallel_tool_calls": options.parallel_tool_calls}
    if options.tool_choice == "none":  # https://help.aliyun.com/zh/model-studio/qwen-api-reference
        mapped["tool_choice"] = "none"
    elif any(tool.name == options.tool_choice for tool in tools):
        mapped["tool_choice"] = {"type": "function", "function": {"name": options.tool_choice}}
    return mapped


@dataclass(slots=True)
class DashScopeAnswer:
    """Collects the replies of the SDK for one model call."""

    stream: bool
    """Whether the response is a stream: then only a finish reason shows that it is complete."""
    usage: Usage = field(default_factory=Usage)
    new_reasoning: str = ""
    """The reasoning that the last reply added."""
    _text: TextMerger = field(default_factory=TextMerger)
    _calls: ToolCallMerger = field(default_factory=ToolCallMerger)
    _reasoning: list[str] = field(default_factory=list)
    _finish_reason: str = ""
    _began: bool = False
    _size: int = 0

    def add(self, reply: Any) -> str:
        """Add one reply of the SDK and return the text that it adds, possibly empty."""
        self.new_reasoning = ""
        if reply.status_code != 200:
            return self._reject(reply)
        usage = usage_from(reply.usage)
        self.usage = usage or self.usage  # the usage of each chunk is cumulative
        choice = _choice(self._checked(reply.output))
        if choice is not None:
            return self._add_choice(choice)
        if usage is None and not self._finish_reason:
            raise UpstreamInvalid("DashScope sent an error, or an answer without a message", retryable=True)
        return ""

    @property
    def finished(self) -> bool:
        """Whether a finish reason was received."""
        return bool(self._finish_reason)

    def close(self) -> str:
        """Return the text that was held back, once the answer is complete."""
        if not self._began or (self.stream and not self._finish_reason):
            raise UpstreamInvalid("DashScope's answer was cut short", retryable=True)
        return self._text.finish()

    def message(self) -> AssistantMessage:
        """The message; it keeps the reasoning for later requests of the same turn."""
        reasoning = "".join(self._reasoning)
        extra = {"reasoning_content": reasoning} if reasoning else {}
        return AssistantMessage(self._text.text, self._calls.finish(), extra)

    def reason(self) -> str:
        """The finish reason; tool calls take precedence over the reason that DashScope sends, unless it was a cut."""
        return self._finish_reason if self._finish_reason in CUT else "tool_calls" if self._calls else "stop"

    def _checked(self, output: object) -> Any:
        """Apply our limits to the SDK's ``json.loads``: size, depth, numbers, no lone surrogates."""
        try:
            text = to_json(output, inf_nan_mode="constants")
        except PydanticSerializationError:
            surrogates = dumps(output, ensure_ascii=False).encode("utf-16-le", "surrogatepass")
            text = surrogates.decode("utf-16-le", "replace").encode()
        self._size += len(text)
        if self._size > MAX_ANSWER_BYTES:
            raise UpstreamInvalid("DashScope's answer does not end")
        return from_json(text)

    def _reject(self, reply: Any) -> str:
        # The SDK takes "data: [DONE]", which compatible gateways send, for a broken event (status 500, code Unknown).
        if self._finish_reason or (isinstance(reply.message, str) and reply.message.strip() == "[DONE]"):
            return ""
        headers = {str(name).lower(): str(value) for name, value in (reply.headers or {}).items()}
        code = reply.code if isinstance(reply.code, str) else ""
        if code == "Unknown" and reply.status_code == 500 and "text/event-stream" in headers.get("content-type", ""):
            raise UpstreamInvalid("DashScope's stream holds something that is not JSON", retryable=True)
        raise provider_error(
            status=int(reply.status_code),
            code=code,
            message=reply.message if isinstance(reply.message, str) else "",
            retry_after=retry_after_from(headers),
            variables="DASHSCOPE",
            profile=profile_named("dashscope"),
        )

    def _add_choice(self, choice: Mapping[str, Any]) -> str:
        self._began = True
        reason = choice.get("finish_reason")
        # DashScope sends the text "null" until the end.
        if isinstance(reason, str) and reason not in ("", "null"):
            self._finish_reason = read_finish_reason(reason)
        message = choice.get("message")
        if not isinstance(message, Mapping):
            return ""
        if isinstance(reasoning := message.get("reasoning_content"), str):
            self._reasoning.append(reasoning)
            self.new_reasoning = reasoning
        if calls := message.get("tool_calls"):
            self._calls.add(calls)
        return self._text.add(message.get("content"))


def _choice(output: object) -> Mapping[str, Any] | None:
    if not isinstance(output, Mapping):
        return None
    choices = output.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        return choices[0]
    if isinstance(text := output.get("text"), str):  # sent by models without result_format=message
        return {"finish_reason": output.get("finish_reason"), "message": {"content": text}}
    return None
