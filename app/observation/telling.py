"""What the places through which everything passes tell: whatever takes time has a beginning and an end.

What is told is noted in a list, and counted when 256 notes have come together or somebody reads: in a row they find
code and numbers in the processor's caches, which one question after the other does not; it halves what a note costs.
"""

from asyncio import CancelledError
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from time import perf_counter
from types import TracebackType
from typing import Any, Self

from app.errors import ToolchatError
from app.messages import Usage
from app.observation import catalogue as series
from app.observation.catalogue import OVERHEAD, SECONDS, TOKENS
from app.observation.series import OTHER, Names, Numbers, put

__all__ = [
    "ModelTurn",
    "Request",
    "connection_opened",
    "count_told",
    "current_request",
    "store_answered",
    "tool_called",
    "tool_retried",
    "upstream_answered",
    "waited",
]

_MOST_NOTES, _MOST_KINDS = 256, 2000
_NO_USAGE = Usage()
_principals, _error_kinds, _outcomes, _upstreams = Names(100), Names(100), Names(100), Names(50)
_notes: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
_questions: dict[Any, Sequence[Numbers]] = {}
_turns: dict[Any, Sequence[Numbers]] = {}
_calls: dict[Any, Sequence[Numbers]] = {}


def _kept(known: dict[Any, Sequence[Numbers]], key: Any, make: Callable[..., Sequence[Numbers]]) -> Sequence[Numbers]:
    """All numbers that a kind of event adds to, found by one look instead of one each."""
    numbers = known.get(key)
    if numbers is None:
        numbers = make(*key)
        if len(known) < _MOST_KINDS:
            known[key] = numbers
    return numbers


def count_told() -> None:
    """Count whatever has been told until now; whoever reads the figures calls it first."""
    notes = _notes[:]
    _notes.clear()
    for count, what in notes:
        count(*what)


def _tell(count: Callable[..., None], *what: Any) -> None:
    _notes.append((count, what))
    if len(_notes) >= _MOST_NOTES:
        count_told()


class Request:
    """One HTTP request, from here to :meth:`end`; what the service waits for meanwhile is noted on it."""

    __slots__ = ("_since", "_waiting", "began", "first_byte", "waited")

    def __init__(self) -> None:
        self.began = perf_counter()
        self.first_byte = 0.0
        """When it went out; whoever sends it notes it."""
        self.waited = 0.0
        """Seconds in which a model or a tool was waited for, those in which several were only once."""
        self._waiting = 0
        self._since = 0.0

    def wait(self, now: float) -> None:
        """Begin to wait for somebody."""
        if not self._waiting:
            self._since = now
        self._waiting += 1

    def go_on(self, now: float) -> None:
        """End it."""
        self._waiting -= 1
        if not self._waiting:
            self.waited += now - self._since

    def overhead(self, now: float) -> float:
        """Seconds that the service itself has taken until now."""
        waiting = now - self._since if self._waiting else 0.0
        return max(0.0, now - self.began - self.waited - waiting)

    def end(self, route: str, outcome: str, state: Mapping[str, Any], now: float) -> None:
        """Count the request, and its question if it asked one: its state then has ``form``, and maybe ``variant``.

        Args:
            route: the route's template.
            outcome: ``ok``, the code of a problem, or ``client_gone``.
            state: that of the request's scope.
            now: when its answer ended.
        """
        form = state.get("form")
        if form is None:
            _tell(_count_request, route, outcome)
            return
        asked = route, state.get("variant", ""), form, outcome, state["summary"].get("principal", "")
        took = now - self.began
        _tell(
            _count_question, asked, took, self.first_byte - self.began if self.first_byte else took, self.overhead(now)
        )


current_request: ContextVar[Request] = ContextVar("observed_request", default=Request())  # noqa: B039 - nobody's
"""The request that is being answered; outside of one, something that nobody reads."""


def _count_request(route: str, outcome: str) -> None:
    series.REQUESTS.add(route, _outcomes.of(outcome))


def _count_question(asked: tuple[str, str, str, str, str], took: float, first_byte: float, overhead: float) -> None:
    requests, questions, seconds, first_bytes, overheads = _kept(_questions, asked, _question_numbers)
    requests[0] += 1
    questions[0] += 1
    put(seconds, SECONDS, took)
    put(first_bytes, SECONDS, first_byte)
    put(overheads, OVERHEAD, overhead)


