"""Traces while the service runs: begun where requests come in, and sent as OpenTelemetry's variables say."""

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource

from app.observability import spans
from app.observability.otlp.encoding import export_request, head, written
from app.observability.otlp.sender import Sender
from app.observability.otlp.settings import TracingConfiguration
from app.observability.spans import Span, Tracer
from toolchat import __version__

__all__ = ["reached", "sending"]

_log = logging.getLogger(__name__)
_TOGETHER, _MOST_TOGETHER = 0.02, 250
"""Seconds, and spans, until those that have ended are written."""


@asynccontextmanager
async def sending(configuration: TracingConfiguration, flush_timeout: float) -> AsyncGenerator[None, None]:
    """Have the requests of this process traced as long as the block runs.

    Args:
        configuration: one that is on.
        flush_timeout: seconds that may be taken at the end to send the rest.
    """
    settings = configuration.settings
    exporter = _exporter(configuration)
    delay = settings.bsp_schedule_delay / 1000
    sender = Sender(
        exporter.send, delay=delay, batch=settings.bsp_max_export_batch_size, most=settings.bsp_max_queue_size
    )
    ended = _Ended(sender.put)
    captures = settings.instrumentation_genai_capture_message_content
    propagates = "tracecontext" in settings.propagators
    before = spans.tracer
    spans.tracer = Tracer(settings.sampler(), ended.keep, captures=captures, propagates=propagates)
    try:
        yield
    finally:
        spans.tracer = before
        ended.hand_on()
        await _closed(sender, flush_timeout)
        exporter.shutdown()  # type: ignore[no-untyped-call]


async def reached(configuration: TracingConfiguration, seconds: float) -> str:
    """Send the collector an empty request; why it was not taken in time, or nothing.

    Args:
        configuration: one that is on.
        seconds: how long it may take.
    """
    exporter = _exporter(configuration, seconds)
    try:
        return await asyncio.to_thread(exporter.send, ())
    finally:
        exporter.shutdown()  # type: ignore[no-untyped-call]


def _exporter(configuration: TracingConfiguration, timeout: float | None = None) -> "_Exporter":
    # One line a minute says that traces are lost, and not one for each try, with addresses and the texts of errors.
    for name in ("opentelemetry.exporter", "urllib3"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with _environment(configuration.variables):
        return _Exporter(head(Resource.create().attributes, "toolchat", __version__), timeout)


class _Ended:
    """Spans that have ended, written when some have come together: in a row that takes half the time.

    They then wait as bytes, since thousands of objects that wait would keep the garbage collector busy.
    """

    def __init__(self, put: Callable[[bytes, int], None]) -> None:
        self._put = put
        self._loop = asyncio.get_running_loop()
        self._spans: list[Span] = []

    def keep(self, spans: Sequence[Span]) -> None:
        """Take spans, which are handed on soon."""
        if not self._spans:
            self._loop.call_later(_TOGETHER, self.hand_on)
        self._spans += spans
        if len(self._spans) >= _MOST_TOGETHER:
            self.hand_on()

    def hand_on(self) -> None:
        """Hand on what has come until now."""
        spans, self._spans = self._spans, []
        if spans:
            self._put(written(spans), len(spans))


class _Exporter(OTLPSpanExporter):
    """OpenTelemetry's exporter, with its addresses, headers, certificates and tries, for spans that are bytes."""

    def __init__(self, heads: tuple[bytes, bytes], timeout: float | None) -> None:
        super().__init__(timeout=timeout)
        self._heads = heads

    def send(self, spans: Sequence[bytes]) -> str:
        """Send spans; why they did not arrive: a status, or the kind of error, and nothing that holds an address."""
        result = self._client.export(export_request(self._heads, spans))
        return "" if result.success else str(result.status_code or type(result.error).__name__)


async def _closed(sender: Sender, seconds: float) -> None:
    """Let the thread send what is left, which keeps neither the loop nor, after that time, the process from ending."""
    sender.close()
    try:
        async with asyncio.timeout(seconds):
            while not sender.is_done:  # noqa: ASYNC110 - a thread's end is no event
                await asyncio.sleep(0.01)
    except TimeoutError:
        if left := sender.give_up():
            _log.warning("the last traces could not be sent in time", extra={"spans_lost": left})


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
