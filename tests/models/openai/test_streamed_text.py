"""Text that comes in pieces, in the dialects of real servers."""

from typing import Any

import pytest

from tests.models.openai.playing import STREAMED, play, played, turn
from tests.models.responding import begun
from tests.players.openai_player import bytewise, chunk, delta, event, finish, message, sse
from toolchat.models.base import Progress, TextDelta


@pytest.mark.parametrize(
    ("chunks", "text"),
    [
        pytest.param([delta(content="杭州"), delta(content="：晴"), finish("stop")], "杭州：晴", id="OpenAI"),
        pytest.param(
            [delta(content=None), delta(content=""), delta(), delta(content=[{"text": "晴"}]), finish("stop")],
            "晴",
            id="trap 11: content null, empty, absent, a list",
        ),
        pytest.param([delta(role="", content="晴"), finish("stop")], "晴", id="trap 12: an empty role (MiniMax)"),
        pytest.param(
            [delta(content="<think>hm"), delta(content="</think>\n晴"), finish("stop")], "晴", id="trap 13: <think>"
        ),
        pytest.param(
            [delta(reasoning_content="hm", content=""), delta(content="晴"), finish("stop")],
            "晴",
            id="trap 13: reasoning_content (DeepSeek)",
        ),
        pytest.param(
            [delta(reasoning="hm"), delta(content="晴"), finish("stop")], "晴", id="trap 13: reasoning (vLLM)"
        ),
        pytest.param(
            [delta(reasoning_details=[{"type": "t", "text": "hm"}]), delta(content="晴"), finish("stop")],
            "晴",
            id="trap 13: reasoning_details (MiniMax)",
        ),
        pytest.param(
            [delta(content="杭州今天"), delta(content="杭州今天晴"), delta(content="杭州今天晴。"), finish("stop")],
            "杭州今天晴。",
            id="trap 16: snapshots",
        ),
        pytest.param(
            [delta(content="杭州"), finish("stop"), message(content="杭州", usage={"prompt_tokens": 1})],
            "杭州",
            id="trap 16: the whole message at the end (MiniMax)",
        ),
        pytest.param([delta(content="哈"), delta(content="哈哈"), finish("stop")], "哈哈哈", id="not a snapshot"),
        pytest.param([message(content="杭州")], "杭州", id="a whole message for a stream"),
        pytest.param(
            [chunk(prompt_filter_results=[{}]), delta(content="晴"), finish("stop"), chunk(usage={})],
            "晴",
            id="trap 17: chunks without a choice (Azure)",
        ),
        pytest.param(
            [
                b": keep-alive\n\n",
                b":HTTP_STATUS/200\ndata:" + event(delta(content="晴"))[6:],
                b"data: \n\n",
                finish("stop"),
            ],
            "晴",
            id="trap 19: comments, no blank after data:, empty data (DeepSeek, DashScope)",
        ),
        pytest.param([delta(content="晴"), finish("stop"), delta(content="。")], "晴。", id="a chunk after the finish"),
        pytest.param([chunk({"index": 0, "delta": None}), delta(content="晴"), finish("stop")], "晴", id="delta null"),
        pytest.param([delta(content="晴", new_field={"a": [1]}), finish("stop")], "晴", id="unknown fields"),
        pytest.param([delta(refusal="不"), delta(refusal="行"), finish("stop")], "不行", id="a refusal is an answer"),
        pytest.param(
            [delta("stop", content="data: x\n\n[DONE]\r\u2028")], "data: x\n\n[DONE]\r\u2028", id="text like SSE"
        ),
        pytest.param(
            [chunk({"delta": {"content": "晴"}}), chunk({"finish_reason": "eos"})], "晴", id="odd finish reason"
        ),
        pytest.param([chunk("x"), chunk([]), {"choices": "x"}, delta("stop", content="晴")], "晴", id="odd choices"),
    ],
)
@pytest.mark.parametrize("cut", [lambda answer: answer, bytewise], ids=["whole events", "byte by byte"])
async def test_streamed_text_is_exact_from_every_dialect(chunks: list[Any], text: str, cut: Any) -> None:
    response = await turn(cut(sse(*chunks)))
    assert response.message.text == text
    assert response.finish_reason == "stop"


async def test_every_chunk_without_text_is_progress_and_a_comment_is_not() -> None:
    chunks = [b": keep-alive\n\n", delta(role="assistant"), delta(reasoning="hm"), delta(content="晴"), finish("stop")]
    events = await play([sse(*chunks)])
    assert events[:-1] == [Progress(), Progress("hm"), TextDelta("晴"), Progress()]


async def test_a_piece_of_text_is_handed_on_before_the_next_one_comes() -> None:
    answer = sse(delta(content="晴"), done=False, ending="hang")
    async with played([answer]) as (model, _), begun(model, STREAMED) as first:
        assert first == TextDelta("晴")
