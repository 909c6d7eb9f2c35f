"""Whether traces are recorded, and what OpenTelemetry's SDK, which reads its variables itself, ignores silently."""

import importlib.util
import re
from collections.abc import Collection
from importlib.metadata import entry_points
from typing import Annotated, Literal
from urllib.parse import urlsplit, urlunsplit

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_settings import SettingsConfigDict

from toolchat.errors import ConfigurationError
from toolchat.service.settings.base import EnvironmentSettings, Texts, read_settings

_PREFIX = "OTEL_"
_PACKAGES = {
    "http/protobuf": ("opentelemetry.exporter.otlp.proto.http", "the extra otel: pip install '.[otel]'"),
    "grpc": ("opentelemetry.exporter.otlp.proto.grpc", "pip install opentelemetry-exporter-otlp-proto-grpc"),
}


def _endpoint(value: str) -> str:
    if value and not value.startswith(("http://", "https://")):
        raise ValueError("must be a URL in ASCII that starts with http:// or https://")
    return value


_Endpoint = Annotated[str, AfterValidator(_endpoint)]
_Lowercase = BeforeValidator(lambda value: value.strip().lower() if isinstance(value, str) else value)
_Protocol = Annotated[Literal["http/protobuf", "grpc"], _Lowercase]
_SAMPLER = re.compile("(parentbased_)?(always_on|always_off|traceidratio)")


class TracingSettings(EnvironmentSettings):
    """Those of OpenTelemetry's variables that switch traces on, or that have to be valid."""

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
    bsp_max_queue_size: int = Field(2048, ge=1)
    instrumentation_genai_capture_message_content: bool = False

    @property
    def is_on(self) -> bool:
        """Whether traces are recorded: the SDK itself would send to a collector on this machine by default."""
        is_off = self.sdk_disabled or self.traces_exporter == "none"
        return not is_off and bool(self.exporter_otlp_endpoint or self.exporter_otlp_traces_endpoint)

    @property
    def protocol(self) -> str:
        """The protocol of traces."""
        return self.exporter_otlp_traces_protocol or self.exporter_otlp_protocol

    @property
    def target(self) -> str:
        """Where traces are sent, without what may be a secret: a user, a password, a query."""
        path = "/v1/traces" if self.protocol != "grpc" else ""
        url = urlsplit(self.exporter_otlp_traces_endpoint or self.exporter_otlp_endpoint.rstrip("/") + path)
        return urlunsplit((url.scheme, url.netloc.rpartition("@")[2], url.path, "", ""))

    @property
    def sampling(self) -> str:
        """The sampler, in the words of the variables."""
        has_ratio = self.traces_sampler.endswith("ratio")
        return f"{self.traces_sampler} {self.traces_sampler_arg:g}" if has_ratio else self.traces_sampler


def read_tracing_settings() -> TracingSettings:
    """Read them; if traces are on, what they need must be installed."""
    settings = read_settings(TracingSettings)
    if settings.is_on:
        package, remedy = _PACKAGES[settings.protocol]
        if not _is_installed(package):
            name = "TRACES_ENDPOINT" if settings.exporter_otlp_traces_endpoint else "ENDPOINT"
            raise ConfigurationError(f"OTEL_EXPORTER_OTLP_{name}: traces need {remedy}")
        for name in settings.propagators:
            if name != "none" and not entry_points(group="opentelemetry_propagator", name=name):
                raise ConfigurationError(f"OTEL_PROPAGATORS: {name} is unknown or not installed")
    return settings


def other_variables(names: Collection[str]) -> set[str]:
    """The variables that the SDK reads in addition, if any of the names could be one of them."""
    if not any(name.upper().startswith(_PREFIX) for name in names) or not _is_installed("opentelemetry.sdk"):
        return set()
    from opentelemetry.sdk import environment_variables

    return {name for name in vars(environment_variables) if name.startswith(_PREFIX)}


def _is_installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:
        return False
