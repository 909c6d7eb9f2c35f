"""Spans: what happened, when it began and ended, and what it was a part of.

There are none unless :data:`tracer` is set, which ``app.observability.otlp`` does when an endpoint for traces is
configured: then each request has a trace, and what is told of it (``request``, ``observer``) begins and ends the spans.
A trace that is not sampled has an id, which logs and upstreams are told, and nothing else.

By hand and not by OpenTelemetry's SDK, by measurement: its span costs 18 µs and its encoding 24, these 3 and 2
(docs/decisions/traces.md).
"""

import re
import time
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar, Token
from random import getrandbits
from time import perf_counter
from typing import NamedTuple

__all__ = [
    "CLIENT",
    "INTERNAL",
    "SERVER",
    "Attribute",
    "Attributes",
    "Fixed",
    "Remote",
    "Span",
    "Trace",
    "Tracer",
    "current_span",
]

INTERNAL, SERVER, CLIENT = 1, 2, 3
"""Kinds of spans, as OTLP numbers them."""
_TRACEPARENT = re.compile(rb"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_STATE = re.compile(rb"[\x20-\x7e]{1,512}")

Attribute = str | bool | int | float | Sequence[str]
Attributes = Iterable[tuple[str, Attribute]]


class Remote(NamedTuple):
    """What a request says of the trace that it belongs to."""

    trace: bytes
    span: bytes
    is_sampled: bool


class Fixed:
    """Attributes that many spans have alike."""

    __slots__ = ("pairs", "wire")

    def __init__(self, *pairs: tuple[str, Attribute]) -> None:
        self.pairs = pairs
        self.wire = b""
        """As they are sent, once they have been."""


class Trace:
    """What the spans of one request share."""

    __slots__ = (
        "_is_over",
        "_keep",
        "_spans",
        "captures",
        "conversation",
        "epoch",
        "hex",
        "id",
        "is_sampled",
        "propagates",
        "remote",
        "state",
    )

    def __init__(self, tracer: "Tracer", headers: Iterable[tuple[bytes, bytes]]) -> None:
        self.remote, self.state = _remote(headers) if tracer.propagates else (None, b"")
        self.id = self.remote.trace if self.remote else getrandbits(128).to_bytes(16)
        self.hex = self.id.hex()
        self.propagates, self.is_sampled = tracer.propagates, tracer.samples(self.id, self.remote)
        self.conversation = ""
        """The conversation, hashed, where the question belongs to one."""
        if self.is_sampled:
            self.epoch = time.time_ns() - int(perf_counter() * 1e9)
            """Unix time, in nanoseconds, when ``perf_counter`` was 0: clocks may be set meanwhile."""
            self.captures, self._keep = tracer.captures, tracer.keep
            self._spans: list[Span] = []
            self._is_over = False

    def ended(self, span: "Span") -> None:
        """Take a span that has ended: all go out with the request's own, and by themselves what ends after it."""
        if self.is_sampled:
            self._spans.append(span)
            if span.kind == SERVER:
                self._is_over = True
            if self._is_over:
                self._keep(self._spans)
                self._spans = []


class Span:
    """A part of a trace; times are those of ``perf_counter``."""

    __slots__ = (
        "_lines",
        "_token",
        "attributes",
        "began",
        "ended",
        "error",
        "events",
        "id",
        "kind",
        "name",
        "parent",
        "trace",
    )

    def __init__(self, trace: Trace, parent: bytes, name: str, kind: int, began: float) -> None:
        self.trace, self.parent, self.name, self.kind, self.began = trace, parent, name, kind, began
        self.id = getrandbits(64).to_bytes(8)
        self.ended = began
        self.attributes: list[Fixed | tuple[str, Attribute]] = []
        self.events: Sequence[tuple[str, float, Attributes]] = ()
        self.error = ""
        """The class of error with which it ended, if it did."""
        self._lines = b""
        self._token: Token[Span | None] | None = None

    def enter(self) -> "Span":
        """Be the span of which whatever comes is a part, in this task and those that it starts."""
        self._token = current_span.set(self)
        return self

    def leave(self) -> None:
        """End that."""
        if self._token is not None:
            current_span.reset(self._token)
            self._token = None

    def child(self, name: str, kind: int, began: float) -> "Span":
        """Begin a part of it; asked for only where the trace is sampled."""
        return Span(self.trace, self.id, name, kind, began)

    def event(self, name: str, *attributes: tuple[str, Attribute]) -> None:
        """Note something that happened just now."""
        if self.trace.is_sampled:
            self.events = (*self.events, (name, perf_counter(), attributes))

    def end(self, now: float, error: str = "") -> None:
        """End it; ``error`` is the class of error, where it ended in one."""
        self.ended, self.error = now, error
        self.trace.ended(self)

    @property
    def lines(self) -> bytes:
        """Header lines that tell an upstream what its work is a part of; none where that is switched off."""
        if not self._lines and self.trace.propagates:
            trace = self.trace
            line = f"traceparent: 00-{trace.hex}-{self.id.hex()}-0{int(trace.is_sampled)}\r\n".encode()
            self._lines = b"%btracestate: %b\r\n" % (line, trace.state) if trace.state else line
        return self._lines


class Tracer:
    """Begins the traces of this process.

    Args:
        samples: decides by its id, and by what the request says, whether a trace is recorded.
        keep: takes the spans of a request when it has ended, in no time.
        captures: spans hold questions, answers, arguments and results as well.
        propagates: traces go on from the caller's, and upstreams are told of them.
    """

    def __init__(
        self,
        samples: Callable[[bytes, Remote | None], bool],
        keep: Callable[[Sequence[Span]], None],
        *,
        captures: bool = False,
        propagates: bool = True,
    ) -> None:
        self.samples, self.keep, self.captures, self.propagates = samples, keep, captures, propagates

    def begin(self, name: str, headers: Iterable[tuple[bytes, bytes]], began: float) -> Span:
        """Begin the trace of a request, or its part of the trace that its headers name."""
        trace = Trace(self, headers)
        return Span(trace, trace.remote.span if trace.remote else b"", name, SERVER, began)


tracer: Tracer | None = None
"""Set while traces are on."""
current_span: ContextVar[Span | None] = ContextVar("current_span", default=None)
"""What whatever happens now is a part of; none where traces are off, or outside of a request."""


def _remote(headers: Iterable[tuple[bytes, bytes]]) -> tuple[Remote | None, bytes]:
    """What ``traceparent`` says, and ``tracestate`` as it came; what is not well-formed, or comes twice, is nothing."""
    given = [value for name, value in headers if name == b"traceparent"]
    found = _TRACEPARENT.fullmatch(given[0]) if len(given) == 1 else None
    if found is None or (found[1] == b"00" and found[5]):
        return None, b""
    state = b",".join(value for name, value in headers if name == b"tracestate")
    remote = Remote(bytes.fromhex(found[2].decode()), bytes.fromhex(found[3].decode()), bool(int(found[4], 16) & 1))
    return remote, state if _STATE.fullmatch(state) else b""
