"""The export of spans by OpenTelemetry's SDK, as its variables configure it; imported only while traces are on."""

import asyncio
import logging
import re
import threading
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import entry_points
from math import inf
from typing import Any

from opentelemetry import propagate, trace
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import NoOpTracer, Tracer

from toolchat import __version__
from toolchat.errors import ConfigurationError
from toolchat.service.observability import metrics
from toolchat.service.observability.tracing import TracingSettings

_log = logging.getLogger(__name__)
_WARNING_EVERY = 60.0
_QUERY = re.compile(r"\?[^\s)]+")


@asynccontextmanager
async def exporting(settings: TracingSettings, flush_timeout: float) -> AsyncGenerator[Tracer, None]:
    """Within the block, export the spans that the yielded tracer and tools start."""
    before = propagate.get_global_textmap()
    _set_propagators(settings.propagators)
    try:
        processor = _BoundedProcessor(_CountingExporter(settings), settings.bsp_max_queue_size)
    except ValueError as error:
        raise ConfigurationError(f"OTEL_...: {error}") from None
    provider = _provider(processor)
    try:
        yield provider.get_tracer("toolchat", __version__)
    finally:
        propagate.set_global_textmap(before)
        # In a thread of its own, since the SDK waits half a minute for a collector that does not answer.
        last_export = threading.Thread(target=provider.shutdown, daemon=True)
        last_export.start()
        await asyncio.to_thread(last_export.join, flush_timeout)
        if last_export.is_alive():
            processor.exporter.count_lost(processor.waiting, "the collector did not answer in time")


async def try_export(settings: TracingSettings, seconds: float) -> str:
    """Send the collector an empty request; returns why that failed, or nothing."""
    exporter = _CountingExporter(settings, seconds)
    result = await asyncio.to_thread(exporter.export, ())
    exporter.shutdown()
    return "" if result is SpanExportResult.SUCCESS else exporter.reason


class _CountingExporter(SpanExporter, logging.Handler):
    """Counts the spans that the SDK's exporter cannot send, and logs once a minute how many, and why.

    As a handler it receives that exporter's own log, which would otherwise have a line for each attempt.
    """

    def __init__(self, settings: TracingSettings, timeout: float | None = None) -> None:
        logging.Handler.__init__(self)
        self._exporter = _otlp_exporter(settings, timeout)
        self.reason = ""
        self.finished = 0
        """The number of spans that were exported or lost."""
        self._unreported, self._reported_at = 0, -inf
        self._logger = logging.getLogger("opentelemetry.exporter")
        self._logger.addHandler(self)
        self._logger.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the first message of an export, which says more than those about its retries."""
        self.reason = self.reason or _QUERY.sub("", record.getMessage())  # a query may contain a key

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.reason = ""
        try:
            result = self._exporter.export(spans)
        except Exception as error:  # noqa: BLE001 - the SDK would log a traceback for every batch
            result, self.reason = SpanExportResult.FAILURE, type(error).__name__
        self.finished += len(spans)
        if result is not SpanExportResult.SUCCESS and spans:
            self.count_lost(len(spans), self.reason)
        return result

    def count_lost(self, count: int, reason: str) -> None:
        metrics.SPANS_LOST.inc(count)
        self._unreported += count
        if time.monotonic() - self._reported_at >= _WARNING_EVERY:
            lost, self._unreported, self._reported_at = self._unreported, 0, time.monotonic()
            _log.warning("traces could not be sent", extra={"spans_lost": lost, "reason": reason})

    def shutdown(self) -> None:
        self._exporter.shutdown()
        self._logger.removeHandler(self)
        self._logger.propagate = not self._logger.handlers


class _BoundedProcessor(BatchSpanProcessor):
    """A batch processor that counts the spans for which its queue has no room; the SDK drops them uncounted."""

    def __init__(self, exporter: _CountingExporter, max_queue_size: int) -> None:
        super().__init__(exporter, max_queue_size)
        self.exporter, self._max_queue_size, self._accepted = exporter, max_queue_size, 0
        self._lock = threading.Lock()  # tools end spans in threads

    @property
    def waiting(self) -> int:
        """The number of spans that are queued or being sent."""
        return self._accepted - self.exporter.finished

    def on_end(self, span: ReadableSpan) -> None:
        with self._lock:
            has_room = self.waiting < self._max_queue_size
            self._accepted += has_room
        if has_room:
            super().on_end(span)
        else:
            self.exporter.count_lost(1, "too many spans were waiting")


class _Provider(TracerProvider):
    """Provides no tracer to the SDK of MCP, whose spans would contain the messages of errors, texts of others."""

    def get_tracer(self, instrumenting_module_name: str, *args: Any, **kwargs: Any) -> Tracer:
        if instrumenting_module_name == "mcp-python-sdk":
            return NoOpTracer()
        return super().get_tracer(instrumenting_module_name, *args, **kwargs)


def _provider(processor: BatchSpanProcessor) -> TracerProvider:
    detected = OTELResourceDetector().detect().attributes  # the variables' name of the service takes precedence
    resource = Resource.create({"service.name": "toolchat", "service.version": __version__, **detected})
    provider = _Provider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(processor)
    # The tracers of tools use the global provider. It can be set once per process; an outer application's stays.
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        trace.set_tracer_provider(provider)
    return provider


def _otlp_exporter(settings: TracingSettings, timeout: float | None) -> SpanExporter:
    if settings.protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc import trace_exporter as grpc

        return grpc.OTLPSpanExporter(timeout=timeout)
    from opentelemetry.exporter.otlp.proto.http import trace_exporter as http

    return http.OTLPSpanExporter(timeout=timeout)


def _set_propagators(names: Sequence[str]) -> None:
    """Use these propagators; the SDK's default would forward the baggage of clients to every upstream."""
    found = [next(iter(entry_points(group="opentelemetry_propagator", name=name))) for name in names if name != "none"]
    propagate.set_global_textmap(CompositePropagator([each.load()() for each in found]))
    for name in ("opentelemetry.trace.propagation", "opentelemetry.baggage"):
        logging.getLogger(name).setLevel(logging.ERROR)  # a client could fill the log with warnings
