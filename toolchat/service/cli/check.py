"""The command ``check``: test the model, the store, the trace collector, the token issuer and the tools' upstreams."""

import asyncio
import secrets
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic_core import to_json

from toolchat.errors import ToolchatError, UpstreamTimeout, UpstreamUnavailable
from toolchat.messages import ToolResponse, ToolResponseMessage, UserMessage
from toolchat.models.base import ChatModel, ChatResponse, Prompt
from toolchat.models.fallbacks import models_of
from toolchat.service.access.tokens import Tokens
from toolchat.service.api.service import ServiceState, model_label
from toolchat.service.cli import Program
from toolchat.service.cli.opened_service import ANSWERED, FAILED, OpenedService, opened_service
from toolchat.service.cli.terminal import escape_controls, print_result
from toolchat.service.composition.models import PROVIDER_VARIABLES
from toolchat.service.observability.tracing import TracingSettings
from toolchat.service.settings.base import source_of
from toolchat.service.settings.env_file import known_variables
from toolchat.service.tool_modules.discovery import ConfiguredModule
from toolchat.state.base import StateStore
from toolchat.tool_calling.definition import ToolDefinition
from toolchat.tool_calling.events import discard_event

_PING = ToolDefinition("ping", "Check that tools can be called.", {"type": "object", "properties": {}})
_QUESTION = UserMessage("Call the tool ping once, then say ok.")
_LONGEST_NOTE = 600
_COLLECTOR_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the service: a probe that returns a note or raises, or the state and the note if there is none."""

    title: str
    probe: Callable[[], Coroutine[Any, Any, str]] | tuple[str, str]
    timeout: float = 5
    route: str = ""
    """The way to it if a proxy is set; a failure that names its cause has it already."""

    async def line(self, width: int) -> str:
        """Run the probe; return what is printed."""
        if isinstance(self.probe, tuple):
            state, note, duration = *self.probe, ""
        else:
            began = time.perf_counter()
            try:
                async with asyncio.timeout(self.timeout):
                    state, note = "works", await self.probe()
            except Exception as error:  # noqa: BLE001 - a tool module's own check may raise anything
                notes = "".join(f"{each}: " for each in getattr(error, "__notes__", ()))
                state, note = "failed", notes + _describe(error, self.timeout)
            duration = f"{time.perf_counter() - began:.2f} s"
        if self.route and self.route not in note:
            note = f"{note}; reached {self.route}"
        return f"{state:<8} {self.title:<{width}} {duration:>8}  {escape_controls(note)[:_LONGEST_NOTE]}".rstrip()


def check(program: Program) -> int:
    """Probe all parts concurrently and print one line for each; a part that is not configured is no failure."""
    with opened_service(program) as service:
        return service.run(partial(_check, service))


async def _check(service: OpenedService) -> int:
    parts = list(_parts(service))
    width = max(len(part.title) for part in parts)
    # All at once, but printed in their order: an upstream that times out must not add up with the others.
    tasks = [asyncio.create_task(part.line(width)) for part in parts]
    code = ANSWERED
    for task in tasks:
        print_result(line := await task)
        code = FAILED if line.startswith("failed") else code
    return code


def _describe(error: Exception, timeout: float) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {timeout:g} s"
    if not isinstance(error, ToolchatError):
        return f"{getattr(error, 'kind', type(error).__name__)}: {error}"  # a kind: a tool's own error
    # The provider's words may be shown: the question that they may quote is this command's.
    said = f"; the provider says: {error.provider_message}" if error.provider_message else ""
    return error.detail if type(error) is ToolchatError else error.for_operators + said  # the former: of a probe


def _parts(service: OpenedService) -> Iterator[_Part]:
    configuration, settings = service.configuration, service.configuration.settings
    models = zip(models_of(service.state.chat.model), configuration.model_routes, strict=True)
    for number, (model, route) in enumerate(models):
        title, probe = f"Fallback {number}" if number else "Chat model", partial(_use_tool, model)
        if model.provider != "offline":
            yield _Part(title, probe, 2 * settings.model_timeout, route)
        elif configuration.chat_model.is_last_resort:  # a deployment that answers so by accident must not pass
            told = f"only the offline model answers; set {PROVIDER_VARIABLES}, or CHAT_PROVIDER=offline"
            yield _Part(title, ("failed", told))
        else:
            yield _Part(title, ("off", "the offline model answers, as CHAT_PROVIDER says"))
    if service.state.store.kind == "memory":
        yield _Part("State", ("off", "state is kept in the memory of this process, and lost when it stops"))
    else:
        yield _Part("State", partial(_write_and_read, service.state.store))
    if configuration.tracing.is_on:
        # The exporter keeps its own limit, which tells the reason; this one ends only an exporter that does not.
        yield _Part("Traces", partial(_export_nothing, configuration.tracing), 10 * _COLLECTOR_SECONDS)
    else:
        yield _Part("Traces", ("off", "no traces are sent; set OTEL_EXPORTER_OTLP_ENDPOINT"))
    known = sorted(known_variables())
    if files := [source_of(each) for each in known if source_of(each) in known and source_of(each) != each]:
        yield _Part("Secrets", ("works", f"read from the files of {', '.join(files)}"))
    if configuration.access.tokens.is_set:
        yield _Part("Tokens", partial(_check_tokens, service))
    for each in configuration.modules:
        yield _module(service, each, settings.tool_timeout)
    yield from _refused_questions(service.state)


def _module(service: OpenedService, configured: ConfiguredModule, timeout: float) -> _Part:
    module = configured.module
    title = module.title + (" (sandbox)" if configured.settings.in_sandbox else "")
    if configured.fault:
        return _Part(title, ("missing" if configured.settings.enabled else "off", configured.fault))
    if module.check is None:
        return _Part(title, ("ready", "no upstream to check"))
    return _Part(title, partial(module.check, service.state.containers[module.name]), timeout)


def _refused_questions(state: ServiceState) -> Iterator[_Part]:
    """The questions of tool modules that the offline model does not understand; it takes long with many tools."""
    if state.chat.model.provider != "offline":
        return
    from toolchat.service.offline.replies import unanswered

    for name, entry in state.tools.entries.items():
        offered = () if entry.fault else state.tools.for_conversation(None, name)[0]
        for question in unanswered(entry.module.questions, offered) if offered else ():
            yield _Part(entry.module.title, ("off", f"the offline model cannot answer its question {question!r}"))


async def _use_tool(model: ChatModel) -> str:
    label = model_label(model.provider, model.name)
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
            if response.has_tool_calls:
                called[kind] = response
            else:
                did = "answers, but did not call the tool that it was asked to"
                failures.append(ToolchatError(f"fault of the model: {label} {did}"))
        except (UpstreamUnavailable, UpstreamTimeout) as error:
            failures.append(error)
            break  # the other kind would hardly fare better, and take as long
        except ToolchatError as error:
            failures.append(error)
    if not failures:
        return called["streamed"]
    for kind in called:
        failures[0].add_note(f"only {kind} tool calls work")
    raise failures[0]


async def _write_and_read(store: StateStore) -> str:
    key = f"check:{secrets.token_hex(8)}"  # random: several replicas may check a shared store at the same time
    await store.put(key, b"stored", ttl=10)
    stored = await store.get(key)
    await store.delete(key)
    if stored != b"stored":
        raise ToolchatError("the value read differs from the value written")
    warning = await store.durability_warning()
    place = f" under {store.namespace}" if store.namespace else ""
    return f"{store.kind} writes, reads and deletes{place}" + (f"; {warning}" if warning else "")


async def _export_nothing(tracing: TracingSettings) -> str:
    from toolchat.service.observability.span_export import try_export

    if reason := await try_export(tracing, _COLLECTOR_SECONDS):
        raise ToolchatError(f"{tracing.target} does not accept traces: {reason}")
    return f"{tracing.target} accepts traces; {tracing.sampling}"


async def _check_tokens(service: OpenedService) -> str:
    tokens = Tokens(service.configuration.access.tokens, service.state.http)
    keys = await tokens.published_keys()
    return f"the identity provider publishes {len(keys)} keys"
