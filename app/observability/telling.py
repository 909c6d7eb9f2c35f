"""What the places through which everything passes tell: whatever takes time has a beginning and an end."""

from asyncio import CancelledError
from collections.abc import Sequence
from time import perf_counter
from types import TracebackType
from typing import Self

from app.observability import catalogue as series
from app.observability import conventions as spans_of
from app.observability.beginnings import FAILED_ANSWERS, FAILED_TURNS, begin
from app.observability.catalogue import SECONDS, TOKENS
from app.observability.notes import ByKind, tell
from app.observability.request import current_request
from app.observability.series import OTHER, Names, Numbers, put
from app.observability.spans import Span, current_span
from app.observability.told import Answered, Prompted
from toolchat.errors import ToolchatError
from toolchat.messages import Usage

__all__ = [
    "ModelTurn",
    "breaker_is_open",
    "breaker_refused",
    "breaker_stands",
    "connection_opened",
    "fell_back",
    "mcp_server_is_up",
    "model_is_there",
    "outcome_of",
    "reader_left",
    "store_answered",
    "tool_called",
    "tool_retried",
    "upstream_answered",
    "waited",
]

_NO_USAGE = Usage()
_error_kinds, _upstreams = Names(100), Names(50)
_LEAST_WAIT = 0.001
"""Seconds; of less no span is made."""


def model_is_there(provider: str, model: str) -> None:
    """Say that turns will be those of this model."""
    begin(series.MODEL_TURNS, (provider, model), FAILED_TURNS)


class ModelTurn:
    """One turn of a chat model with all its tries; how it ends is seen from what leaves the block."""

    __slots__ = ("_began", "_first", "_names", "_prompt", "_request", "_span", "response")

    def __init__(self, provider: str, model: str, prompt: Prompted) -> None:
        self._names, self._prompt = (provider, model), prompt
        self._first = 0.0
        self._span: Span | None = None
        self.response: Answered | None = None
        """What a finished turn came to; set within the block."""

    def __enter__(self) -> Self:
        self._request, self._began = current_request.get(), perf_counter()
        self._request.wait(self._began)
        if (parent := current_span.get()) is not None and parent.trace.is_sampled:
            self._span = spans_of.chat(parent, *self._names, self._prompt, self._began).enter()
        return self

    def chunk(self) -> None:
        """Note that a piece of the answer has come."""
        self._first = self._first or perf_counter()

    def retry(self, error: ToolchatError) -> None:
        """Note that it is begun again, since it failed so."""
        tell(series.MODEL_RETRIES.add, *self._names, error.code)
        if self._span is not None:
            self._span.event("retry", *spans_of.error(error.code))

    def __exit__(self, _: object, error: BaseException | None, trace: TracebackType | None) -> None:
        now = perf_counter()
        self._request.go_on(now)
        first = self._first - self._began if self._first else 0.0
        outcome = "ok" if error is None else outcome_of(error)
        usage = _NO_USAGE if self.response is None else self.response.usage
        example = self._span.trace.hex if self._span is not None else ""
        tell(_count_turn, (*self._names, outcome), now - self._began, first, usage, example)
        if self._span is not None:
            self._span.leave()
            spans_of.answered(self._span, self.response, outcome, now, first)


def outcome_of(error: BaseException) -> str:
    """What figures and spans call an error: its code, where it has one."""
    if isinstance(error, ToolchatError):
        return error.code
    return "cancelled" if isinstance(error, CancelledError) else ToolchatError.code


def _count_turn(key: tuple[str, str, str], took: float, first: float, usage: Usage, example: str) -> None:
    turns, seconds, firsts, inputs, outputs, cached = _turns[key]
    turns[0] += 1
    put(seconds, SECONDS, took)
    if example:
        series.MODEL_SECONDS.exemplify(took, example, *key[:2])
    if first:
        put(firsts, SECONDS, first)
    if usage is not _NO_USAGE:
        put(inputs, TOKENS, usage.input_tokens)
        put(outputs, TOKENS, usage.output_tokens)
        cached[0] += usage.cached_tokens


def _turn_numbers(provider: str, model: str, outcome: str) -> Sequence[Numbers]:
    return (
        series.MODEL_TURNS.at(provider, model, outcome),
        series.MODEL_SECONDS.at(provider, model),
        series.MODEL_FIRST_SECONDS.at(provider, model),
        series.MODEL_TOKENS.at(provider, model, "input"),
        series.MODEL_TOKENS.at(provider, model, "output"),
        series.MODEL_CACHED.at(provider, model),
    )


