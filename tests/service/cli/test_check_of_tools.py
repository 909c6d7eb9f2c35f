"""What ``check`` says of a model that calls tools in one way and not in another."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.command_line import run
from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, finish, message, sensible_model, sse, whole
from tests.service.cli.test_check import CALLS, lines_of

REFUSED = whole({"error": {"message": "not like this"}}, 400)
WORDS = "the provider refused the request (status 400); the provider says: not like this"
Refuses = Callable[[PlayedRequest], bool]


def has_result(request: PlayedRequest) -> bool:
    return bool(request.body["messages"][-1]["role"] == "tool")


async def checked(tmp_path: Path, play: Callable[[PlayedRequest], Answer]) -> tuple[str, str, OpenAIPlayer]:
    async with OpenAIPlayer(play) as player:
        variables = {"OPENAI_BASE_URL": player.base_url, "MODEL_MAX_ATTEMPTS": "1"}
        done = await asyncio.to_thread(run, "check", cwd=tmp_path, **variables)
    state, _, note = lines_of(done)["Chat model"]
    return state, note, player


@pytest.mark.parametrize(
    ("refuses", "note"),
    [
        (lambda request: "stream" not in request.body, f"only streamed tool calls work: upstream-invalid: {WORDS}"),
        (
            lambda request: "stream" in request.body and not has_result(request),
            f"only whole tool calls work: upstream-invalid: {WORDS}",
        ),
        (has_result, f"tool calls work, but not the answer to their result: upstream-invalid: {WORDS}"),
        (lambda _: True, f"upstream-invalid: {WORDS}"),
        (lambda _: False, f"openai_compatible/gpt-4o-mini {CALLS}"),
    ],
    ids=["whole", "streamed", "result", "all", "none"],
)
async def test_check_says_which_use_of_tools_fails(refuses: Refuses, note: str, tmp_path: Path) -> None:
    sensible = sensible_model()
    state, told, player = await checked(tmp_path, lambda asked: REFUSED if refuses(asked) else sensible(asked))
    assert (state, told) == ("works" if note.endswith(CALLS) else "failed", note)
    if state == "works":
        *_, second, third = player.requests
        assert (second.body["stream"], third.body["messages"][-1]["content"]) == (True, "pong")


async def test_a_model_that_writes_nothing_from_a_result_has_failed(tmp_path: Path) -> None:
    sensible = sensible_model()
    again = {"index": 0, "id": "again", "function": {"name": "ping", "arguments": "{}"}}
    calls = sse({"choices": [{"index": 0, "delta": {"tool_calls": [again]}}]}, finish("tool_calls"))
    state, told, _ = await checked(tmp_path, lambda asked: calls if has_result(asked) else sensible(asked))
    assert state == "failed"
    assert told.endswith(
        "not the answer to their result: fault of the model: openai_compatible/gpt-4o-mini wrote nothing"
    )


async def test_a_provider_that_is_down_is_asked_for_one_kind_only(tmp_path: Path) -> None:
    state, told, player = await checked(tmp_path, lambda _: whole({"error": {"message": "down"}}, 500))
    assert (state, len(player.requests)) == ("failed", 1)
    assert told.startswith("upstream-unavailable: ")


async def test_text_in_place_of_a_streamed_call_is_told_apart_from_a_refusal(tmp_path: Path) -> None:
    sensible = sensible_model()
    state, told, _ = await checked(
        tmp_path, lambda asked: whole(message(content="ok")) if "stream" in asked.body else sensible(asked)
    )
    assert (state, told.partition(": ")[0]) == ("failed", "only whole tool calls work")
    assert "did not call the tool" in told
