"""A collector on 127.0.0.1 that takes traces by OTLP over HTTP, and reads them by OpenTelemetry's own classes."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as WireSpan

from tests.waiting import until

_KINDS = {1: "internal", 2: "server", 3: "client"}


@dataclass(frozen=True)
class Received:
    """One span as it arrived."""

    trace: str
    id: str
    parent: str
    name: str
    kind: str
    began: int
    ended: int
    attributes: Mapping[str, Any]
    events: tuple[tuple[str, Mapping[str, Any]], ...]
    is_error: bool
    detail: str
    """The description of an error."""
    state: str
    flags: int
    resource: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.name} ({self.kind}{', failed' if self.is_error else ''})"


class OtlpReceiver:
    """Answers every export with ``status``; what it has been sent is in ``spans``."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.spans: list[Received] = []
        self.heads: list[str] = []
        """The heads of the requests, with their headers in small letters."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()

    @property
    def variables(self) -> dict[str, str]:
        """What a service is told to send its traces here, and soon."""
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{self.port}", "OTEL_BSP_SCHEDULE_DELAY": "5"}

    async def trace(self, root: str = "", *, has: Callable[[Received], object] = bool) -> list[Received]:
        """The spans of the one trace that has a server span of this name, once that has come; they are then forgotten.

        Those of a trace arrive in the order of their ends, the server's last.
        """

        def roots() -> list[Received]:
            return [each for each in self.spans if each.kind == "server" and root in each.name and has(each)]

        await until(roots)
        [found] = {each.trace for each in roots()}
        spans = [each for each in self.spans if each.trace == found]
        self.spans = [each for each in self.spans if each.trace != found]
        return spans

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
                body = await reader.readexactly(length)
                self.heads.append(head)
                if self.status == 200:
                    self.spans += _read(body)
                writer.write(b"HTTP/1.1 %d X\r\nContent-Length: 0\r\n\r\n" % self.status)
        writer.close()


def _read(body: bytes) -> list[Received]:
    request = ExportTraceServiceRequest.FromString(body)
    return [
        _received(span, _plain(resource.resource.attributes))
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def _received(span: WireSpan, resource: Mapping[str, Any]) -> Received:
    return Received(
        trace=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        name=span.name,
        kind=_KINDS[span.kind],
        began=span.start_time_unix_nano,
        ended=span.end_time_unix_nano,
        attributes=_plain(span.attributes),
        events=tuple((each.name, _plain(each.attributes)) for each in span.events),
        is_error=span.status.code == 2,
        detail=span.status.message,
        state=span.trace_state,
        flags=span.flags,
        resource=resource,
    )


def _plain(attributes: Any) -> dict[str, Any]:
    found = {each.key: _value(each.value) for each in attributes}
    assert len(found) == len(attributes), "no attribute comes twice"
    return found


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    return getattr(value, str(kind))
