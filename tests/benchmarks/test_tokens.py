"""What a question sends to its model, in characters: tokens need a vocabulary, which is not there in every place."""

from pathlib import Path

import pytest

from benchmarks.tokens import QUESTIONS, Recorder, parts, unchanged, with_many
from tests.serving import service


@pytest.mark.parametrize(
    ("agent", "path", "requests", "characters"),
    [
        ("time", "/time/chat-tool-function?query=", 2, 1_130),
        ("weather", "/weather/chat-tool-function?query=", 2, 1_900),
        ("chat", "/chat?userInput=", 2, 1_960),
        ("many", "/many/chat-tool-function?query=", 3, 3_880),
    ],
)
async def test_a_question_sends_no_more_than_this(
    agent: str, path: str, requests: int, characters: int, tmp_path: Path
) -> None:
    with Recorder() as model:
        own = {**with_many(tmp_path), "OPENAI_BASE_URL": f"{model.url}/v1"}
        async with service(**own, WEATHER_BASE_URL=f"{model.url}/v1", WEATHER_API_KEY="w") as client:
            model.wanted, text = QUESTIONS[agent]
            answer = await client.get(path + text)
    assert (answer.status_code, len(model.requests)) == (200, requests)
    sent = [len("".join(parts(each))) for each in model.requests]
    assert sum(sent) <= characters, sent


async def test_a_full_window_moves_in_large_steps_so_that_requests_go_on_to_begin_alike() -> None:
    firsts = []
    with Recorder() as model:
        async with service(OPENAI_BASE_URL=f"{model.url}/v1", MEMORY_MAX_MESSAGES="20") as client:
            for turn in range(30):
                firsts.append(len(model.requests))
                await client.get(f"/chat?tools=getCityTimeFunction&sessionId=one&userInput=What+time+is+it,+{turn}?")
    assert len(model.requests[firsts[-1]]["messages"]) > 10
    assert unchanged(model.requests, firsts[10:]) > 0.75


def test_a_window_that_slides_with_every_turn_shares_only_its_system_prompt() -> None:
    window = [{"role": "user", "content": f"question {number} of a long conversation"} for number in range(30)]
    requests = [{"messages": [{"role": "system", "content": "Be brief."}, *window[at : at + 5]]} for at in range(20)]
    assert unchanged(requests, range(10, 20)) < 0.2
