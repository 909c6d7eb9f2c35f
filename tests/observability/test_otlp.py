"""Spans as protobuf, read by OpenTelemetry's own classes, whatever they hold."""

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from app.observability.otlp.encoding import export_request, head, written
from app.observability.spans import Attribute, Fixed, Span, Tracer

VALUES: dict[str, Attribute] = {
    "empty": "",
    "long": "x" * 70_000,
    "chinese": "你好",
    "surrogate": "\ud800!",
    "zero": 0,
    "small": 127,
    "larger": 128,
    "largest": 2**63 - 1,
    "negative": -1,
    "yes": True,
    "no": False,
    "half": 0.5,
    "texts": ("a", "b" * 300),
}


@pytest.mark.parametrize("fixed", [False, True])
def test_every_kind_of_value_is_read_back(fixed: bool) -> None:
    kept: list[Span] = []
    span = Tracer(lambda *_: True, kept.extend).begin("GET " + "长" * 100, (), 1.0)
    span.attributes = [Fixed(*VALUES.items())] if fixed else list(VALUES.items())
    span.event("retry", ("error.type", "x"))
    span.end(2.0, "broken")
    data = export_request(head({"service.name": "x", "n": 1}, "scope", "1.0"), [written(kept), written(kept)])
    [resource] = ExportTraceServiceRequest.FromString(data).resource_spans
    [scope] = resource.scope_spans
    first, second = scope.spans
    assert first == second
    assert (first.name, first.status.code, first.parent_span_id) == ("GET " + "长" * 100, 2, b"")
    assert first.end_time_unix_nano - first.start_time_unix_nano == 1_000_000_000
    assert [each.name for each in first.events] == ["retry"]
    read = {each.key: each.value for each in first.attributes}
    assert {name: value.string_value for name, value in read.items() if value.HasField("string_value")} == {
        name: "?!" if name == "surrogate" else value for name, value in VALUES.items() if isinstance(value, str)
    }
    assert [read[name].int_value for name in ("zero", "small", "larger", "largest", "negative")] == [
        0, 127, 128, 2**63 - 1, -1
    ]  # fmt: skip
    assert (read["yes"].bool_value, read["no"].HasField("bool_value"), read["half"].double_value) == (True, True, 0.5)
    assert [each.string_value for each in read["texts"].array_value.values] == ["a", "b" * 300]
    assert (scope.scope.name, scope.scope.version) == ("scope", "1.0")
    assert [each.key for each in resource.resource.attributes] == ["service.name", "n"]
