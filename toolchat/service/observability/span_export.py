"""The export of spans by OpenTelemetry's SDK, as its variables configure it; imported only while traces are on."""

import asyncio
import logging
import os
import re
import threading
import time
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
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
from toolchat.service.observability.tracing_settings import TracingConfiguration

_log = logging.getLogger(__name__)
_WARNING_EVERY = 60.0
_QUERY = re.compile(r"\?[^\s)]+")


@asynccontextmanager
async def exporting(configuration: TracingConfiguration, flush_timeout: float) -> AsyncGenerator[Tracer, None]:
    """Within the block, export the spans that the yielded tracer and tools start."""
    with _propagators(configuration.settings.propagators):
        losses = _Losses()
        processor = _processor(configuration, losses)
        provider = _provider(configuration, processor)
        try:
            yield provider.get_tracer("toolchat", __version__)
        finally:
            # In a thread of its own, since the SDK waits half a minute for a collector that does not answer.
            last_export = threading.Thread(target=_close, args=(provider, losses), daemon=True)
            last_export.start()
            await asyncio.to_thread(last_export.join, flush_timeout)
            if last_export.is_alive():
                losses.give_up(processor.waiting)


async def try_export(configuration: TracingConfiguration, seconds: float) -> str:
    """Send the collector an empty request; returns why that failed, or nothing."""
    with closing(_Losses()) as losses:
        exporter = _otlp_exporter(configuration, seconds)
        result = await asyncio.to_thread(exporter.export, ())
        exporter.shutdown()
    return "" if result is SpanExportResult.SUCCESS else losses.reason


class _Losses(logging.Handler):
    """Counts lost spans, and logs once a minute how many, with the reason from the exporter's own log.

    As a handler it receives that log, which would otherwise have a line for each attempt.
    """

    def __init__(self) -> None:
        super().__init__()
        self.reason = ""
        self._unreported = 0
        self._reported_at = -inf
        self._has_given_up = False
        self._logger = logging.getLogger("opentelemetry.exporter")
        self._logger.addHandler(self)
        self._logger.propagate = False

    def close(self) -> None:
        """Return the log to the other handlers."""
        self._logger.removeHandler(self)
        self._logger.propagate = not self._logger.handlers
        super().close()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the first message of an export, which says more than those about its retries."""
        self.reason = self.reason or _QUERY.sub("", record.getMessage())  # a query may contain a key

    def add(self, count: int) -> None:
        """Count lost spans."""
        if self._has_given_up:
            return
        metrics.SPANS_LOST.inc(count)
        self._unreported += count
        if time.monotonic() - self._reported_at >= _WARNING_EVERY:
            lost, self._unreported, self._reported_at = self._unreported, 0, time.monotonic()
            reason = self.reason or "too many spans were waiting"
            _log.warning("traces could not be sent", extra={"spans_lost": lost, "reason": reason})

    def give_up(self, count: int) -> None:
        """Count the spans that were still waiting at shutdown; whatever fails later was one of them."""
        self._has_given_up = True
        metrics.SPANS_LOST.inc(count)
        if lost := count + self._unreported:
            _log.warning("the last traces could not be sent in time", extra={"spans_lost": lost})


class _CountingExporter(SpanExporter):
    """Exports by another exporter, and counts the spans that could not be sent."""

    def __init__(self, exporter: SpanExporter, losses: _Losses) -> None:
        self._exporter, self._losses = exporter, losses
        self.finished = 0
        """The number of spans that were exported or lost."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Export spans; see :meth:`SpanExporter.export`."""
        self._losses.reason = ""
        try:
            result = self._exporter.export(spans)
        except Exception as error:  # noqa: BLE001 - the SDK would log a traceback for every batch
            result, self._losses.reason = SpanExportResult.FAILURE, type(error).__name__
        if result is not SpanExportResult.SUCCESS:
            self._losses.add(len(spans))
        self.finished += len(spans)
        return result

    def shutdown(self) -> None:
        """Shut the other exporter down."""
        self._exporter.shutdown()


