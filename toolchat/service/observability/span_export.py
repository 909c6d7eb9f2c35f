"""The export of spans by OpenTelemetry's SDK, as its variables configure it; imported only while traces are on."""

import asyncio
import logging
import re
import threading
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from opentelemetry import propagate, trace
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import NoOpTracer, Tracer

from toolchat import __version__
from toolchat.errors import ConfigurationError
from toolchat.http.failures import cause_of
from toolchat.service.observability import metrics
from toolchat.service.observability.tracing import TracingSettings

_log = logging.getLogger(__name__)
_QUERY = re.compile(r"\?[^\s)]+")


@asynccontextmanager
async def exporting(settings: TracingSettings, flush_timeout: float) -> AsyncGenerator[tuple[Tracer, "Exporter"], None]:
    """Within the block, export the spans that the yielded tracer and tools start."""
    before = propagate.get_global_textmap()
    _set_propagators(settings.propagators)
    try:
        exporter = Exporter(settings)
        provider = _provider(exporter)
    except ValueError as error:
        raise ConfigurationError(f"OTEL_...: {error}") from None
    try:
        yield provider.get_tracer("toolchat", __version__), exporter
    finally:
        propagate.set_global_textmap(before)
        # In a thread of its own, since the SDK waits half a minute for a collector that does not answer.
        last_export = threading.Thread(target=provider.shutdown, daemon=True)
        last_export.start()
        await asyncio.to_thread(last_export.join, flush_timeout)
        if last_export.is_alive():
            exporter.report("the collector did not answer in time")


async def try_export(settings: TracingSettings, seconds: float) -> str:
    """Send the collector an empty request; returns why that failed, or nothing."""
    exporter = Exporter(settings, seconds)
    await asyncio.to_thread(exporter.export, ())
    exporter.shutdown()
    return exporter.failure


class Exporter(SpanExporter, logging.Handler):
    """Counts the spans that the SDK's exporter cannot send, and logs why, once until the next success.

    As a handler it receives that exporter's own log, which would otherwise have a line for each attempt.
    """

    def __init__(self, settings: TracingSettings, timeout: float | None = None) -> None:
        logging.Handler.__init__(self)
        self._target = settings.target
        self._exporter: SpanExporter = import_module(settings.exporter).OTLPSpanExporter(timeout=timeout)
        self.failure = ""
        """Why the last export failed; empty if it did not."""
        self._reason = ""
        self._logger = logging.getLogger("opentelemetry.exporter")
        self._logger.addHandler(self)
        self._logger.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the first message of an export, which says more than those about its retries."""
        errors = [each for each in record.args or () if isinstance(each, Exception)]
        cause = cause_of(errors[0]) if errors else ""
        self._reason = self._reason or cause or _QUERY.sub("", record.getMessage())  # a query may contain a key

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self._reason = ""
        try:
            result = self._exporter.export(spans)
        except Exception as error:  # noqa: BLE001 - the SDK would log a traceback for every batch
            result, self._reason = SpanExportResult.FAILURE, type(error).__name__
        if result is SpanExportResult.SUCCESS:
            self.failure = ""
        else:
            metrics.SPANS_LOST.inc(len(spans))
            self.report(self._reason)
        return result

    def report(self, reason: str) -> None:
        """Log why spans are lost, unless the exports before failed as well."""
        before, self.failure = self.failure, reason
        if not before:
            _log.warning("traces could not be sent", extra={"reason": f"{reason}: {self._target}"})

    def shutdown(self) -> None:
        self._exporter.shutdown()
        self._logger.removeHandler(self)
        self._logger.propagate = not self._logger.handlers


class _Provider(TracerProvider):
    """Provides no tracer to the SDK of MCP, whose spans would contain the messages of errors, texts of others."""

    def get_tracer(self, instrumenting_module_name: str, *args: Any, **kwargs: Any) -> Tracer:
        if instrumenting_module_name == "mcp-python-sdk":
            return NoOpTracer()
        return super().get_tracer(instrumenting_module_name, *args, **kwargs)


def _provider(exporter: Exporter) -> TracerProvider:
    detected = OTELResourceDetector().detect().attributes  # the variables' name of the service takes precedence
    resource = Resource.create({"service.name": "toolchat", "service.version": __version__, **detected})
    provider = _Provider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    # The tracers of tools use the global provider. It can be set once per process; an outer application's stays.
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        trace.set_tracer_provider(provider)
    return provider


def _set_propagators(names: Sequence[str]) -> None:
    """Use these propagators; the SDK's default would forward the baggage of clients to every upstream."""
    found = [next(iter(entry_points(group="opentelemetry_propagator", name=name))) for name in names if name != "none"]
    propagate.set_global_textmap(CompositePropagator([each.load()() for each in found]))
    for name in ("opentelemetry.trace.propagation", "opentelemetry.baggage"):
        logging.getLogger(name).setLevel(logging.ERROR)  # a client could fill the log with warnings
