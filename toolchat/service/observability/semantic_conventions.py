"""Names of span attributes: OpenTelemetry's semantic conventions, and the only module that knows them.

HTTP: https://opentelemetry.io/docs/specs/semconv/http/http-spans/ (stable).
Generative AI: https://github.com/open-telemetry/semantic-conventions-genai (not stable yet).
Attributes that the conventions do not name start with ``toolchat.``.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import to_json
from starlette.types import Scope
from yarl import URL

from toolchat.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolResponseMessage,
    UserMessage,
    sendable,
)
from toolchat.models.base import ChatResponse
from toolchat.service.request_state import state_of
from toolchat.tool_calling.events import ToolCallFinished

Attributes = dict[str, Any]

AGENT = "toolchat"
ERROR_TYPE = "error.type"
STATUS = "http.response.status_code"
_PROVIDERS = {"openai_compatible": "openai"}
"""A provider's name denotes the protocol, not the company that runs the server."""


def request_attributes(scope: Scope, path: str, route: str, status: int, outcome: str) -> Attributes:
    """An HTTP request to the service, and its response; ``path`` contains no ids."""
    return {
        "http.request.method": scope["method"],
        "http.route": route,
        STATUS: status,
        "url.path": short(path),
        "url.scheme": scope["scheme"],
        "toolchat.request_id": state_of(scope).request_id,
        "toolchat.outcome": outcome,
    }


def model_attributes(operation: str, provider: str, model: str, conversation_id: str) -> Attributes:
    """A question to the agent (``invoke_agent``), or a model call (``chat``)."""
    attributes: Attributes = {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": _PROVIDERS.get(provider, provider),
        "gen_ai.request.model": model,
    }
    if conversation_id:
        attributes["gen_ai.conversation.id"] = conversation_id
    return attributes


def prompt_of(messages: Sequence[Message]) -> Attributes:
    """The newest messages of a question or a model call; recorded only on request."""
    system = [_text(each.text) for each in messages if isinstance(each, SystemMessage)]
    others = [each for each in messages if not isinstance(each, SystemMessage)][-_MAX_MESSAGES:]
    conversation = [{"role": _ROLES[type(each)], "parts": _parts(each)} for each in others]
    instructions = {"gen_ai.system_instructions": _json(system)} if system else {}
    return instructions | {"gen_ai.input.messages": _json(conversation)}


def response_of(response: ChatResponse, *, captures: bool) -> Attributes:
    """The result of a question or a model call; its text only if ``captures``."""
    usage, reason = response.usage, response.finish_reason
    attributes: Attributes = {
        "gen_ai.response.finish_reasons": (short(reason),),
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
    }
    optional: Attributes = {
        "gen_ai.response.model": short(response.model),
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
    }
    if captures:
        answer = {"role": "assistant", "parts": _parts(response.message), "finish_reason": reason}
        optional["gen_ai.output.messages"] = _json([answer])
    return attributes | {name: value for name, value in optional.items() if value}


def tool_attributes(call: ToolCall, *, captures: bool) -> Attributes:
    """A tool call; its arguments only if ``captures``."""
    attributes: Attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": short(call.name[:64]),
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": short(call.id[:128]),
    }
    return attributes | ({"gen_ai.tool.call.arguments": short(call.arguments)} if captures else {})


def result_attributes(finished: ToolCallFinished, *, captures: bool) -> Attributes:
    """The result of a tool call; its text only if ``captures``."""
    flags = {"toolchat.tool.cached": finished.cached, "toolchat.tool.repaired": finished.repaired}
    attributes: Attributes = {name: True for name, is_set in flags.items() if is_set}
    return attributes | ({"gen_ai.tool.call.result": short(finished.result)} if captures else {})


def server_attributes(url: URL) -> Attributes:
    return {"server.address": url.host or "", "server.port": url.port or 0}


def upstream_attributes(upstream: str, method: str, url: URL, *, captures: bool) -> Attributes:
    """A request to an upstream. Its path may contain arguments of a tool, and its query, never recorded, a key."""
    attributes: Attributes = {
        "http.request.method": method,
        "url.full": f"{url.scheme}://{url.host_subcomponent}:{url.port}",
        "toolchat.upstream": upstream,
        **server_attributes(url),
    }
    return attributes | ({"url.path": short(url.raw_path)} if captures else {})


_MAX_MESSAGES, _MAX_CHARS = 40, 8000
_ROLES = {UserMessage: "user", AssistantMessage: "assistant", ToolResponseMessage: "tool"}


def short(text: str) -> str:
    """A text that can be sent: truncated, and valid UTF-8."""
    return sendable(text if len(text) <= _MAX_CHARS else f"{text[:_MAX_CHARS]}…")


def _parts(message: Message) -> Sequence[Mapping[str, Any]]:
    if isinstance(message, ToolResponseMessage):
        return [{"type": "tool_call_response", "id": each.id, "result": short(each.text)} for each in message.responses]
    calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
    requested = [
        {"type": "tool_call", "id": each.id, "name": each.name, "arguments": short(each.arguments)} for each in calls
    ]
    return [*([_text(message.text)] if message.text else []), *requested]


def _text(text: str) -> Mapping[str, Any]:
    return {"type": "text", "content": short(text)}


def _json(value: Any) -> str:
    return to_json(value).decode()
