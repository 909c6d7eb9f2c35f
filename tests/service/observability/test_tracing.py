"""Whether there are traces, by OpenTelemetry's variables."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc  # type: ignore[import-untyped]
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)

from tests.command_line import environment, run
from tests.players.otlp_receiver import OtlpReceiver
from tests.service.observability.tracing import PATH
from tests.serving import service
from toolchat.errors import ConfigurationError
from toolchat.service.observability.tracing import read_tracing_settings

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
_LOADED = """
import sys
from toolchat.service.main import create_app
create_app()
print(sorted(name for name in sys.modules if "opentelemetry.sdk" in name or "exporter.otlp" in name))
"""


@pytest.mark.parametrize(
    ("variables", "is_on"),
    [
        ({}, False),
        ({ENDPOINT: "http://127.0.0.1:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces"}, True),
        ({ENDPOINT: "http://127.0.0.1:4318", "OTEL_SDK_DISABLED": "true"}, False),
        ({ENDPOINT: "http://127.0.0.1:4318", "OTEL_TRACES_EXPORTER": "None"}, False),
        ({"OTEL_TRACES_SAMPLER": "always_on"}, False),
    ],
)
def test_an_endpoint_switches_them_on_and_two_variables_off(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], is_on: bool
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert read_tracing_settings().is_on is is_on


@pytest.mark.slow
def test_without_an_endpoint_nothing_that_sends_is_loaded(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LOADED],
        env=environment({}), cwd=tmp_path, capture_output=True, text=True, check=True
    )  # fmt: skip
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (ENDPOINT, "collector:4318"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
        ("OTEL_TRACES_SAMPLER", "sometimes"),
        ("OTEL_TRACES_SAMPLER_ARG", "2"),
    ],
)
def test_a_value_that_cannot_be_used_stops_the_start_with_one_line(tmp_path: Path, name: str, value: str) -> None:
    done = run("serve", cwd=tmp_path, **{name: value})
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert line.startswith(f"toolchat: {name}: ")


def test_a_missing_extra_is_one_line_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:4318")
    for name in [each for each in sys.modules if each.startswith("opentelemetry.exporter.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter", None)
    with pytest.raises(ConfigurationError) as caught:
        read_tracing_settings()
    assert str(caught.value) == f"{ENDPOINT}: traces need the extra otel: pip install '.[otel]'"


def test_a_variable_that_only_opentelemetry_reads_is_no_mistake_and_a_slip_is_one(tmp_path: Path) -> None:
    lines = ["OTEL_EXPORTER_OTLP_COMPRESSION=gzip", "OTEL_SERVICE_NAMES=x"]
    (tmp_path / ".env").write_text("\n".join(lines), encoding="utf-8")
    done = run("tools", cwd=tmp_path, CHAT_PROVIDER="offline")
    warning = "toolchat: WARNING: OTEL_SERVICE_NAMES: no setting has this name; did you mean OTEL_SERVICE_NAME?\n"
    assert (done.returncode, done.stderr) == (0, warning)


async def test_what_stands_in_the_env_file_reaches_opentelemetrys_packages(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    async with OtlpReceiver() as receiver:
        lines = ["OTEL_EXPORTER_OTLP_HEADERS=X-Key=canary%20key", "OTEL_EXPORTER_OTLP_COMPRESSION=none"]
        lines += [f"{name}={value}" for name, value in receiver.variables.items()]
        (tmp_path / ".env").write_text("\n".join(lines), encoding="utf-8")
        async with service(CHAT_PROVIDER="offline") as client:
            await client.get(PATH, params={"query": "x"})
            await receiver.trace()
    assert "post /v1/traces " in receiver.heads[0]
    assert "x-key: canary key" in receiver.heads[0]


async def test_spans_are_sent_by_grpc_as_well() -> None:
    received: list[ExportTraceServiceRequest] = []

    class Collector(TraceServiceServicer):
        def Export(self, request: ExportTraceServiceRequest, _: object) -> ExportTraceServiceResponse:
            received.append(request)
            return ExportTraceServiceResponse()

    server = grpc.server(ThreadPoolExecutor(1))
    add_TraceServiceServicer_to_server(Collector(), server)  # type: ignore[no-untyped-call]
    endpoint = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    variables = {ENDPOINT: endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
    async with service(CHAT_PROVIDER="offline", **variables) as client:
        await client.get("/tools")
    server.stop(None)
    spans = [span for request in received for part in request.resource_spans[0].scope_spans for span in part.spans]
    assert [each.name for each in spans] == ["GET /tools"]
