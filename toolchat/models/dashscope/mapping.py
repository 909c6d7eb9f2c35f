"""Map messages and tools to DashScope's native format, and its replies to a response."""

from collections.abc import Mapping, Sequence
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
    UserMessage,
    described,
    turn_start,
)
from toolchat.models.base import ChatOptions
from toolchat.models.merging import usage_from
from toolchat.models.openai.turn import OpenAITurn
from toolchat.models.profiles import Profile, profile_named
from toolchat.models.provider_errors import provider_error, retry_after_from
from toolchat.models.tool_call_merging import is_json_object
from toolchat.tool_calling.definition import ToolDefinition

MAX_ANSWER_BYTES = 32 * 2**20
"""The size limit of all JSON of one model call; 64k tokens in as many events take about half of it."""
_SAID = ("content", "reasoning_content", "tool_calls")


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


class DashScopeAnswer(OpenAITurn):
    """Collects the replies of the SDK for one model call."""

    def __init__(self, model: str, *, stream: bool) -> None:
        super().__init__(model)
        self.stream = stream
        """Whether the response is a stream: then only a finish reason shows that it is complete."""
        self._size = 0

    def add(self, reply: Any) -> str:
        """Add one reply of the SDK and return the text that it adds, possibly empty."""
        self.new_reasoning = ""
        if reply.status_code != 200:
            return self._reject(reply)
        choice = _choice(self._checked(reply.output))
        if choice is None and not self.finished and usage_from(reply.usage) is None:
            raise UpstreamInvalid("DashScope sent an error, or an answer without a message", retryable=True)
        return super().add({"usage": reply.usage, "choices": [choice]})

    def close(self) -> str:
        """Return the text that was held back, once the answer is complete."""
        if not self._answered or (self.stream and not self.finished):
            raise UpstreamInvalid("DashScope's answer was cut short", retryable=True)
        return super().close()

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
        if self.finished or (isinstance(reply.message, str) and reply.message.strip() == "[DONE]"):
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


def _choice(output: object) -> dict[str, Any] | None:
    """The answer as chat completions have it; models without ``result_format=message`` send a text."""
    if not isinstance(output, Mapping):
        return None
    choices = output.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        choice, message = choices[0], choices[0].get("message")
    elif isinstance(output.get("text"), str):
        choice, message = output, {"content": output["text"]}
    else:
        return None
    said = message if isinstance(message, Mapping) else {}
    return {"finish_reason": choice.get("finish_reason"), "delta": {key: said[key] for key in _SAID if said.get(key)}}
