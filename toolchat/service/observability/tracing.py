"""The switch of traces, and the ids of the current one. Nothing of OpenTelemetry is imported while traces are off."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from toolchat.service.observability.tracing_settings import TracingConfiguration

if TYPE_CHECKING:
    from toolchat.service.observability.spans import TracingObserver

_FLUSH_SECONDS = 3.0


observer: "TracingObserver | None" = None
"""Records the spans; set while traces are on."""


def current_ids() -> dict[str, str]:
    """``trace_id`` and ``span_id`` in hexadecimal; empty if traces are off, and outside of a request."""
    return {} if observer is None else observer.current_ids()


@asynccontextmanager
async def traced(configuration: TracingConfiguration, shutdown_timeout: float) -> AsyncGenerator[None, None]:
    """Trace requests within the block if traces are configured; export the remaining spans at its end."""
    global observer
    if not configuration.is_on:
        yield
        return
    from toolchat.service.observability.span_export import exporting
    from toolchat.service.observability.spans import TracingObserver

    captures = configuration.settings.instrumentation_genai_capture_message_content
    async with exporting(configuration, min(_FLUSH_SECONDS, shutdown_timeout)) as tracer:
        before, observer = observer, TracingObserver(tracer, captures=captures)
        try:
            yield
        finally:
            observer = before
