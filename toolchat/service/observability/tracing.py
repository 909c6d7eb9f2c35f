"""The switch of traces. OpenTelemetry's SDK, imported only while they are on, reads its variables itself."""

import re
from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Literal
from urllib.parse import urlsplit, urlunsplit

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_settings import SettingsConfigDict

from toolchat.errors import ConfigurationError
from toolchat.service.settings.base import EnvironmentSettings, Texts, read_settings

if TYPE_CHECKING:
    from toolchat.service.observability.spans import TracingObserver

_FLUSH_SECONDS = 3.0
_PREFIX = "OTEL_"
_REMEDIES = {
    "http": "the extra otel: pip install '.[otel]'",
    "grpc": "pip install opentelemetry-exporter-otlp-proto-grpc",
}


def _endpoint(value: str) -> str:
    if value and not value.startswith(("http://", "https://")):
        raise ValueError("must be a URL in ASCII that starts with http:// or https://")
    return value


_Endpoint = Annotated[str, AfterValidator(_endpoint)]
_Lowercase = BeforeValidator(lambda value: value.strip().lower() if isinstance(value, str) else value)
_Protocol = Annotated[Literal["http/protobuf", "grpc"], _Lowercase]
_SAMPLER = re.compile("^(parentbased_)?(always_on|always_off|traceidratio)$")


class TracingSettings(EnvironmentSettings):
    """Those of OpenTelemetry's variables that switch traces on, or whose faults its SDK would ignore."""

    model_config = SettingsConfigDict(env_prefix=_PREFIX)

    exporter_otlp_endpoint: _Endpoint = ""
    exporter_otlp_traces_endpoint: _Endpoint = ""
    exporter_otlp_protocol: _Protocol = "http/protobuf"
    exporter_otlp_traces_protocol: _Protocol | None = None
    traces_exporter: Annotated[Literal["otlp", "none"], _Lowercase] = "otlp"
    sdk_disabled: bool = False
    traces_sampler: Annotated[str, _Lowercase, Field(pattern=_SAMPLER)] = "parentbased_always_on"
    traces_sampler_arg: float = Field(1, ge=0, le=1)
    propagators: Texts = ("tracecontext",)
    instrumentation_genai_capture_message_content: bool = False

    @property
    def is_on(self) -> bool:
        """Whether traces are recorded: the SDK itself would send to a collector on this machine by default."""
        is_off = self.sdk_disabled or self.traces_exporter == "none"
        return not is_off and bool(self.exporter_otlp_endpoint or self.exporter_otlp_traces_endpoint)

    @property
    def protocol(self) -> str:
        """``http`` or ``grpc``."""
        return (self.exporter_otlp_traces_protocol or self.exporter_otlp_protocol).partition("/")[0]

    @property
    def exporter(self) -> str:
        """The module of the exporter."""
        return f"opentelemetry.exporter.otlp.proto.{self.protocol}.trace_exporter"

    @property
    def target(self) -> str:
        """Where traces are sent, without what may be a secret: a user, a password, a query."""
        path = "/v1/traces" if self.protocol != "grpc" else ""
        url = urlsplit(self.exporter_otlp_traces_endpoint or self.exporter_otlp_endpoint.rstrip("/") + path)
        return urlunsplit((url.scheme, url.netloc.rpartition("@")[2], url.path, "", ""))

    @property
    def sampling(self) -> str:
        """The sampler, in the words of the variables."""
        ratio = f" {self.traces_sampler_arg:g}" if self.traces_sampler.endswith("ratio") else ""
        return self.traces_sampler + ratio


def read_tracing_settings() -> TracingSettings:
    """Read them; if traces are on, what they need must be installed."""
    settings = read_settings(TracingSettings)
    if settings.is_on:
        try:
            find_spec(settings.exporter)
        except ModuleNotFoundError:
            remedy = _REMEDIES[settings.protocol]
            raise ConfigurationError(f"OTEL_EXPORTER_OTLP_ENDPOINT: traces need {remedy}") from None
        for name in settings.propagators:
            if name != "none" and not entry_points(group="opentelemetry_propagator", name=name):
                raise ConfigurationError(f"OTEL_PROPAGATORS: {name} is unknown or not installed")
    return settings


def other_variables(names: Collection[str]) -> set[str]:
    """The variables that the SDK reads in addition, if any of the names could be one of them."""
    if not any(name.upper().startswith(_PREFIX) for name in names):
        return set()
    try:
        from opentelemetry.sdk import environment_variables
    except ModuleNotFoundError:
        return set()
    return {name for name in vars(environment_variables) if name.startswith(_PREFIX)}


observer: "TracingObserver | None" = None
"""Records the spans; set while traces are on."""


def current_ids() -> dict[str, str]:
    """``trace_id`` and ``span_id`` in hexadecimal; empty if traces are off, and outside of a request."""
    return {} if observer is None else observer.current_ids()


def exemplar() -> dict[str, str] | None:
    """The current trace as the exemplar of a metric, if it is recorded."""
    return {"trace_id": observer.current_ids()["trace_id"]} if observer and observer.is_recorded() else None


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
    async with exporting(settings, min(_FLUSH_SECONDS, shutdown_timeout)) as (tracer, exporter):

        def failure() -> str:
            return exporter.failure and f"{exporter.failure}: {settings.target}"

        before, observer = observer, TracingObserver(tracer, failure, captures=captures)
        try:
            yield
        finally:
            observer = before
