"""Traces while the service runs: sampled, kept, and sent by a thread, so that nobody waits for the collector."""

import asyncio
import logging
import os
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.sampling import Sampler
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, TraceFlags, set_span_in_context

from app.observation import spans
from app.observation.spans import Remote, Span, Tracer
from app.tracing.otlp import export_request, head
from app.tracing.settings import TracingConfiguration
from app.version import VERSION

__all__ = ["sending"]

_log = logging.getLogger(__name__)
_WARNING_EVERY = 60.0
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)


@asynccontextmanager
async def sending(configuration: TracingConfiguration, flush_timeout: float) -> AsyncGenerator[None, None]:
    """Have the requests of this process traced as long as the block runs.

    Args:
        configuration: one that is on.
        flush_timeout: seconds that may be taken at the end to send the rest.
    """
    settings = configuration.settings
    with _environment(configuration.variables):
        provider = TracerProvider(shutdown_on_exit=False)
        exporter = _Exporter(head(provider.resource.attributes, "toolchat", VERSION))
        processor = BatchSpanProcessor(exporter)
    _say_it_ourselves()
    before, spans.tracer = (
        spans.tracer,
        Tracer(
            _samples(provider.sampler),
            _kept_by(processor),
            captures=settings.instrumentation_genai_capture_message_content,
            propagates="tracecontext" in settings.propagators,
        ),
    )
    try:
        yield
    finally:
        spans.tracer = before
        await _in_time(processor.shutdown, flush_timeout)
        exporter.give_up()


def _samples(sampler: Sampler) -> Callable[[bytes, Remote | None], bool]:
    def samples(trace: bytes, parent: Remote | None) -> bool:
        identifier, context = int.from_bytes(trace), None
        if parent is not None:
            flags = _SAMPLED if parent.is_sampled else TraceFlags()
            seen = SpanContext(identifier, int.from_bytes(parent.span), is_remote=True, trace_flags=flags)
            context = set_span_in_context(NonRecordingSpan(seen))
        return sampler.should_sample(context, identifier, "", SpanKind.SERVER).decision.is_sampled()

    return samples


class _Ended:
    """A span for the processor, which asks of what it is given only whether it is sampled."""

    __slots__ = ("span",)
    context = SpanContext(1, 1, is_remote=False, trace_flags=_SAMPLED)

    def __init__(self, span: Span) -> None:
        self.span = span


def _kept_by(processor: BatchSpanProcessor) -> Callable[[Span], None]:
    end: Callable[[Any], None] = processor.on_end

    def keep(span: Span) -> None:
        end(_Ended(span))

    return keep


class _Exporter(OTLPSpanExporter):
    """OpenTelemetry's exporter, with its addresses, headers, certificates and tries, for spans of our own."""

    def __init__(self, heads: tuple[bytes, bytes]) -> None:
        super().__init__()
        self._heads = heads
        self._lost = 0
        self._warned_at = -_WARNING_EVERY

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send spans; called by the processor's thread."""
        data = export_request(self._heads, [each.span for each in spans])  # type: ignore[attr-defined]
        if self._client.export(data).success:
            return SpanExportResult.SUCCESS
        self._lost += len(spans)
        if time.monotonic() - self._warned_at >= _WARNING_EVERY:
            self._warned_at = time.monotonic()
            _log.warning("traces cannot be sent", extra={"spans_lost": self._lost})
        return SpanExportResult.FAILURE

    def give_up(self) -> None:
        """Try no longer to send what has not been sent."""
        self._client._shutdown_event.set()  # noqa: SLF001 - closing it waits for nobody, but may be done only once


def _say_it_ourselves() -> None:
    """Have one line a minute say that traces are lost, and not one for each try, with addresses and texts of errors."""
    for name in ("opentelemetry.exporter", "opentelemetry.sdk._shared_internal", "urllib3"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


async def _in_time(work: Callable[[], object], seconds: float) -> None:
    """Do something that blocks, in a thread that does not keep the process from ending."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def run() -> None:
        try:
            work()
        finally:
            if not loop.is_closed():
                loop.call_soon_threadsafe(done.set)

    threading.Thread(target=run, name="toolchat-traces", daemon=True).start()
    try:
        async with asyncio.timeout(seconds):
            await done.wait()
    except TimeoutError:
        _log.warning("the last traces could not be sent in time")


@contextmanager
def _environment(variables: Mapping[str, str]) -> Generator[None, None, None]:
    """Have the environment hold these as well, for packages that read nothing else."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