_turns = ByKind(_turn_numbers)


def fell_back(provider: str, model: str, error: ToolchatError) -> None:
    """Count that a turn was handed on to the next model."""
    tell(series.MODEL_FALLBACKS.add, provider, model, error.code)
    if (span := current_span.get()) is not None:
        span.event("fallback", *spans_of.error(error.code, provider=provider, model=model))


def breaker_is_open(upstream: str, is_open: bool, *, opened: bool = False) -> None:
    """Say how a breaker stands, and whether it has just opened."""
    name = _upstreams.of(upstream)
    series.BREAKER_OPEN.at(name)[0] = is_open
    if opened:
        series.BREAKER_OPENINGS.add(name)


def breaker_stands(upstream: str) -> None:
    """Say that there is a breaker before an upstream."""
    name = (_upstreams.of(upstream),)
    for family in (series.BREAKER_OPEN, series.BREAKER_OPENINGS, series.BREAKER_REFUSALS):
        begin(family, (), name)


def breaker_refused(upstream: str) -> None:
    """Count a request that an open breaker did not let through."""
    tell(series.BREAKER_REFUSALS.add, _upstreams.of(upstream))
    if (span := current_span.get()) is not None:
        span.event("breaker open", ("toolchat.upstream", upstream))


def tool_called(tool: str | None, error_kind: str | None, seconds: float, *, cached: bool, repaired: bool) -> None:
    """Count a tool call; ``tool`` is ``None`` where there is none of the name that was called."""
    span = current_span.get()
    example = span.trace.hex if span is not None and span.trace.is_sampled else ""
    tell(_count_call, (tool or OTHER, error_kind or "", cached, repaired), seconds, example)


def _count_call(key: tuple[str, str, bool, bool], seconds: float, example: str) -> None:
    calls, took = _calls[key]
    calls[0] += 1
    put(took, SECONDS, seconds)
    if example:
        series.TOOL_SECONDS.exemplify(seconds, example, key[0])


def _call_numbers(tool: str, error_kind: str, cached: bool, repaired: bool) -> Sequence[Numbers]:
    outcome, kind = ("error", _error_kinds.of(error_kind)) if error_kind else ("ok", "")
    flags = ("true" if cached else "false", "true" if repaired else "false")
    return series.TOOL_CALLS.at(tool, outcome, kind, *flags), series.TOOL_SECONDS.at(tool)


_calls = ByKind(_call_numbers)


def tool_retried(tool: str) -> None:
    """Count that a tool call is begun again."""
    tell(series.TOOL_RETRIES.add, tool)
    if (span := current_span.get()) is not None:
        span.event("retry")


def waited(what: str, seconds: float) -> None:
    """Note how long a ``place``, an upstream's ``pace`` or a lock was waited for, such as ``lock:memory``."""
    tell(series.WAIT_SECONDS.observe, seconds, what)
    if seconds >= _LEAST_WAIT and (span := current_span.get()) is not None and span.trace.is_sampled:
        spans_of.waiting(span, what, seconds, perf_counter())


def upstream_answered(upstream: str, outcome: str) -> None:
    """Count a request to an upstream: its status, or the code of an error."""
    tell(_count_answer, upstream, outcome)


def _count_answer(upstream: str, outcome: str) -> None:
    _answers[upstream, outcome][0][0] += 1


def _answer_numbers(upstream: str, outcome: str) -> Sequence[Numbers]:
    name = _upstreams.of(upstream)
    begin(series.UPSTREAM_REQUESTS, (name,), FAILED_ANSWERS)
    return (series.UPSTREAM_REQUESTS.at(name, outcome),)


_answers = ByKind(_answer_numbers)


def connection_opened() -> None:
    """Count a new connection to an upstream; a request that needs none goes over one that was open."""
    tell(series.CONNECTIONS_OPENED.add)


def reader_left() -> None:
    """Count an answer whose connection was ended, so that others may wait for their readers."""
    series.READERS_LEFT.add()


def mcp_server_is_up(server: str, is_up: bool) -> None:
    """Say whether a server whose tools are offered is there; a file names them, so that they are few."""
    series.MCP_SERVER_UP.at(server)[0] = is_up


def store_answered(kind: str, operation: str, seconds: float) -> None:
    """Note how long an operation of a store took that went through: a command, or a script by its name."""
    tell(series.STORE_SECONDS.observe, seconds, kind)
    if (span := current_span.get()) is not None and span.trace.is_sampled:
        spans_of.store(span, kind, operation, seconds, perf_counter())
