"""Settings of traces: whether they are recorded, and what OpenTelemetry's SDK would ignore without a word.

The SDK reads its variables itself; the fields here are checked at start, or described for ``.env.example``.
"""

import importlib.util
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Annotated, Literal
from urllib.parse import urlsplit, urlunsplit

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_settings import SettingsConfigDict

from toolchat.errors import ConfigurationError
from toolchat.service.settings.base import EnvironmentSettings, Texts, read_settings
from toolchat.tool_calling.setting_types import Secret

_PREFIX = "OTEL_"
_PATH = "/v1/traces"
_PACKAGES = {
    "http/protobuf": ("opentelemetry.exporter.otlp.proto.http", "the extra otel: pip install '.[otel]'"),
    "grpc": ("opentelemetry.exporter.otlp.proto.grpc", "pip install opentelemetry-exporter-otlp-proto-grpc"),
}


def _endpoint(value: str) -> str:
    if value and not value.startswith(("http://", "https://")):
        raise ValueError("must be a URL in ASCII that starts with http:// or https://")
    return value


def _lowercase(value: object) -> object:
    return value.strip().lower() if isinstance(value, str) else value


Endpoint = Annotated[str, AfterValidator(_endpoint)]
Lowercase = BeforeValidator(_lowercase)


class TracingSettings(EnvironmentSettings):
    """Traces, set by OpenTelemetry's variables; they need the extra ``otel``."""

    model_config = SettingsConfigDict(env_prefix=_PREFIX)

    exporter_otlp_endpoint: Endpoint = Field(
        "",
        description="OTLP endpoint that receives traces, without /v1/traces, such as http://collector:4318; empty: off",
    )
    exporter_otlp_traces_endpoint: Endpoint = Field(
        "", description="Complete URL for traces; takes precedence over OTEL_EXPORTER_OTLP_ENDPOINT"
    )
    exporter_otlp_headers: Secret | None = Field(
        None, description="Headers of OTLP requests, NAME=VALUE separated by commas, values percent-encoded"
    )
    exporter_otlp_protocol: Annotated[Literal["http/protobuf", "grpc"], Lowercase] = Field(
        "http/protobuf", description="Protocol of OTLP; grpc needs the package opentelemetry-exporter-otlp-proto-grpc"
    )
    exporter_otlp_traces_protocol: Annotated[Literal["http/protobuf", "grpc"] | None, Lowercase] = Field(
        None, description="Protocol for traces; takes precedence over OTEL_EXPORTER_OTLP_PROTOCOL"
    )
    traces_exporter: Annotated[Literal["otlp", "none"], Lowercase] = Field("otlp", description="none turns traces off")
    sdk_disabled: bool = Field(False, description="true turns traces off")
    traces_sampler: Annotated[
        Literal[
            "always_on",
            "always_off",
            "traceidratio",
            "parentbased_always_on",
            "parentbased_always_off",
            "parentbased_traceidratio",
        ],
        Lowercase,
    ] = Field(
        "parentbased_always_on", description="Sampler of traces; parentbased_...: follows the decision of the caller"
    )
    traces_sampler_arg: float = Field(1, ge=0, le=1, description="Sampling ratio for traceidratio")
    propagators: Texts = Field(
        ("tracecontext",),
        description="Formats in which a trace is read from clients and sent to upstreams, or none; "
        "baggage also forwards the client's baggage",
    )
    bsp_max_queue_size: int = Field(
        2048, ge=1, description="Largest number of spans waiting for export; further ones are dropped"
    )
    service_name: str = Field("toolchat", description="Service name in traces")
    resource_attributes: str = Field("", description="Further resource attributes, NAME=VALUE separated by commas")
    instrumentation_genai_capture_message_content: bool = Field(
        False, description="true records questions, answers, arguments and results in spans"
    )

    @property
    def protocol(self) -> str:
        """The protocol of traces."""
        return self.exporter_otlp_traces_protocol or self.exporter_otlp_protocol


@dataclass(frozen=True, slots=True)
class TracingConfiguration:
    """The settings that were read from the environment and ``.env``."""

    settings: TracingSettings
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Every ``OTEL_`` variable, also those of ``.env``; the SDK reads the environment only."""

    @property
    def is_on(self) -> bool:
        """Whether traces are recorded."""
        settings = self.settings
        is_off = settings.sdk_disabled or settings.traces_exporter == "none"
        return not is_off and bool(settings.exporter_otlp_endpoint or settings.exporter_otlp_traces_endpoint)

    @property
    def target(self) -> str:
        """Where traces are sent, without what may be a secret: a user, a password, a query."""
        settings = self.settings
        path = _PATH if settings.protocol != "grpc" else ""
        url = urlsplit(settings.exporter_otlp_traces_endpoint or settings.exporter_otlp_endpoint.rstrip("/") + path)
        return urlunsplit((url.scheme, url.netloc.rpartition("@")[2], url.path, "", ""))

    @property
    def sampling(self) -> str:
        """The sampler, in the words of the variables."""
        settings = self.settings
        has_ratio = settings.traces_sampler.endswith("ratio")
        return f"{settings.traces_sampler} {settings.traces_sampler_arg:g}" if has_ratio else settings.traces_sampler

    @property
    def warnings(self) -> list[str]:
        """Values that are probably mistakes."""
        settings = self.settings
        is_complete = settings.exporter_otlp_endpoint.rstrip("/").endswith(_PATH)
        if not is_complete or settings.exporter_otlp_traces_endpoint or not self.is_on:
            return []
        text = f"{_PATH} is appended to it once more; a complete URL belongs into OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
        return [f"OTEL_EXPORTER_OTLP_ENDPOINT: {text}"]

    @classmethod
    def read(cls) -> "TracingConfiguration":
        """Read it."""
        settings = read_settings(TracingSettings)
        if not cls(settings).is_on:
            return cls(settings)
        package, remedy = _PACKAGES[settings.protocol]
        if not _is_installed(package):
            name = "TRACES_ENDPOINT" if settings.exporter_otlp_traces_endpoint else "ENDPOINT"
            raise ConfigurationError(f"OTEL_EXPORTER_OTLP_{name}: traces need {remedy}")
        for name in settings.propagators:
            if name != "none" and not entry_points(group="opentelemetry_propagator", name=name):
                raise ConfigurationError(f"OTEL_PROPAGATORS: {name} is unknown or not installed")
        return cls(settings, _variables())


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


def _variables() -> dict[str, str]:
    from dotenv import dotenv_values

    in_file = {name.upper(): value for name, value in dotenv_values(".env", encoding="utf-8").items() if value}
    merged = in_file | {name: value for name, value in os.environ.items() if value.strip()}
    return {name: value for name, value in merged.items() if name.startswith(_PREFIX)}
