"""Settings of traces: whether they are recorded, and where they are sent."""

import importlib.util
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal
from urllib.parse import urlsplit, urlunsplit

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_settings import SettingsConfigDict

from app.observability.spans import Remote
from app.settings.base import EnvironmentSettings, Secret, Texts, read_settings
from toolchat.errors import ConfigurationError

__all__ = ["TracingConfiguration", "TracingSettings", "other_variables"]

_PREFIX = "OTEL_"
_PATH = "/v1/traces"
_EXPORTER = "opentelemetry.exporter.otlp.proto.http"


def _endpoint(value: str) -> str:
    if value and not value.startswith(("http://", "https://")):
        raise ValueError("must be a URL that starts with http:// or https://")
    return value


def _small(value: object) -> object:
    return value.strip().lower() if isinstance(value, str) else value


Endpoint = Annotated[str, AfterValidator(_endpoint)]


class TracingSettings(EnvironmentSettings):
    """Traces, set by OpenTelemetry's variables; they need the extra ``observability``."""

    model_config = SettingsConfigDict(env_prefix=_PREFIX)

    exporter_otlp_endpoint: Endpoint = Field(
        "",
        description=(
            "OTLP/HTTP endpoint that receives traces, without /v1/traces, such as http://collector:4318; empty: off"
        ),
    )
    exporter_otlp_traces_endpoint: Endpoint = Field(
        "", description="Complete URL for traces; takes precedence over OTEL_EXPORTER_OTLP_ENDPOINT"
    )
    exporter_otlp_headers: Secret | None = Field(
        None, description="Headers of OTLP requests, NAME=VALUE separated by commas, values percent-encoded"
    )
    exporter_otlp_protocol: Annotated[Literal["http/protobuf"], BeforeValidator(_small)] = Field(
        "http/protobuf", description="Protocol of OTLP requests; gRPC is not supported"
    )
    traces_exporter: Annotated[Literal["otlp", "none"], BeforeValidator(_small)] = Field(
        "otlp", description="none turns traces off"
    )
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
        BeforeValidator(_small),
    ] = Field(
        "parentbased_always_on", description="Sampler of traces; parentbased_...: follows the decision of the caller"
    )
    traces_sampler_arg: float = Field(1, ge=0, le=1, description="Sampling ratio for traceidratio")
    propagators: Texts = Field(
        ("tracecontext", "baggage"),
        description="Propagators; without tracecontext no traceparent is read from clients or sent to upstreams",
    )
    bsp_schedule_delay: float = Field(5000, gt=0, description="Milliseconds between two exports of spans")
    bsp_max_export_batch_size: int = Field(2048, ge=1, description="Largest number of spans per export")
    bsp_max_queue_size: int = Field(
        16384, ge=1, description="Largest number of spans waiting for export; further ones are dropped"
    )
    service_name: str = Field("toolchat", description="Service name in traces")
    resource_attributes: str = Field("", description="Further resource attributes, NAME=VALUE separated by commas")
    instrumentation_genai_capture_message_content: bool = Field(
        False, description="true records questions, answers, arguments and results in spans"
    )

    def sampler(self) -> Callable[[bytes, Remote | None], bool]:
        """What decides, as OpenTelemetry's samplers do, by a trace's id and its caller whether it is recorded."""
        _, is_based, own = self.traces_sampler.rpartition("parentbased_")
        share = {"always_on": 1.0, "always_off": 0.0}.get(own, self.traces_sampler_arg)
        bound = round(share * 2**64)

        def samples(trace: bytes, caller: Remote | None) -> bool:
            if is_based and caller is not None:
                return caller.is_sampled
            return int.from_bytes(trace[8:]) < bound

        return samples


@dataclass(frozen=True, slots=True)
class TracingConfiguration:
    """What was read from the environment and ``.env``, checked."""

    settings: TracingSettings
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Every ``OTEL_`` variable, for OpenTelemetry's own packages, which read the environment alone."""

    @property
    def is_on(self) -> bool:
        """Whether there are traces."""
        settings = self.settings
        is_off = settings.sdk_disabled or settings.traces_exporter == "none"
        return not is_off and bool(settings.exporter_otlp_endpoint or settings.exporter_otlp_traces_endpoint)

    @property
    def target(self) -> str:
        """Where traces go, without what may be a secret: a user, a password, a query."""
        settings = self.settings
        url = urlsplit(
            settings.exporter_otlp_traces_endpoint or f"{settings.exporter_otlp_endpoint.rstrip('/')}{_PATH}"
        )
        return urlunsplit((url.scheme, url.netloc.rpartition("@")[2], url.path, "", ""))

    @property
    def sampling(self) -> str:
        """Which traces are recorded, in the words of the variables."""
        settings = self.settings
        has_share = settings.traces_sampler.endswith("ratio")
        return f"{settings.traces_sampler} {settings.traces_sampler_arg:g}" if has_share else settings.traces_sampler

    @property
    def warnings(self) -> list[str]:
        """What is probably meant otherwise."""
        settings = self.settings
        is_whole = settings.exporter_otlp_endpoint.rstrip("/").endswith(_PATH)
        if not is_whole or settings.exporter_otlp_traces_endpoint or not self.is_on:
            return []
        told = f"{_PATH} is put behind it once more; a whole URL belongs into OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
        return [f"OTEL_EXPORTER_OTLP_ENDPOINT: {told}"]

    @classmethod
    def read(cls) -> "TracingConfiguration":
        """Read it.

        Raises:
            ConfigurationError: a value cannot be used, or what sends traces is not installed.
        """
        settings = read_settings(TracingSettings)
        if not cls(settings).is_on:
            return cls(settings)
        if not _is_installed():
            name = "TRACES_ENDPOINT" if settings.exporter_otlp_traces_endpoint else "ENDPOINT"
            raise ConfigurationError(
                f"OTEL_EXPORTER_OTLP_{name}: traces need the extra observability: pip install '.[observability]'"
            )
        return cls(settings, _variables() | {"OTEL_SERVICE_NAME": settings.service_name})


def other_variables(names: Collection[str]) -> set[str]:
    """What OpenTelemetry's packages read beside, if any of the names is of that kind."""
    if not any(name.upper().startswith(_PREFIX) for name in names) or not _is_installed():
        return set()
    from opentelemetry.sdk import environment_variables

    return {name for name in vars(environment_variables) if name.startswith(_PREFIX)}


def _is_installed() -> bool:
    try:
        return importlib.util.find_spec(_EXPORTER) is not None
    except ModuleNotFoundError:
        return False


def _variables() -> dict[str, str]:
    from dotenv import dotenv_values

    in_file = {name.upper(): value for name, value in dotenv_values(".env", encoding="utf-8").items() if value}
    given = in_file | {name: value for name, value in os.environ.items() if value.strip()}
    return {name: value for name, value in given.items() if name.startswith(_PREFIX)}