def _question_numbers(route: str, variant: str, form: str, outcome: str, principal: str) -> Sequence[Numbers]:
    outcome = _outcomes.of(outcome)
    return (
        series.REQUESTS.at(route, outcome),
        series.QUESTIONS.at(route, variant, form, outcome, _principal(principal)),
        series.QUESTION_SECONDS.at(route, form),
        series.FIRST_BYTE_SECONDS.at(route, form),
        series.OVERHEAD_SECONDS.at(route, form),
    )


def _principal(name: str) -> str:
    """What figures call a principal: of those whom an identity provider knows there may be any number."""
    if not name:
        return "anonymous"
    return OTHER if name.startswith("jwt:") else _principals.of(name)


class ModelTurn:
    """One turn of a chat model with all its tries; how it ends is seen from what leaves the block."""

    __slots__ = ("_began", "_first", "_names", "_request", "usage")

    def __init__(self, provider: str, model: str) -> None:
        self._names = provider, model
        self._first = 0.0
        self.usage = _NO_USAGE
        """What a finished turn used; set within the block."""

    def __enter__(self) -> Self:
        self._request, self._began = current_request.get(), perf_counter()
        self._request.wait(self._began)
        return self

    def chunk(self) -> None:
        """Note that a piece of the answer has come."""
        self._first = self._first or perf_counter()

    def retry(self, error: ToolchatError) -> None:
        """Note that it is begun again, since it failed so."""
        _tell(series.MODEL_RETRIES.add, *self._names, error.code)

    def __exit__(self, _: object, error: BaseException | None, trace: TracebackType | None) -> None:
        now = perf_counter()
        self._request.go_on(now)
        first = self._first - self._began if self._first else 0.0
        outcome = "ok" if error is None else _outcome(error)
        _tell(_count_turn, (*self._names, outcome), now - self._began, first, self.usage)


def _outcome(error: BaseException) -> str:
    if isinstance(error, ToolchatError):
        return error.code
    return "cancelled" if isinstance(error, CancelledError) else ToolchatError.code


def _count_turn(key: tuple[str, str, str], took: float, first: float, usage: Usage) -> None:
    turns, seconds, firsts, inputs, outputs, cached = _kept(_turns, key, _turn_numbers)
    turns[0] += 1
    put(seconds, SECONDS, took)
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


def tool_called(tool: str | None, error_kind: str | None, seconds: float, *, cached: bool, repaired: bool) -> None:
    """Count a tool call; ``tool`` is ``None`` where there is none of the name that was called."""
    _tell(_count_call, (tool or OTHER, error_kind or "", cached, repaired), seconds)


def _count_call(key: tuple[str, str, bool, bool], seconds: float) -> None:
    calls, took = _kept(_calls, key, _call_numbers)
    calls[0] += 1
    put(took, SECONDS, seconds)


def _call_numbers(tool: str, error_kind: str, cached: bool, repaired: bool) -> Sequence[Numbers]:
    outcome, kind = ("error", _error_kinds.of(error_kind)) if error_kind else ("ok", "")
    flags = ("true" if cached else "false", "true" if repaired else "false")
    return series.TOOL_CALLS.at(tool, outcome, kind, *flags), series.TOOL_SECONDS.at(tool)


def tool_retried(tool: str) -> None:
    """Count that a tool call is begun again."""
    _tell(series.TOOL_RETRIES.add, tool)


def waited(what: str, seconds: float) -> None:
    """Note how long a ``place``, an upstream's ``pace`` or a lock was waited for, such as ``lock:memory``."""
    _tell(series.WAIT_SECONDS.observe, seconds, what)


def upstream_answered(upstream: str, outcome: str) -> None:
    """Count a request to an upstream: its status, or the code of an error."""
    _tell(_count_answer, upstream, outcome)


def _count_answer(upstream: str, outcome: str) -> None:
    series.UPSTREAM_REQUESTS.add(_upstreams.of(upstream), outcome)


def connection_opened() -> None:
    """Count a new connection to an upstream; a request that needs none goes over one that was open."""
    _tell(series.CONNECTIONS_OPENED.add)


def store_answered(kind: str, seconds: float) -> None:
    """Note how long an operation of a store took that went through."""
    _tell(series.STORE_SECONDS.observe, seconds, kind)
