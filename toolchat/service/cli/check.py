"""The command ``check``: test the model, the store, the trace collector, the token issuer and the tools' upstreams."""

import asyncio
import secrets
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from pydantic_core import to_json

from toolchat.errors import ToolchatError, UpstreamTimeout, UpstreamUnavailable
from toolchat.messages import ToolResponse, ToolResponseMessage, UserMessage
from toolchat.models.base import ChatModel, ChatResponse, Prompt
from toolchat.models.fallbacks import models_of
from toolchat.service.access.tokens import Tokens
from toolchat.service.api.service import model_label
from toolchat.service.cli.dialogue import ANSWERED, FAILED
from toolchat.service.cli.opened_service import OpenedService, opened_service
from toolchat.service.cli.program import Program
from toolchat.service.cli.terminal import escape_controls, print_result
from toolchat.service.composition.models import PROVIDER_VARIABLES
from toolchat.service.observability.tracing import TracingSettings
from toolchat.service.tool_modules.discovery import ConfiguredModule
from toolchat.state.base import StateStore
from toolchat.tool_calling.definition import ToolDefinition
from toolchat.tool_calling.errors import ToolExecutionError
from toolchat.tool_calling.events import discard_event

_PING = ToolDefinition("ping", "Check that tools can be called.", {"type": "object", "properties": {}})
_QUESTION = UserMessage("Call the tool ping once, then say ok.")
_LONGEST_NOTE = 600
_COLLECTOR_SECONDS = 3.0

_Probe = Callable[[], Coroutine[Any, Any, str]]
"""Sends one cheap request; returns a note, or raises."""


@dataclass(frozen=True, slots=True)
class _Result:
    """The result of checking one part."""

    state: Literal["works", "failed", "missing", "off", "ready"]
    note: str
    seconds: float | None = None
    """Duration of the probe; ``None`` if there was none."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the service, with its probe, or the result if there is nothing to probe."""

    title: str
    probe: _Probe | _Result
    timeout: float
    route: str = ""
    """The way to it if a proxy is set; a failure that names its cause has it already."""


def check(program: Program) -> int:
    """Probe all parts concurrently and print one line for each.

    Returns:
        0, or 1 if a configured part does not work; a part that is not configured is no failure.

    Raises:
        ConfigurationError: the configuration is invalid.
    """
    with opened_service(program) as service:
        return service.run(partial(_check, service))


async def _check(service: OpenedService) -> int:
    parts = list(_parts(service))
    width = max(len(part.title) for part in parts)
    # All at once, but printed in their order: an upstream that times out must not add up with the others.
    tasks = [asyncio.create_task(_run(part)) for part in parts]
    code = ANSWERED
    for part, task in zip(parts, tasks, strict=True):
        result = await task
        duration = "" if result.seconds is None else f"{result.seconds:.2f} s"
        note = escape_controls(_with_route(result.note, part.route))[:_LONGEST_NOTE]
        print_result(f"{result.state:<8} {part.title:<{width}} {duration:>8}  {note}".rstrip())
        code = FAILED if result.state == "failed" else code
    return code


def _with_route(note: str, route: str) -> str:
    return f"{note}; reached {route}" if route and route not in note else note


async def _run(part: _Part) -> _Result:
    if isinstance(part.probe, _Result):
        return part.probe
    began = time.perf_counter()
    try:
        async with asyncio.timeout(part.timeout):
            note = await part.probe()
    except Exception as error:  # noqa: BLE001 - a tool module's own check may raise anything
        notes = "".join(f"{each}: " for each in getattr(error, "__notes__", ()))
        return _Result("failed", notes + _describe(error, part.timeout), time.perf_counter() - began)
    return _Result("works", note, time.perf_counter() - began)


def _describe(error: Exception, timeout: float) -> str:
    match error:
        case ToolchatError() if type(error) is ToolchatError:  # raised by a probe, which says what failed
            return error.detail
        case ToolchatError():
            # The provider's words may be shown: the question that they may quote is this command's.
            said = f"; the provider says: {error.provider_message}" if error.provider_message else ""
            return error.for_operators + said
        case ToolExecutionError():
            return f"{error.kind}: {error}"
        case TimeoutError():
            return f"no answer within {timeout:g} s"
        case _:
            return f"{type(error).__name__}: {error}"


