"""Spans as OTLP has them: the messages of ``opentelemetry/proto/trace/v1/trace.proto``, written as protobuf.

By hand, since a span's fields are few and its attributes nearly always the same: what has been written once is kept.
A test has OpenTelemetry's own classes read it.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from app.observation.spans import Attribute, Attributes, Span

__all__ = ["export_request", "head"]

_LONG = 200
"""Characters of a text that is not kept: hardly any comes twice."""
_TIME = struct.Struct("<Q")
_DOUBLE = struct.Struct("<d")
_IS_KNOWN, _IS_REMOTE, _IS_SAMPLED = 0x100, 0x200, 0x01
_ERROR = b"\x7a\x02\x18\x02"


def head(resource: Mapping[str, Any], scope: str, version: str) -> tuple[bytes, bytes]:
    """What is the same in every request: the resource, and the scope of the spans."""
    described = b"".join(_field(0x0A, _pair(name, value)) for name, value in resource.items())
    return _field(0x0A, described), _field(0x0A, _field(0x0A, scope.encode()) + _field(0x12, version.encode()))


def export_request(heads: tuple[bytes, bytes], spans: Sequence[Span]) -> bytes:
    """An ``ExportTraceServiceRequest`` with spans of one resource and one scope."""
    resource, scope = heads
    scope_spans = scope + b"".join([_field(0x12, _span(each)) for each in spans])
    return _field(0x0A, resource + _field(0x12, scope_spans))


def _span(span: Span) -> bytes:
    trace = span.trace
    is_remote = trace.remote is not None and span.parent == trace.remote.span
    parts = [
        b"\x0a\x10",
        trace.id,
        b"\x12\x08",
        span.id,
        _field(0x1A, trace.state) if trace.state else b"",
        _field(0x22, span.parent) if span.parent else b"",
        _named(0x2A, span.name),
        b"\x30%c\x39" % span.kind,
        _moment(span, span.began),
        b"\x41",
        _moment(span, span.ended),
        *_attributes(0x4A, span.attributes),
        *[_field(0x5A, _event(span, *each)) for each in span.events],
        _ERROR if span.error else b"",
        b"\x85\x01",
        struct.pack("<I", _IS_SAMPLED | _IS_KNOWN | (_IS_REMOTE if is_remote else 0)),
    ]
    return b"".join(parts)


def _event(span: Span, name: str, at: float, attributes: Attributes) -> bytes:
    return b"".join([b"\x09", _moment(span, at), _named(0x12, name), *_attributes(0x1A, attributes)])


def _moment(span: Span, at: float) -> bytes:
    return _TIME.pack(span.trace.epoch + int(at * 1e9))


def _attributes(tag: int, attributes: Attributes) -> Iterable[bytes]:
    for name, value in attributes:
        # True is 1 to a dictionary, and 1 is 1.0: each has its own place.
        if isinstance(value, str) and len(value) > _LONG:
            yield _field(tag, _pair(name, value))
        else:
            yield _known(tag, name, value, type(value))


@lru_cache(4096)
def _known(tag: int, name: str, value: Attribute, _: type) -> bytes:
    return _field(tag, _pair(name, value))


@lru_cache(1024)
def _named(tag: int, text: str) -> bytes:
    return _field(tag, _bytes(text))


def _pair(name: str, value: Any) -> bytes:
    return _field(0x0A, name.encode()) + _field(0x12, _any_value(value))


def _any_value(value: Any) -> bytes:
    if isinstance(value, str):
        return _field(0x0A, _bytes(value))
    if isinstance(value, bool):
        return b"\x10%c" % value
    if isinstance(value, int):
        return b"\x18" + _varint(value & 0xFFFFFFFFFFFFFFFF)  # negative ones are ten bytes long
    if isinstance(value, float):
        return b"\x21" + _DOUBLE.pack(value)
    return _field(0x2A, b"".join([_field(0x0A, _any_value(each)) for each in value]))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _field(tag: int, data: bytes) -> bytes:
    size = len(data)
    return b"%c%c%b" % (tag, size, data) if size < 128 else b"%c%b%b" % (tag, _varint(size), data)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)
