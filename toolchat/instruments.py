"""The observer interface: the engine reports model calls, tool calls, upstream requests and waits to one observer.

The default observer ignores everything, so that the engine needs no library for metrics or traces. A service subclasses
:class:`Observer`, overrides the methods that it needs and installs its instance once at start::

    class Metrics(Observer):
        def record_wait(self, resource: str, seconds: float) -> None:
            WAIT_SECONDS.labels(resource).observe(seconds)

    set_observer(Metrics())

The ``observe_`` methods return context managers, whose block is the observed work, for example the lifetime of a span.
The ``record_`` methods report single events. All of them run in the task that does the work, so its context variables
are set. They must not block and must not raise.

Arguments of type ``Any`` are objects of the engine, which is built on top of this module: a ``Prompt``, a
``ChatResponse``, a ``ToolCall``, a ``ToolCallFinished``, a ``ToolchatError``, a URL as ``yarl`` has it. An
implementation annotates them with these types.
"""

from collections.abc import Mapping
from contextvars import Context
from types import TracebackType
from typing import Any, Self


class _Observed:
    """Work that takes time: it begins and ends with a ``with`` block, and fails if an exception leaves the block."""

    __slots__ = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class ModelCall(_Observed):
    """One model call with all its attempts."""

    __slots__ = ()

    def record_chunk(self, event: Any) -> None:
        """Report a streamed event of the response, a ``ModelEvent``."""

    def record_retry(self, error: Any) -> None:
        """Report that an attempt failed, and that the call is attempted again."""

    def record_response(self, response: Any) -> None:
        """Report the finished response."""


class ToolRun(_Observed):
    """One tool call from its authorisation to its result."""

    __slots__ = ()

    def record_result(self, finished: Any) -> None:
        """Report the result; without one, an exception ends the whole chat request."""


class UpstreamRequest(_Observed):
    """One HTTP request to an upstream, up to the head of the response."""

    __slots__ = ()

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers that the request sends in addition, such as ``traceparent``."""
        return {}

    def record_status(self, status: int) -> None:
        """Report the status of the response."""


_MODEL_CALL, _TOOL_RUN, _UPSTREAM_REQUEST = ModelCall(), ToolRun(), UpstreamRequest()
# Shared, since they have no state: an engine without an observer allocates nothing per event.


class Observer:
    """Receives the events of the engine; this base class ignores them."""

    def register_model(self, provider: str, model: str) -> None:
        """Report that a model exists, before its first call."""

    def observe_model_call(self, provider: str, model: str, prompt: Any) -> ModelCall:
        """Observe one model call with all its attempts."""
        return _MODEL_CALL

    def record_tool_left_out(self, provider: str, model: str, tool: str) -> None:
        """Report that a model call was made without a tool that the provider refuses."""

    def record_fallback(self, provider: str, model: str, error: Any) -> None:
        """Report that this model failed and that the next one is called."""

    def record_answering_model(self, provider: str, model: str) -> None:
        """Report which of several models answers."""

    def observe_tool_run(self, call: Any) -> ToolRun:
        """Observe one tool call."""
        return _TOOL_RUN

    def record_tool_call(self, tool: str | None, finished: Any) -> None:
        """Report a finished tool call; ``tool`` is ``None`` if the called name is unknown."""

    def record_tool_retry(self, tool: str) -> None:
        """Report that a tool call is attempted again."""

    def begin_waiting(self) -> None:
        """Report that the current request now waits for a tool, which is no time of the engine's own."""

    def end_waiting(self) -> None:
        """Report the end of the last :meth:`begin_waiting`."""

    def record_wait(self, resource: str, seconds: float) -> None:
        """Report a wait for a limited resource, such as ``lock:memory``."""

    def observe_upstream_request(self, upstream: str, method: str, url: Any) -> UpstreamRequest:
        """Observe one HTTP request to an upstream."""
        return _UPSTREAM_REQUEST

    def record_upstream_response(self, upstream: str, outcome: str) -> None:
        """Report the outcome of an HTTP request: its status, or the code of an error."""

    def record_connection_opened(self) -> None:
        """Report a new connection to an upstream."""

    def register_breaker(self, upstream: str) -> None:
        """Report that an upstream has a circuit breaker."""

    def record_breaker_state(self, upstream: str, *, is_open: bool, has_opened: bool = False) -> None:
        """Report the state of a circuit breaker, and whether it has just opened."""

    def record_breaker_refusal(self, upstream: str) -> None:
        """Report a request that an open circuit breaker refused."""

    def record_store_operation(self, kind: str, operation: str, seconds: float) -> None:
        """Report a successful operation of a shared state store."""

    def copy_context(self, target: Context) -> None:
        """Copy the observer's context variables into an empty context, for work that several requests share."""


observer: Observer = Observer()
"""The observer of this process; read it as ``instruments.observer``, since :func:`set_observer` replaces it."""


def set_observer(new: Observer) -> Observer:
    """Install an observer for the whole process.

    Returns:
        The observer that was installed before.
    """
    global observer
    before, observer = observer, new
    return before