def _parts(service: OpenedService) -> Iterator[_Part]:
    settings = service.configuration.settings
    models = models_of(service.state.chat.model)
    for number, (each, route) in enumerate(zip(models, service.configuration.model_routes, strict=True)):
        title = f"Fallback {number}" if number else "Chat model"
        yield _Part(title, _model_probe(service, each), 2 * settings.model_timeout, route)
    yield _Part("State", _store_probe(service.state.store), 5)
    # The exporter keeps its own limit, which tells the reason; this one ends only an exporter that does not.
    yield _Part("Traces", _traces_probe(service.configuration.tracing), 10 * _COLLECTOR_SECONDS)
    if service.configuration.access.tokens.is_set:
        yield _Part("Tokens", partial(_check_tokens, service), 5)
    for configured in service.configuration.modules:
        sandbox = " (sandbox)" if configured.settings.in_sandbox else ""
        yield _Part(configured.module.title + sandbox, _module_probe(service, configured), settings.tool_timeout)


def _model_probe(service: OpenedService, model: ChatModel) -> _Probe | _Result:
    if model.provider == "offline":
        if not service.configuration.chat_model.is_last_resort:
            return _Result("off", "the offline model answers, as CHAT_PROVIDER says")
        # A deployment that answers without a model by accident must not pass.
        return _Result("failed", f"only the offline model answers; set {PROVIDER_VARIABLES}, or CHAT_PROVIDER=offline")

    return partial(_use_tool, model, model_label(model.provider, model.name))


async def _use_tool(model: ChatModel, label: str) -> str:
    called = (await _call_ping(model, label)).message
    results = ToolResponseMessage(tuple([ToolResponse(call.id, call.name, "pong") for call in called.tool_calls]))
    try:
        answer = await model.respond(Prompt((_QUESTION, called, results), (_PING,), stream=True), discard_event)
        if not answer.message.text.strip():
            raise ToolchatError(f"fault of the model: {label} wrote nothing")
    except ToolchatError as error:
        error.add_note("tool calls work, but not the answer to their result")
        raise
    asked = f"; asked otherwise after a refusal: {to_json(model.adapted).decode()}" if model.adapted else ""
    return f"{label} calls tools, whole and streamed, and answers from their results{asked}"


async def _call_ping(model: ChatModel, label: str) -> ChatResponse:
    """Ask for a call, whole and streamed; if only one of them fails, the error has a note."""
    called, failures = dict[str, ChatResponse](), list[ToolchatError]()
    for kind in ("whole", "streamed"):
        try:
            response = await model.respond(Prompt((_QUESTION,), (_PING,), stream=kind == "streamed"), discard_event)
            if not response.has_tool_calls:
                did = "answers, but did not call the tool that it was asked to"
                raise ToolchatError(f"fault of the model: {label} {did}")
            called[kind] = response
        except ToolchatError as error:
            failures.append(error)
            if isinstance(error, UpstreamUnavailable | UpstreamTimeout):
                break  # the other kind would hardly fare better, and take as long
    for failure in failures:
        for kind in called:
            failure.add_note(f"only {kind} tool calls work")
        raise failure
    return called["streamed"]


def _store_probe(store: StateStore) -> _Probe | _Result:
    if store.kind == "memory":
        return _Result("off", "state is kept in the memory of this process, and lost when it stops")

    async def write_and_read() -> str:
        # Random: several replicas may be checked at the same time, and the store may be a shared one.
        key = f"check:{secrets.token_hex(8)}"
        await store.put(key, b"stored", ttl=10)
        stored = await store.get(key)
        await store.delete(key)
        if stored != b"stored":
            raise ToolchatError("the value read differs from the value written")
        warning = await store.durability_warning()
        return f"{store.kind} writes, reads and deletes" + (f"; {warning}" if warning else "")

    return write_and_read


def _traces_probe(tracing: TracingSettings) -> _Probe | _Result:
    if not tracing.is_on:
        return _Result("off", "no traces are sent; set OTEL_EXPORTER_OTLP_ENDPOINT")

    async def export_nothing() -> str:
        from toolchat.service.observability.span_export import try_export

        if reason := await try_export(tracing, _COLLECTOR_SECONDS):
            raise ToolchatError(f"{tracing.target} does not accept traces: {reason}")
        return f"{tracing.target} accepts traces; {tracing.sampling}"

    return export_nothing


async def _check_tokens(service: OpenedService) -> str:
    tokens = Tokens(service.configuration.access.tokens, service.state.http)
    keys = await tokens.published_keys()
    return f"the identity provider publishes {len(keys)} keys"


def _module_probe(service: OpenedService, configured: ConfiguredModule) -> _Probe | _Result:
    if configured.fault:
        return _Result("missing" if configured.settings.enabled else "off", configured.fault)
    if configured.module.check is None:
        return _Result("ready", "no upstream to check")
    return partial(configured.module.check, service.state.containers[configured.module.name])
