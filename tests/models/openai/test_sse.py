"""Server-sent events, as the standard has them, however their bytes are cut."""

import pytest
from hypothesis import given, strategies as st

from toolchat.errors import UpstreamInvalid
from toolchat.models.openai import sse
from toolchat.models.openai.sse import ServerSentEvent, SseDecoder

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"))
LINE_END = st.sampled_from(["\n", "\r", "\r\n"])
A, B = (b"message", b"a"), (b"message", b"b")


def decode(*chunks: bytes) -> list[ServerSentEvent]:
    decoder = SseDecoder("the test")
    return [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.finish()


STREAMS: dict[str, tuple[bytes, list[ServerSentEvent]]] = {
    "one space after the colon is dropped": (b"data: a\n\n", [A]),
    "no space is needed": (b"data:a\n\n", [A]),
    "the second space belongs to the data": (b"data:  a\n\n", [(b"message", b" a")]),
    "CRLF and CR": (b"data: a\r\n\r\ndata: b\r\r", [A, B]),
    "data of several lines": (b"data: a\ndata: b\n\n", [(b"message", b"a\nb")]),
    "lines with CRLF, not cut in two": (b"data: a\r\ndata: b\r\n\r\n", [(b"message", b"a\nb")]),
    "data without a value": (b"data\n\n", [(b"message", b"")]),
    "comments": (b": keep-alive\n\n:HTTP_STATUS/200\ndata:a\n\n", [A]),
    "a comment need not be UTF-8": (b": \xff\ndata:a\n\n", [A]),
    "event name, id": (b"id:1\nevent:error\ndata:a\n\n", [(b"error", b"a")]),
    "a name without data is forgotten": (b"event: x\n\ndata: a\n\n", [A]),
    "byte order mark": (b"\xef\xbb\xbfdata: a\n\n", [A]),
    "not line ends": ("data: 1\u20282\u00853\n\n".encode(), [(b"message", "1\u20282\u00853".encode())]),
    "the end of the stream ends the event": (b"data: a", [A]),
    "an unknown field": (b"database: a\n\n", []),
    "blank lines": (b"\n\n\n", []),
    "nothing": (b"", []),
}


@pytest.mark.parametrize("case", STREAMS)
def test_the_bytes_mean_the_same_events_whole_and_byte_by_byte(case: str) -> None:
    stream, events = STREAMS[case]
    assert decode(stream) == events
    assert decode(*(stream[at : at + 1] for at in range(len(stream)))) == events


@pytest.mark.parametrize(
    ("before", "events"),
    [
        (b"data: x\n\n", [(b"message", b"x"), A]),
        (b"data: x\n", [(b"message", b"x\na")]),
        (b"data\n", [(b"message", b"\na")]),
        (b"event: x\n", [(b"x", b"a")]),
        (b": x\n: x", []),
    ],
    ids=["an event", "a line of data", "one without a value", "a name", "within a second comment"],
)
def test_a_chunk_with_a_whole_event_continues_what_has_begun(before: bytes, events: list[ServerSentEvent]) -> None:
    assert decode(before, b"data: a\n\n") == events


def test_only_the_first_chunk_may_have_a_byte_order_mark() -> None:
    assert decode(b"data: a\n\n", b"\xef\xbb\xbfdata: b\n\n") == [A]


@given(st.data(), st.lists(st.lists(TEXT, min_size=1, max_size=3), max_size=4), LINE_END)
def test_any_text_comes_through_any_cutting_and_line_end(
    data: st.DataObject, texts: list[list[str]], line_end: str
) -> None:
    stream = "".join("".join(f"data: {line}{line_end}" for line in lines) + line_end for lines in texts).encode()
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=8).map(sorted))
    chunks = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert decode(*chunks) == [(b"message", "\n".join(lines).encode()) for lines in texts]


@given(st.lists(st.binary(max_size=20), max_size=8))
def test_no_bytes_whatever_raise_anything_but_upstream_invalid(chunks: list[bytes]) -> None:
    try:
        whole = decode(b"".join(chunks))
    except UpstreamInvalid:
        with pytest.raises(UpstreamInvalid):
            decode(*chunks)
    else:
        assert decode(*chunks) == whole


@pytest.mark.parametrize("stream", [b"data: " + b"x" * 100, b": " + b"x" * 100, b"data: x\n" * 60])
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_an_event_longer_than_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch, stream: bytes, size: int) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 100)
    decoder = SseDecoder("the test")
    chunks = [stream[at : at + size] for at in range(0, len(stream), size)]
    with pytest.raises(UpstreamInvalid, match="more than 100 bytes"):
        [decoder.feed(chunk) for chunk in chunks]


def test_the_limit_is_for_one_event_not_for_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 100)
    decoder = SseDecoder("the test")
    assert sum(len(decoder.feed(b"data: " + b"x" * 50 + b"\n\n")) for _ in range(20)) == 20
