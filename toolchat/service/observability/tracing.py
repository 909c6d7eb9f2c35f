"""The switch of traces, and the current one. Nothing of OpenTelemetry is imported while traces are off."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from toolchat.service.observability.tracing_settings import TracingSettings

if TYPE_CHECKING:
    from toolchat.service.observability.spans import TracingObserver

_FLUSH_SECONDS = 3.0

observer: "TracingObserver | None" = None
"""Records the spans; set while traces are on."""


def current_ids() -> dict[str, str]:
    """``trace_id`` and ``span_id`` in hexadecimal; empty if traces are off, and outside of a request."""
    return {} if observer is None else observer.current_ids()


def exemplar() -> dict[str, str] | None:
    """The current trace as the exemplar of a metric, if it is recorded."""
    return None if observer is None else observer.exemplar()


@asynccontextmanager
async def traced(settings: TracingSettings, shutdown_timeout: float) -> AsyncGenerator[None, None]:
    """Trace requests within the block if traces are configured; export the remaining spans at its end."""
    global observer
    if not settings.is_on:
        yield
        return
    from toolchat.service.observability.span_export import exporting
    from toolchat.service.observability.spans import TracingObserver

    captures = settings.instrumentation_genai_capture_message_content
    async with exporting(settings, min(_FLUSH_SECONDS, shutdown_timeout)) as tracer:
        before, observer = observer, TracingObserver(tracer, captures=captures)
        try:
            yield
        finally:
            observer = before
