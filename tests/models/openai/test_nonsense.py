"""What is no chat completion."""

import gzip
import json

import pytest

from tests.models.openai.playing import AT_ONCE, STREAMED, play
from tests.players.openai_player import Answer, body, chunk, message, sse, whole
from toolchat.errors import UpstreamInvalid
from toolchat.models.base import Prompt

SSE = {"Content-Type": "text/event-stream"}


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(sse(), id="only [DONE]"),
        pytest.param(sse(done=False), id="an empty stream"),
        pytest.param(sse(b": keep-alive\n\n", done=False), id="only a comment"),
        pytest.param(sse(chunk(usage={"prompt_tokens": 1})), id="only usage"),
        pytest.param(sse(b"data: {broken\n\n"), id="broken JSON"),
        pytest.param(sse(b'data: {"choices": [' + b"[" * 100_000 + b"\n\n"), id="deep JSON"),
        pytest.param(sse(b'data: {"n": ' + b"9" * 5000 + b"}\n\n"), id="a huge number"),
        pytest.param(sse(b'data: {"choices":[{"delta":{"content":"\\ud800"}}]}\n\n'), id="half a character"),
        pytest.param(sse(b"data: \xff\xfe\n\n"), id="not UTF-8"),
        pytest.param(sse(b"data: null\n\n"), id="null"),
        pytest.param(sse(b"data: [1]\n\n"), id="a list"),
        pytest.param(Answer([b"data: " + b"x" * 65536] * 33, headers=SSE), id="an endless event"),
        pytest.param(whole({}), id="an empty object"),
        pytest.param(whole({"choices": []}), id="no choices"),
        pytest.param(whole({"choices": None}), id="choices null"),
        pytest.param(whole([1, 2]), id="a list as the body"),
        pytest.param(body(b"", Content_Type="application/json"), id="an empty body"),
        pytest.param(body(b""), id="nothing at all"),
        pytest.param(body(b"<html>SECRET</html>", Content_Type="text/html"), id="HTML"),
        pytest.param(body(b"<html>SECRET</html>", Content_Type="application/json"), id="HTML that claims to be JSON"),
        pytest.param(
            body(json.dumps(message(content="x")).encode(), Content_Type="image/png"), id="a wrong content type"
        ),
        pytest.param(body('{"a": "é"}'.encode("latin-1"), Content_Type="application/json"), id="a wrong charset"),
        pytest.param(body(b"{}", Content_Type="application/json", Content_Encoding="gzip"), id="gzip that is none"),
        pytest.param(
            body(gzip.compress(b" " * 20_000_000), Content_Type="application/json", Content_Encoding="gzip"),
            id="a gzip bomb",
        ),
        pytest.param(
            body(
                gzip.compress((b": " + b"x" * 1000 + b"\n") * 40_000),
                Content_Type="text/event-stream",
                Content_Encoding="gzip",
            ),
            id="a gzip bomb as a stream",
        ),
        pytest.param(body(b"", 302, Location="http://127.0.0.1:1/"), id="a redirect"),
    ],
)
@pytest.mark.parametrize("prompt", [AT_ONCE, STREAMED], ids=["asked at once", "asked for a stream"])
async def test_nonsense_is_upstream_invalid_and_none_of_it_is_shown(answer: Answer, prompt: Prompt) -> None:
    with pytest.raises(UpstreamInvalid) as caught:
        await play([answer], prompt)
    assert not any(word in caught.value.detail for word in ("SECRET", "html", "127.0.0.1", "http:"))
