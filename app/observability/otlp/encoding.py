"""Spans as OTLP has them: the messages of ``opentelemetry/proto/trace/v1/trace.proto``, written as protobuf.

By hand, since a span's fields are few and its attributes nearly always the same: what has been written once is kept.
A test has OpenTelemetry's own classes read it.
"""

import struct
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from app.observability.spans import Attribute, Attributes, Fixed, Span

__all__ = ["export_request", "head", "written"]

_TIME = struct.Struct("<Q")
_TIMES = struct.Struct("<BQBQ")
_DOUBLE = struct.Struct("<d")
_LOCAL = b"\x85\x01" + struct.pack("<I", 0x101)
_REMOTE = b"\x85\x01" + struct.pack("<I", 0x301)
"""The flags: sampled; whether the parent is a remote one is known; whether it is."""
_KINDS = [b"\x30%c" % kind for kind in range(6)]
_ERROR = b"\x7a\x02\x18\x02"


def head(resource: Mapping[str, Any], scope: str, version: str) -> tuple[bytes, bytes]:
    """What is the same in every request: the resource, and the scope of the spans."""
    described = b"".join(_attribute(0x0A, name, value) for name, value in resource.items())
    return _field(0x0A, described), _field(0x0A, _field(0x0A, scope.encode()) + _field(0x12, version.encode()))


def written(spans: Iterable[Span]) -> bytes:
    """Spans as they stand in a request."""
    return b"".join([_field(0x12, _span(each)) for each in spans])


def export_request(heads: tuple[bytes, bytes], spans: Iterable[bytes]) -> bytes:
    """An ``ExportTraceServiceRequest`` with spans of one resource and one scope."""
    resource, scope = heads
    return _field(0x0A, resource + _field(0x12, b"".join([scope, *spans])))


def _span(span: Span) -> bytes:
    trace = span.trace
    is_remote = trace.remote is not None and span.parent == trace.remote.span
    epoch = trace.epoch
    parts = [
        b"\x0a\x10%b\x12\x08%b" % (trace.id, span.id),
        _named(0x2A, span.name),
        _KINDS[span.kind],
        _TIMES.pack(0x39, epoch + int(span.began * 1e9), 0x41, epoch + int(span.ended * 1e9)),
        *[
            _attribute(0x4A, *each) if isinstance(each, tuple) else each.wire or _fixed(each)
            for each in span.attributes
        ],
        _REMOTE if is_remote else _LOCAL,
    ]
    if span.parent:
        parts.append(b"\x22\x08" + span.parent)
    if trace.state:
        parts.append(_field(0x1A, trace.state))
    parts += [_field(0x5A, _event(span, *each)) for each in span.events]
    if span.error:
        parts.append(_ERROR)
    return b"".join(parts)


def _fixed(fixed: Fixed) -> bytes:
    fixed.wire = b"".join([_attribute(0x4A, *each) for each in fixed.pairs])
    return fixed.wire


def _event(span: Span, name: str, at: float, attributes: Attributes) -> bytes:
    moment = _TIME.pack(span.trace.epoch + int(at * 1e9))
    return b"".join([b"\x09", moment, _named(0x12, name), *[_attribute(0x1A, *each) for each in attributes]])


def _attribute(tag: int, name: str, value: Attribute) -> bytes:
    key, written = _named(0x0A, name), _any_value(value)
    size, whole = len(written), len(key) + len(written) + 2
    if whole < 128:  # as nearly always
        return b"%c%c%b\x12%c%b" % (tag, whole, key, size, written)
    return _field(tag, key + _field(0x12, written))


@lru_cache(1024)
def _named(tag: int, text: str) -> bytes:
    return _field(tag, _bytes(text))


def _any_value(value: Any) -> bytes:
    if isinstance(value, str):
        return _field(0x0A, _bytes(value))
    if isinstance(value, bool):
        return b"\x10%c" % value
    if isinstance(value, int):
        return b"\x18%c" % value if 0 <= value < 128 else b"\x18" + _varint(value & 0xFFFFFFFFFFFFFFFF)
    if isinstance(value, float):
        return b"\x21" + _DOUBLE.pack(value)
    if isinstance(value, tuple | list):
        return _field(0x2A, b"".join([_field(0x0A, _any_value(each)) for each in value]))
    return _field(0x0A, _bytes(str(value)))


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