class _BoundedProcessor(BatchSpanProcessor):
    """A batch processor that counts the spans for which its queue has no room; the SDK drops them uncounted."""

    def __init__(self, exporter: _CountingExporter, losses: _Losses, max_queue_size: int) -> None:
        super().__init__(exporter, max_queue_size)
        self._exporter, self._losses, self._max_queue_size = exporter, losses, max_queue_size
        self._accepted = 0
        self._lock = threading.Lock()  # tools end spans in threads

    @property
    def waiting(self) -> int:
        """The number of spans that are queued or being sent."""
        return self._accepted - self._exporter.finished

    def on_end(self, span: ReadableSpan) -> None:
        """Queue a span."""
        with self._lock:
            has_room = self.waiting < self._max_queue_size
            self._accepted += has_room
        if has_room:
            super().on_end(span)
        else:
            self._losses.add(1)


class _Provider(TracerProvider):
    """Provides the tracers of the service and of its tools, but none to the SDK of MCP.

    Its spans would contain the messages of errors, which are the texts of other servers and of users.
    """

    def get_tracer(self, instrumenting_module_name: str, *args: Any, **kwargs: Any) -> Tracer:
        if instrumenting_module_name == "mcp-python-sdk":
            return NoOpTracer()
        return super().get_tracer(instrumenting_module_name, *args, **kwargs)


def _processor(configuration: TracingConfiguration, losses: _Losses) -> _BoundedProcessor:
    exporter = _CountingExporter(_otlp_exporter(configuration), losses)
    try:
        with _environment(configuration.variables):
            return _BoundedProcessor(exporter, losses, configuration.settings.bsp_max_queue_size)
    except ValueError as error:
        raise ConfigurationError(f"OTEL_BSP_...: {error}") from None


def _provider(configuration: TracingConfiguration, processor: BatchSpanProcessor) -> TracerProvider:
    with _environment(configuration.variables):
        detected = OTELResourceDetector().detect().attributes
        resource = Resource.create({"service.name": "toolchat", "service.version": __version__, **detected})
        provider = _Provider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(processor)
    # The tracers of tools use the global provider. It can be set once per process; an outer application's stays.
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        trace.set_tracer_provider(provider)
    return provider


def _close(provider: TracerProvider, losses: _Losses) -> None:
    provider.shutdown()
    losses.close()


def _otlp_exporter(configuration: TracingConfiguration, timeout: float | None = None) -> SpanExporter:
    try:
        with _environment(configuration.variables):
            if configuration.settings.protocol == "grpc":
                from opentelemetry.exporter.otlp.proto.grpc import trace_exporter as grpc

                return grpc.OTLPSpanExporter(timeout=timeout)
            from opentelemetry.exporter.otlp.proto.http import trace_exporter as http

            return http.OTLPSpanExporter(timeout=timeout)
    except ValueError as error:
        raise ConfigurationError(f"OTEL_EXPORTER_OTLP_...: {error}") from None


@contextmanager
def _propagators(names: Sequence[str]) -> Generator[None, None, None]:
    """Use these propagators. The SDK reads ``OTEL_PROPAGATORS`` when it is imported, so it misses that of ``.env``."""
    found = [next(iter(entry_points(group="opentelemetry_propagator", name=name))) for name in names if name != "none"]
    before = propagate.get_global_textmap()
    propagate.set_global_textmap(CompositePropagator([each.load()() for each in found]))
    for name in ("opentelemetry.trace.propagation", "opentelemetry.baggage"):
        logging.getLogger(name).setLevel(logging.ERROR)  # a client could fill the log with warnings
    try:
        yield
    finally:
        propagate.set_global_textmap(before)


@contextmanager
def _environment(variables: Mapping[str, str]) -> Generator[None, None, None]:
    """Add variables to the environment while the SDK reads it."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
