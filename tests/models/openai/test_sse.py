"""Server-sent events survive any cutting of the bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolchat.errors import UpstreamInvalid
from toolchat.models.openai.sse import ServerSentEvent, SseDecoder

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"))
LINE_END = st.sampled_from(["\n", "\r", "\r\n"])


def decode(*chunks: bytes) -> list[ServerSentEvent]:
    decoder = SseDecoder("the test")
    return [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.finish()


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        pytest.param(b"data: a\n\n", [ServerSentEvent("a")], id="one space after the colon is dropped"),
        pytest.param(b"data:a\n\n", [ServerSentEvent("a")], id="no space is needed"),
        pytest.param(b"data:  a\n\n", [ServerSentEvent(" a")], id="the second space belongs to the data"),
        pytest.param(b"data: a\r\n\r\ndata: b\r\r", [ServerSentEvent("a"), ServerSentEvent("b")], id="CRLF and CR"),
        pytest.param(b"data: a\ndata: b\n\n", [ServerSentEvent("a\nb")], id="data of several lines"),
        pytest.param(b"data: a\r\ndata: b\r\n\r\n", [ServerSentEvent("a\nb")], id="lines with CRLF, not cut in two"),
        pytest.param(b"data\n\n", [ServerSentEvent("")], id="data without a value"),
        pytest.param(b": keep-alive\n\n:HTTP_STATUS/200\ndata:a\n\n", [ServerSentEvent("a")], id="comments"),
        pytest.param(b": \xff\ndata:a\n\n", [ServerSentEvent("a")], id="a comment need not be UTF-8"),
        pytest.param(b"id:1\nevent:error\ndata:a\n\n", [ServerSentEvent("a", "error")], id="event name, id"),
        pytest.param(b"event: x\n\ndata: a\n\n", [ServerSentEvent("a")], id="a name without data is forgotten"),
        pytest.param(b"\xef\xbb\xbfdata: a\n\n", [ServerSentEvent("a")], id="byte order mark"),
        pytest.param("data: 1\u20282\u00853\n\n".encode(), [ServerSentEvent("1\u20282\u00853")], id="not line ends"),
        pytest.param(b"data: a", [ServerSentEvent("a")], id="the end of the stream ends the event"),
        pytest.param(b"database: a\n\n", [], id="an unknown field"),
        pytest.param(b"\n\n\n", [], id="blank lines"),
        pytest.param(b"", [], id="nothing"),
    ],
)
def test_the_bytes_mean_the_same_events_whole_and_byte_by_byte(stream: bytes, events: list[ServerSentEvent]) -> None:
    assert decode(stream) == events
    assert decode(*(stream[at : at + 1] for at in range(len(stream)))) == events


@given(st.data(), st.lists(st.lists(TEXT, min_size=1, max_size=3), max_size=4), LINE_END)
def test_any_text_comes_through_any_cutting_and_line_end(
    data: st.DataObject, texts: list[list[str]], line_end: str
) -> None:
    stream = "".join("".join(f"data: {line}{line_end}" for line in lines) + line_end for lines in texts).encode()
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=8).map(sorted))
    chunks = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert decode(*chunks) == [ServerSentEvent("\n".join(lines)) for lines in texts]


@given(st.lists(st.binary(max_size=20), max_size=8))
def test_no_bytes_whatever_raise_anything_but_upstream_invalid(chunks: list[bytes]) -> None:
    try:
        whole = decode(b"".join(chunks))
    except UpstreamInvalid:
        with pytest.raises(UpstreamInvalid):
            decode(*chunks)
    else:
        assert decode(*chunks) == whole


@pytest.mark.parametrize(
    "stream",
    [
        pytest.param(b"data: " + b"x" * 100, id="one endless line"),
        pytest.param(b": " + b"x" * 100, id="an endless comment"),
        pytest.param(b"data: x\n" * 60, id="endless lines"),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_an_event_longer_than_the_limit_is_refused(stream: bytes, size: int) -> None:
    decoder = SseDecoder("the test", max_event_bytes=100)
    chunks = [stream[at : at + size] for at in range(0, len(stream), size)]
    with pytest.raises(UpstreamInvalid, match="more than 100 bytes"):
        [decoder.feed(chunk) for chunk in chunks]


def test_the_limit_is_for_one_event_not_for_the_stream() -> None:
    decoder = SseDecoder("the test", max_event_bytes=100)
    assert sum(len(decoder.feed(b"data: " + b"x" * 50 + b"\n\n")) for _ in range(20)) == 20


def test_data_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(UpstreamInvalid, match="not UTF-8"):
        decode(b"data: \xe4\xbd\n\n")
