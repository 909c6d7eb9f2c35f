"""Parse the responses of OpenAI-compatible servers: chunks of a stream or one complete body, and errors."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from pydantic_core import from_json

from toolchat.errors import ContentFiltered, UpstreamInvalid
from toolchat.messages import AssistantMessage, Usage, immutable
from toolchat.models.base import CUT, ChatResponse
from toolchat.models.finish_reasons import read_finish_reason
from toolchat.models.merging import SnapshotMerger, TextMerger, usage_from
from toolchat.models.tool_call_merging import ToolCallMerger, objects_in

_REASONING_KEYS = frozenset(("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks", "extra_content"))
_CONTENT_KEYS = ("tool_calls", "refusal", *_REASONING_KEYS)
_MAX_MODEL_NAME = 200
_NO_USAGE = Usage()


class OpenAITurn:
    """Collects the chunks of one model call; each chunk returns the text that it adds.

    A complete message within a stream counts only if no delta came before it: MiniMax repeats the whole answer in its
    last chunk, which also has the only correct ``usage``.
    """

    def __init__(self, model: str) -> None:
        self.finished = False
        """Whether a finish reason was received; a stream that ends without one is incomplete."""
        self.is_settled = False
        """Whether nothing but the end is expected: the newest chunk with a choice had no content any more."""
        self.ended = False
        """Whether nothing more is to be read; no chunk says that it is the last one."""
        self.new_reasoning = ""
        """The reasoning that the last chunk added."""
        self._model = model
        self._text = TextMerger()
        self._calls = ToolCallMerger()
        self._reasoning = _ReasoningMerger()
        self._usage = _NO_USAGE
        self._finish_reason = ""
        self._answered = False
        self._by_deltas = False

    def add(self, chunk: Mapping[str, Any]) -> str:
        """Add one chunk or a complete body and return its text."""
        self.new_reasoning = ""
        if (model := chunk.get("model")) != self._model and isinstance(model, str):
            self._model = model if 0 < len(model) <= _MAX_MODEL_NAME and model.isprintable() else self._model
        if usage := chunk.get("usage"):
            self._count(usage)
        choices, text = chunk.get("choices"), ""
        # We ask for one answer: servers that send several choices put the text in one and the calls in others.
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict) and choice:
                text += self._add_choice(choice)
        return text

    def close(self) -> str:
        """Return the text that was held back."""
        return self._text.finish()

    def response(self) -> ChatResponse:
        """Return the finished response; call :meth:`close` first."""
        if not self._answered:
            raise UpstreamInvalid("the chat provider sent no answer", retryable=True)
        message = self._message()
        # Unless the message was cut, the calls decide: some servers end a message with calls by "stop".
        reason = self._finish_reason if self._finish_reason in CUT else "tool_calls" if message.tool_calls else "stop"
        if reason == "content_filter" and not message.text and not message.tool_calls:
            raise ContentFiltered("the provider's moderation refused the answer")
        return ChatResponse(message, reason, self._usage, self._model)

    def _message(self) -> AssistantMessage:
        return AssistantMessage(self._text.text, self._calls.finish(), self._reasoning.finish())

    def _add_choice(self, choice: Mapping[str, Any]) -> str:
        if usage := choice.get("usage"):
            self._count(usage)
        self._answered = True
        if reason := choice.get("finish_reason"):
            self._stop(reason)
        message = self._message_of(choice)
        self.is_settled = self.finished and not message
        if not _REASONING_KEYS.isdisjoint(message):
            self.new_reasoning = self._reasoning.add(message)
        if calls := message.get("tool_calls"):
            self._calls.add(calls)
        return self._text.add(message.get("content") or message.get("refusal"))

    def _count(self, value: object) -> None:
        usage = usage_from(value)
        # Zeros in a later chunk must not replace the counts.
        if usage and usage.total_tokens:
            self._usage = usage

    def _stop(self, reason: object) -> None:
        if not isinstance(reason, str) or reason == "null":
            return
        self.finished = True
        if self._finish_reason not in CUT:  # some servers send another reason behind it
            self._finish_reason = read_finish_reason(reason)

    def _message_of(self, choice: Mapping[str, Any]) -> Mapping[str, Any]:
        delta = choice.get("delta")
        if isinstance(delta, dict):
            if delta.get("content") or any(map(delta.get, _CONTENT_KEYS)):
                self._by_deltas = True
                return delta
            self._reasoning.add(delta)  # it may be empty, and is demanded back nevertheless
        message = choice.get("message")
        return message if isinstance(message, dict) and not self._by_deltas else {}


class _ReasoningMerger:
    """Merges the reasoning of all deltas, under the keys in which the provider expects it back.

    DeepSeek rejects a conversation with tool calls but without their reasoning
    (https://api-docs.deepseek.com/guides/thinking_mode), even if it is empty, Gemini one without its signature in
    ``extra_content``, LiteLLM's Claude one without its ``thinking_blocks``.
    """

    def __init__(self) -> None:
        self._texts: dict[str, _JoinedText] = {}
        self._details: dict[tuple[str, ...], dict[str, Any]] = {}
        self._blocks: list[dict[str, Any]] = []
        self._extra_content: Any = None

    def add(self, message: Mapping[str, Any]) -> str:
        new = ""
        for key in ("reasoning_content", "reasoning"):
            if isinstance(text := message.get(key), str):
                added = self._texts.setdefault(key, _JoinedText()).add(text)
                new = new or added  # some servers send the same text under both keys
        for detail in objects_in(message, "reasoning_details"):
            self._add_detail(detail)
        for block in objects_in(message, "thinking_blocks"):
            self._add_block(block)
        self._extra_content = message.get("extra_content") or self._extra_content
        return new

    def finish(self) -> dict[str, Any]:
        if not (self._texts or self._details or self._blocks or self._extra_content):
            return {}  # the usual case
        details = [_finished(detail) for detail in self._details.values()]
        others = {"reasoning_details": details, "thinking_blocks": self._blocks, "extra_content": self._extra_content}
        texts = {key: text.finish() for key, text in self._texts.items()}
        return texts | {key: value for key, value in others.items() if value}

    def _add_block(self, block: Mapping[str, Any]) -> None:
        """Add a block, or a piece of the last one, which its signature ends."""
        last = self._blocks[-1] if self._blocks else {}
        if last.get("type") != "thinking" or block.get("type") != "thinking" or last.get("signature"):
            self._blocks.append(dict(block))
        else:
            thinking = (last.get("thinking") or "") + (block.get("thinking") or "")
            last |= {**block, "thinking": thinking}

    def _add_detail(self, detail: Mapping[str, Any]) -> None:
        known = self._details.setdefault(tuple(str(detail.get(key)) for key in ("type", "index", "id")), {})
        for key, value in detail.items():
            if key in ("text", "summary") and isinstance(value, str):
                joined = known.setdefault(key, _JoinedText())
                if isinstance(joined, _JoinedText):
                    joined.add(value)
            elif value is not None or key not in known:
                known[key] = value


class _JoinedText(SnapshotMerger):
    def __init__(self) -> None:
        super().__init__()
        self._parts: list[str] = []

    def add(self, piece: str) -> str:
        self._parts.append(super().add(piece))
        return self._parts[-1]

    def finish(self) -> str:
        return "".join(self._parts) + super().finish()


def _finished(detail: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value.finish() if isinstance(value, _JoinedText) else value for key, value in detail.items()}


@immutable
class ProviderFault:
    """An error in the provider's words; never shown to clients."""

    code: str = ""
    message: str = ""
    status: int | None = None
    """The HTTP status within the error object."""
    retry_after: str = ""
    """Seconds to wait, as Gemini says it in the error object."""
    profile: str = ""
    """The name of the provider, if only one has this format."""
    param: str = ""
    """What in the request is refused."""


def fault_in(body: object, *, refused: bool = False) -> ProviderFault | None:
    """Find the error in a body or a chunk, in any format that servers use; ``None`` if it is an answer.

    Formats: ``{"error": {..}}`` or ``{"error": ".."}`` (OpenAI, Ollama), a list around it (Gemini),
    ``{"errors": [..]}`` (Cloudflare), ``{"code": .., "message": ..}`` (DashScope, vLLM) and
    ``{"base_resp": {"status_code": ..}}`` (MiniMax); if the request was refused, also ``{"message": ..}`` (Bedrock,
    Databricks) and ``{"detail": ..}`` (FastAPI) alone.
    """
    if isinstance(body, dict) and body.get("choices") and _FAULT_KEYS.isdisjoint(body):
        return None  # the usual case
    body = body[0] if isinstance(body, list) and body else body
    if not isinstance(body, dict):
        return None
    if isinstance(response := body.get("response"), dict):
        body = response  # of an event of the Responses API
    error = body.get("error") or body.get("errors")
    error = error[0] if isinstance(error, list) and error else error
    if isinstance(error, dict | str) and error:
        return _fault(error if isinstance(error, dict) else {"code": body.get("code"), "message": error})
    base = body.get("base_resp")
    if isinstance(base, dict) and base.get("status_code") not in (None, 0, "0"):
        return _fault(base, profile="minimax")
    has_code = "message" in body and body.get("code") not in (None, "", 0, 200)
    return _fault(body) if refused or (has_code and not body.get("choices")) else None


def _fault(error: Mapping[str, Any], profile: str = "") -> ProviderFault:
    """Read an error object; OpenRouter's may have the one of the provider behind it as JSON in a text."""
    codes = [str(value) for key in _CODES if isinstance(value := error.get(key), str | int) and value]
    status = next((int(code) for code in codes if code in _STATUSES), None)
    code = next((code for code in codes if code not in _STATUSES), "")
    text, metadata = _text(error), error.get("metadata")
    if isinstance(metadata, dict) and "flagged_input" in metadata:  # https://openrouter.ai/docs/errors
        return ProviderFault("content_filter", text, status)
    if isinstance(metadata, dict) and isinstance(raw := metadata.get("raw"), str):
        text = raw
        with suppress(ValueError):
            if inner := fault_in(from_json(raw), refused=True):
                return replace(inner, status=status or inner.status, profile="")
    return ProviderFault(code, text, status, _delay(error.get("details")), profile, _text(error.get("param")))


def _text(said: object) -> str:
    """The text of an error: itself, that of the first of a list, or what stands under a known key."""
    if isinstance(said, list) and said:
        return _text(said[0])
    if not isinstance(said, dict):
        return said if isinstance(said, str) else ""
    place = ".".join(map(str, said["loc"])) + ": " if isinstance(said.get("loc"), list) else ""
    return place + next(filter(None, map(_text, map(said.get, _TEXTS))), "")


def _delay(details: object) -> str:
    """Gemini's ``{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}``."""
    delays = [each.get("retryDelay") for each in details if isinstance(each, dict)] if isinstance(details, list) else []
    return next((each.removesuffix("s") for each in delays if isinstance(each, str)), "")


_FAULT_KEYS = frozenset(("error", "errors", "base_resp", "response"))
"""Keys under which an error may stand beside an answer."""
_CODES = ("code", "type", "status", "error_code", "status_code")
_TEXTS = ("message", "status_msg", "detail", "msg", "Message", "error")
_STATUSES = frozenset(str(status) for status in range(400, 600))
