"""Tool calls that come in pieces, in the dialects of real servers; ``test_merged_calls.py`` has all of them."""

from typing import Any

import pytest

from tests.models.openai.playing import CITY, ONE_CALL, calls_of, tool_delta, turn
from tests.players.openai_player import bytewise, chunk, delta, finish, sse


@pytest.mark.parametrize(
    ("chunks", "calls"),
    [
        pytest.param(
            [
                delta(role="assistant", content=None),
                tool_delta(id="a", type="function", name="get_weather", arguments=""),
                tool_delta(arguments='{"city": '),
                tool_delta(arguments='"杭州"}'),
                finish("tool_calls"),
                chunk(usage={"prompt_tokens": 67, "completion_tokens": 5}),
            ],
            ONE_CALL,
            id="OpenAI",
        ),
        pytest.param(
            [
                tool_delta(id="a", type="function", name="get_weather", arguments=""),
                tool_delta(id="", type="function", name=None, arguments='{"city": "杭州"}'),
                finish("tool_calls"),
            ],
            ONE_CALL,
            id="trap 1: empty ids (DashScope)",
        ),
        pytest.param(
            [tool_delta(None, id="a", name="get_weather", arguments=CITY), finish("stop")],
            ONE_CALL,
            id="traps 2, 4, 6: no index, whole call, then stop (Ollama)",
        ),
        pytest.param(
            [
                chunk(
                    {
                        "index": 0,
                        "delta": {
                            "tool_calls": [
                                {"index": 0, "id": "a", "function": {"name": "get_weather", "arguments": CITY}}
                            ]
                        },
                        "finish_reason": "tool_calls",
                    }
                ),
                finish("tool_calls"),
            ],
            ONE_CALL,
            id="trap 5: the finish reason with the call, and again (GLM)",
        ),
        pytest.param(
            [tool_delta(id="a", name="get_weather", arguments='{"city": "杭'), finish("length")],
            [("a", "get_weather", '{"city": "杭')],
            id="trap 10: arguments cut by the token limit are kept for the manager",
        ),
        pytest.param(
            [tool_delta(id="a", name="get_weather", arguments=CITY), tool_delta(name="get_weather"), finish("stop")],
            ONE_CALL,
            id="trap 23: the name again",
        ),
        pytest.param(
            [tool_delta(id="a", name="", arguments=CITY), finish("stop")], [("a", "", CITY)], id="trap 23: no name"
        ),
    ],
)
@pytest.mark.parametrize("cut", [lambda answer: answer, bytewise], ids=["whole events", "byte by byte"])
async def test_a_streamed_call_arrives_whole_from_every_dialect(
    chunks: list[Any], calls: list[tuple[str, str, str]], cut: Any
) -> None:
    response = await turn(cut(sse(*chunks)))
    assert calls_of(response) == calls
    assert response.finish_reason == ("length" if finish("length") in chunks else "tool_calls")
    assert response.message.text == ""


async def test_calls_without_ids_get_ids_of_their_own() -> None:
    one, other = (await turn(sse(tool_delta(0, name="w"), tool_delta(1, name="v"), finish("stop")))).message.tool_calls
    assert one.id.startswith("call_")
    assert one.id != other.id


async def test_text_beside_calls_is_streamed_and_kept() -> None:
    chunks = [delta(content="我查一下。"), tool_delta(id="a", name="get_weather", arguments=CITY), finish("tool_calls")]
    response = await turn(sse(*chunks))
    assert (response.message.text, calls_of(response)) == ("我查一下。", ONE_CALL)
