"""``toolchat check``: does everything answer that the configuration names?"""

import asyncio
import secrets
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from app.api.service import model_label
from app.cli.dialogue import ANSWERED, FAILED
from app.cli.serve import OpenedService, opened_service
from app.cli.terminal import say, visible
from app.observability.otlp.settings import TracingConfiguration
from app.tools.registry import ConfiguredModule
from toolchat.errors import ToolchatError
from toolchat.messages import UserMessage
from toolchat.models.base import ChatModel, Prompt
from toolchat.models.fallbacks import FallbackChatModel
from toolchat.state.base import StateStore
from toolchat.tool_calling.definition import ToolDefinition
from toolchat.tool_calling.errors import ToolExecutionError
from toolchat.tool_calling.events import silent

__all__ = ["check"]

_PING = ToolDefinition("ping", "Check that tools can be called.", {"type": "object", "properties": {}})
_LONGEST_NOTE = 200
_COLLECTOR_SECONDS = 1.0
_PROVIDERS = "set DASHSCOPE_API_KEY, OPENAI_API_KEY or OPENAI_BASE_URL"


@dataclass(frozen=True, slots=True)
class _Line:
    """What is told of one part."""

    state: Literal["works", "failed", "missing", "off", "ready"]
    note: str
    seconds: float | None = None
    """How long it took; ``None`` where nobody was asked."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Something that is set up or not; what is asked of it, or what is told without."""

    title: str
    ask: Callable[[], Coroutine[Any, Any, str]] | _Line
    limit: float
    """Seconds that it may take to answer."""


def check() -> int:
    """Ask the chat model, the state store, the collector and every tool's upstream one cheap question, side by side.

    Returns:
        0, or 1 where something that is set up does not answer as it should; what is not set up is no failure.

    Raises:
        ConfigurationError: the service cannot start as it is set up.
    """
    with opened_service() as service:
        return service.run(partial(_check, service))


async def _check(service: OpenedService) -> int:
    parts = list(_parts(service))
    width = max(len(part.title) for part in parts)
    lines = [asyncio.create_task(_line(part)) for part in parts]
    code = ANSWERED
    for part, answering in zip(parts, lines, strict=True):
        line = await answering
        took = "" if line.seconds is None else f"{line.seconds:.2f} s"
        say(f"{line.state:<8} {part.title:<{width}} {took:>8}  {visible(line.note)[:_LONGEST_NOTE]}".rstrip())
        code = FAILED if line.state == "failed" else code
    return code


async def _line(part: _Part) -> _Line:
    if isinstance(part.ask, _Line):
        return part.ask
    began = time.perf_counter()
    try:
        async with asyncio.timeout(part.limit):
            state, note = "works", await part.ask()
    except Exception as error:  # noqa: BLE001 - a folder may ask in whatever way it likes
        state, note = "failed", _told(error, part.limit)
    return _Line("works" if state == "works" else "failed", note, time.perf_counter() - began)


def _told(error: Exception, limit: float) -> str:
    match error:
        case ToolchatError():
            return f"{error.code}: {error.detail}"
        case ToolExecutionError():
            return f"{error.kind}: {error}"
        case TimeoutError():
            return f"no answer within {limit:g} s"
        case _:
            return f"{type(error).__name__}: {error}"


def _parts(service: OpenedService) -> Iterator[_Part]:
    settings = service.configuration.settings
    model = service.state.chat.model
    for number, each in enumerate(model.models if isinstance(model, FallbackChatModel) else (model,), 1):
        yield _Part(
            f"Chat model {number}" if number > 1 else "Chat model", _model(service, each), settings.model_timeout
        )
    yield _Part("State", _store(service.state.store), 5)
    yield _Part("Traces", _traces(service.configuration.tracing), 2 * _COLLECTOR_SECONDS)
    for configured in service.configuration.modules:
        sandbox = " (sandbox)" if configured.settings.in_sandbox else ""
        yield _Part(configured.module.title + sandbox, _folder(service, configured), settings.tool_timeout)


def _model(service: OpenedService, model: ChatModel) -> Callable[[], Coroutine[Any, Any, str]] | _Line:
    if model.provider == "offline":
        chosen = service.configuration.settings.chat_provider == "offline"
        return _Line(
            "off" if chosen else "missing", "the offline stand-in answers" + ("" if chosen else f"; {_PROVIDERS}")
        )

    async def ask() -> str:
        prompt = Prompt((UserMessage("Call the tool ping, then say ok."),), (_PING,))
        response = await model.respond(prompt, silent)
        label = model_label(model.provider, model.name)
        if not response.has_tool_calls:
            raise ToolchatError(f"{label} answers, but did not call the tool that it was asked to")
        return f"{label} calls tools"

    return ask


def _store(store: StateStore) -> Callable[[], Coroutine[Any, Any, str]] | _Line:
    if store.kind == "memory":
        return _Line("off", "kept in this process; REDIS_URL lets replicas share it")

    async def ask() -> str:
        key = f"check:{secrets.token_hex(8)}"
        await store.put(key, b"kept", ttl=10)
        kept = await store.get(key)
        await store.delete(key)
        if kept != b"kept":
            raise ToolchatError("what was written could not be read again")
        return f"{store.kind} writes, reads and forgets"

    return ask


def _traces(tracing: TracingConfiguration) -> Callable[[], Coroutine[Any, Any, str]] | _Line:
    if not tracing.is_on:
        return _Line("off", "not sent; OTEL_EXPORTER_OTLP_ENDPOINT says where they go")

    async def ask() -> str:
        from app.observability.otlp.sending import reached

        if reason := await reached(tracing, _COLLECTOR_SECONDS):
            raise ToolchatError(f"{tracing.target} takes none: {reason}")
        return f"{tracing.target} takes them; {tracing.sampling}"

    return ask


def _folder(service: OpenedService, configured: ConfiguredModule) -> Callable[[], Coroutine[Any, Any, str]] | _Line:
    if configured.fault:
        return _Line("missing" if configured.settings.enabled else "off", configured.fault)
    if configured.module.check is None:
        return _Line("ready", "has nobody to ask")
    return partial(configured.module.check, service.state.container)
