"""How much of a request is the beginning of the one before: a provider's prompt cache serves nothing else."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile, pairwise, takewhile
from typing import Any

import pytest
from pydantic_core import to_json

from tests.architecture import ROOT
from tests.chat.played import asks, clock, says
from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, message, whole
from tests.serving import service
from tests.sessions.conversing import ask, history
from toolchat.messages import estimate_tokens

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


@dataclass(frozen=True)
class Cost:
    """Of the first requests of the counted turns, in bytes."""

    sent: int
    unchanged: int
    """What the request before began with, too."""

    def row(self) -> tuple[float, ...]:
        """The unchanged percentage, and kB sent and kB changed for each turn."""
        turns = 1000 * len(range(*COUNTED.indices(TURNS)))
        return 100 * self.unchanged / self.sent, self.sent / turns, (self.sent - self.unchanged) / turns


def cost(requests: Sequence[Request], former: Sequence[Request]) -> Cost:
    sent, unchanged = 0, 0
    for one, other in zip(requests[COUNTED], former[COUNTED], strict=True):
        same = takewhile(lambda both: both[0] == both[1], zip(one, other, strict=False))
        sent, unchanged = sent + size(one), unchanged + size([each for each, _ in same])
    return Cost(sent, unchanged)


def cost_of(requests: Sequence[PlayedRequest]) -> Cost:
    sent = list(map(as_sent, requests))
    return cost(sent[::2], [[], *sent[1::2]])


def newest_twenty(messages: Request) -> Request:
    """Spring AI's MessageWindowChatMemory, by default; the question comes on top."""
    return [*messages[:-1][-20:], messages[-1]]


def newest_tokens(messages: Request) -> Request:
    """LangChain's trim_messages with ``strategy="last"`` and ``start_on="human"``, and a window as large as ours."""
    room, kept = 32_000, len(messages)
    while kept and (room := room - estimate_tokens(messages[kept - 1]["content"])) >= 0:
        kept -= 1
    return [*dropwhile(lambda each: each["role"] != "user", messages[kept:])]


def cost_with(rule: Callable[[Request], Request], session: Sequence[PlayedRequest]) -> Cost:
    """Of a session that another rule keeps in its window; the requests are the same in all else."""
    told: list[Mapping[str, Any]] = []
    firsts, lasts = list[Request](), list[Request]()
    for first, last in zip(session[::2], session[1::2], strict=True):
        running = last.body["messages"][-3:]
        begin = [*first.body["tools"], first.body["messages"][0], *rule([*told, running[0]])]
        firsts.append(begin)
        lasts.append([*begin, *running[1:]])
        told += [running[0], {"role": "assistant", "content": ANSWER}]
    return cost(firsts, [[], *lasts])


@pytest.mark.parametrize("rounds", ["false", "true"])
async def test_most_of_a_request_is_the_beginning_of_the_one_before_also_when_the_window_is_full(rounds: str) -> None:
    requests = await played(MEMORY_TOOL_ROUNDS=rounds)
    counts = [len(history(each)) for each in requests[::2][COUNTED]]
    assert any(after < before for before, after in pairwise(counts))  # the window was cut
    unchanged, *_ = cost_of(requests).row()
    assert unchanged >= 85


async def test_the_documentation_has_the_measured_figures() -> None:
    session = await played()
    rows = {
        "toolchat": cost_of(session).row(),
        "toolchat, with `MEMORY_TOOL_ROUNDS`": cost_of(await played(MEMORY_TOOL_ROUNDS="true")).row(),
        "Spring AI's window of 20 messages": cost_with(newest_twenty, session).row(),
        "LangChain's `trim_messages`, 32,000 tokens": cost_with(newest_tokens, session).row(),
    }
    document = (ROOT / "docs" / "sessions.md").read_text(encoding="utf-8")
    for name, figures in rows.items():
        written = re.search(rf"^\| {re.escape(name)} \| (\d+) % \| (\d+) kB \| (\d+) kB \|$", document, re.MULTILINE)
        assert written, name
        assert [int(each) for each in written.groups()] == pytest.approx(figures, abs=1.5)
