"""Where DashScope's native format differs from chat completions: images, and the replies of the SDK."""

from collections.abc import Mapping
from json import dumps
from typing import Any

from pydantic_core import PydanticSerializationError, from_json, to_json

from toolchat.errors import UpstreamInvalid
from toolchat.messages import UserMessage
from toolchat.models.merging import usage_from
from toolchat.models.openai.turn import OpenAITurn
from toolchat.models.profiles import profile_named
from toolchat.models.provider_errors import provider_error, retry_after_from
from toolchat.models.tool_call_merging import objects_in

MAX_ANSWER_BYTES = 32 * 2**20
"""The size limit of all JSON of one model call; 64k tokens in as many events take about half of it."""
_SAID = ("content", "reasoning_content", "tool_calls")


def parts(message: UserMessage) -> list[dict[str, str]]:
    """The content of a multimodal message: https://help.aliyun.com/en/model-studio/vision."""
    return [*([{"text": message.text}] if message.text else []), *({"image": each} for each in message.images)]


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


def _choice(output: Any) -> dict[str, Any] | None:
    """The answer as chat completions have it; models without ``result_format=message`` send a text."""
    if not isinstance(output, dict):
        return None
    if choices := objects_in(output, "choices"):
        choice, message = choices[0], choices[0].get("message")
    elif isinstance(output.get("text"), str):
        choice, message = output, {"content": output["text"]}
    else:
        return None
    said = message if isinstance(message, Mapping) else {}
    return {"finish_reason": choice.get("finish_reason"), "delta": {key: said[key] for key in _SAID if said.get(key)}}
