"""Where a stream may end, and where an end is a cut."""

import asyncio
from typing import Any

import pytest

from tests.models.openai.playing import play, tool_delta, turn
from tests.players.openai_player import delta, finish, sse
from toolchat.errors import UpstreamError, UpstreamInvalid
from toolchat.messages import Usage

TRUNCATED = [delta(content="杭州"), tool_delta(id="a", name="get_weather", arguments='{"ci')]


@pytest.mark.parametrize("ending", ["whole", "close", "cut", "reset"])
@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param(TRUNCATED[:1], id="within the text"),
        pytest.param(TRUNCATED, id="within arguments"),
        pytest.param([*TRUNCATED, b'data: {"choices": [{"del'], id="within an event"),
        pytest.param([delta(role="assistant")], id="before the text"),
        pytest.param([], id="before everything"),
    ],
)
async def test_a_stream_that_was_cut_is_never_an_answer(ending: Any, chunks: list[Any]) -> None:
    with pytest.raises(UpstreamError) as caught:
        await play([sse(*chunks, done=False, ending=ending)])
    assert ending == "reset" or type(caught.value) is UpstreamInvalid  # a reset may overtake the headers


@pytest.mark.parametrize("ending", ["whole", "close", "cut"])
async def test_a_stream_may_end_without_done_after_the_finish_reason(ending: Any) -> None:
    answer = sse(delta(content="晴"), finish("stop"), done=False, ending=ending)
    assert (await turn(answer)).message.text == "晴"


async def test_a_cut_after_the_finish_reason_costs_the_usage_only() -> None:
    answer = sse(delta("stop", content="晴"), b'data: {"choices": [], "usa', done=False, ending="cut")
    response = await turn(answer)
    assert (response.message.text, response.usage) == ("晴", Usage())


async def test_done_ends_a_stream_that_the_server_does_not_end() -> None:
    response = await asyncio.wait_for(turn(sse(delta("stop", content="晴"), ending="hang")), 20)
    assert response.message.text == "晴"


async def test_done_without_a_finish_reason_and_without_a_line_end_is_an_end() -> None:
    answer = sse(delta(content="晴"), b"data: [DONE]", done=False)
    assert (await turn(answer)).message.text == "晴"
