"""Names of span attributes: OpenTelemetry's semantic conventions, and the only module that knows them.

HTTP: https://opentelemetry.io/docs/specs/semconv/http/http-spans/ (stable).
MCP: https://opentelemetry.io/docs/specs/semconv/gen-ai/mcp/ (not stable yet).
Generative AI: https://github.com/open-telemetry/semantic-conventions-genai (not stable yet).
Attributes that the conventions do not name start with ``toolchat.``.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import to_json
from starlette.types import Scope
from yarl import URL

from toolchat.errors import ToolchatError
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
FIRST_CHUNK = "gen_ai.response.time_to_first_chunk"
STATUS = "http.response.status_code"
_PROVIDERS = {"openai_compatible": "openai"}
"""A provider's name denotes the protocol, not the company that runs the server."""


def request_attributes(scope: Scope, path: str) -> Attributes:
    """An HTTP request to the service; ``path`` contains no ids."""
    host, port = scope.get("server") or ("", None)
    return {
        "http.request.method": scope["method"],
        "url.path": short(path),
        "url.scheme": scope["scheme"],
        "network.protocol.version": scope["http_version"],
        "server.address": host,
        "server.port": port or 0,
        "toolchat.request_id": state_of(scope).request_id,
    }


def response_attributes(route: str, status: int, outcome: str) -> Attributes:
    """The response of the service."""
    return {"http.route": route, STATUS: status, "toolchat.outcome": outcome}


def failure_attributes(error: ToolchatError) -> Attributes:
    """What an error says to operators: which provider, its status and code, the retries."""
    return {f"toolchat.{name}": value for name, value in error.log_fields.items()}


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
    """The messages of a question or a model call; recorded only on request."""
    system = instructions(messages)
    return ({"gen_ai.system_instructions": system} if system else {}) | {
        "gen_ai.input.messages": conversation(messages)
    }


def usage_of(response: ChatResponse) -> Attributes:
    """The result of a question or a model call, without its text."""
    usage = response.usage
    attributes: Attributes = {
        "gen_ai.response.finish_reasons": (short(response.finish_reason),),
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
    }
    optional = {
        "gen_ai.response.model": short(response.model),
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
    }
    return attributes | {name: value for name, value in optional.items() if value}


def output_of(response: ChatResponse) -> Attributes:
    """The answer; recorded only on request."""
    return {"gen_ai.output.messages": answer(response.message, response.finish_reason)}


def tool_attributes(call: ToolCall) -> Attributes:
    """A tool call."""
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": short(call.name[:64]),
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": short(call.id[:128]),
    }


def arguments_of(call: ToolCall) -> Attributes:
    """The arguments of a tool call; recorded only on request."""
    return {"gen_ai.tool.call.arguments": short(call.arguments)}


def result_attributes(finished: ToolCallFinished, *, captures: bool) -> Attributes:
    """The result of a tool call; its text only if ``captures``."""
    flags = {"toolchat.tool.cached": finished.cached, "toolchat.tool.repaired": finished.repaired}
    attributes: Attributes = {name: True for name, is_set in flags.items() if is_set}
    return attributes | ({"gen_ai.tool.call.result": short(finished.result)} if captures else {})


def server_attributes(url: URL) -> Attributes:
    """The server that a request is sent to."""
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


def mcp_attributes(method: str, version: str, target: str) -> Attributes:
    """A request of MCP, sent or received; ``target`` is the tool of a call, otherwise empty."""
    attributes: Attributes = {"mcp.method.name": short(method[:64]), "mcp.protocol.version": version}
    if not target:
        return attributes
    return attributes | {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": short(target[:64])}


def store_attributes(kind: str, operation: str) -> Attributes:
    """An operation of a shared store (https://opentelemetry.io/docs/specs/semconv/db/)."""
    return {"db.system.name": kind, "db.operation.name": operation}


LINK_FRAGMENT = "#token="
"""Begins the fragment of an approval link, which browsers do not send: no server's log has the token."""
_TOKEN = re.compile(f"(?<={LINK_FRAGMENT})[A-Za-z0-9_-]+")
_MAX_MESSAGES, _MAX_CHARS = 40, 8000
_ROLES = {UserMessage: "user", AssistantMessage: "assistant", ToolResponseMessage: "tool"}


def instructions(messages: Sequence[Message]) -> str:
    """The system messages; empty if there are none."""
    parts = [_text(each.text) for each in messages if isinstance(each, SystemMessage)]
    return _json(parts) if parts else ""


def conversation(messages: Sequence[Message]) -> str:
    """The newest messages of a conversation, without system messages."""
    messages = [each for each in messages if not isinstance(each, SystemMessage)]
    return _json([{"role": _ROLES[type(each)], "parts": _parts(each)} for each in messages[-_MAX_MESSAGES:]])


def answer(message: AssistantMessage, finish_reason: str) -> str:
    """The answer."""
    return _json([{"role": "assistant", "parts": _parts(message), "finish_reason": finish_reason}])


def short(text: str) -> str:
    """A text that can be sent: truncated, valid UTF-8, and without tokens."""
    text = without_tokens(text)
    text = text if len(text) <= _MAX_CHARS else f"{text[:_MAX_CHARS]}…"
    return sendable(text)


def without_tokens(text: str) -> str:
    """A text without the tokens in its approval links, with which any reader could approve the call."""
    return _TOKEN.sub("...", text) if LINK_FRAGMENT in text else text


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
