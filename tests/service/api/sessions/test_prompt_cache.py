"""How much of a request is the beginning of the one before: a provider's prompt cache serves nothing else."""

from collections.abc import Mapping, Sequence
from itertools import pairwise, takewhile
from typing import Any

import pytest
from pydantic_core import to_json

from tests.chat.played import asks, clock, says
from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, message, whole
from tests.service.api.sessions.conversing import ask, history
from tests.serving import service

TURNS, COUNTED = 60, slice(39, 60)
ANSWER = "It is late. " * 300
"""With 900 words: the window of 32,000 tokens is cut after 35 turns, and again after 18 more."""
Request = Sequence[Mapping[str, Any]]
"""The tools and the messages of a request, in the order in which a provider puts them before its model."""


def talkative(request: PlayedRequest) -> Answer:
    """A model that looks at the clock and answers at length."""
    if request.body["messages"][-1]["role"] == "user":
        return whole(message("tool_calls", **asks(clock("Asia/Tokyo"))))
    return whole(message(**says(ANSWER)))


async def played(**variables: str) -> list[PlayedRequest]:
    """The requests of a session, two for each of its turns."""
    async with OpenAIPlayer(talkative) as player, service(OPENAI_BASE_URL=player.base_url, **variables) as client:
        for number in range(TURNS):
            assert (await ask(client, f"What time is it in Tokyo, for the {number}. time?")).status_code == 200
        assert len(player.requests) == 2 * TURNS
        return player.requests


def as_sent(request: PlayedRequest) -> Request:
    return [*request.body["tools"], *request.body["messages"]]


def size(request: Request) -> int:
    return len(to_json(request))


@pytest.mark.parametrize("rounds", ["false", "true"])
async def test_most_of_a_request_is_the_beginning_of_the_one_before_also_when_the_window_is_full(rounds: str) -> None:
    requests = await played(MEMORY_TOOL_ROUNDS=rounds)
    counts = [len(history(each)) for each in requests[::2][COUNTED]]
    assert any(after < before for before, after in pairwise(counts))  # the window was cut
    sent, unchanged = 0, 0
    for former, request in [*zip(requests[1::2], requests[2::2], strict=False)][COUNTED]:
        pairs = zip(as_sent(request), as_sent(former), strict=False)
        same = takewhile(lambda both: both[0] == both[1], pairs)
        sent, unchanged = sent + size(as_sent(request)), unchanged + size([each for each, _ in same])
    assert unchanged >= 0.85 * sent
