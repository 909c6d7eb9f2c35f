"""What the model is given of a conversation: whole turns, the newest, within the window, with a stable beginning."""

from collections.abc import Mapping, Sequence
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

import pytest
from pydantic_core import to_json

from tests.chat.played import asks, clock, says
from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, message, whole
from tests.service.api.sessions.conversing import (
    EVENTS,
    JSON,
    ask,
    conversation,
    faults,
    history,
    questions,
    reply,
    sociable,
)
from tests.serving import service
from toolchat.service.settings.service_settings import Settings

SYSTEM = {"role": "system", "content": Settings().system_prompt}


def exchanged(question: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": question}, {"role": "assistant", "content": reply(question)}]


async def test_the_second_question_includes_the_first_turn_in_every_format() -> None:
    # Text, JSON and streams share one memory; the instructions stand once, and first.
    async with OpenAIPlayer(sociable) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        for question, form in (("one", {}), ("two", JSON), ("three", EVENTS), ("four", {})):
            assert (await ask(client, question, **form)).status_code == 200
        kept = await client.get("/chat/s-1")

    last = {"role": "user", "content": "four"}
    assert player.requests[3].body["messages"] == [
        SYSTEM, *exchanged("one"), *exchanged("two"), *exchanged("three"), last
    ]  # fmt: skip
    document = kept.json()
    assert (document["session_id"], document["turns"], len(document["messages"])) == ("s-1", 4, 8)
    first, second = document["messages"][:2]
    assert first == {"role": "user", "text": "one"}
    assert (second["role"], second["text"]) == ("assistant", reply("one"))


LONG = [
    *("hello", "What time is it in Asia/Tokyo?", "and?", "Compare Europe/Paris and Asia/Tokyo.", "thanks", "长" * 30),
    *("again: Europe/Rome", "x" * 200, "Asia/Seoul, Europe/Oslo, Africa/Lagos", "fine", "so", "bye"),
]


@pytest.mark.parametrize(("form", "tool_rounds"), [(JSON, "true"), (EVENTS, "false")], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    "bound", [{}, {"MEMORY_MAX_MESSAGES": "7"}, {"MEMORY_MAX_TOKENS": "120"}, {"MEMORY_MAX_MESSAGES": "2"}], ids=str
)
async def test_every_request_of_a_long_conversation_is_one_that_strict_providers_take(
    bound: dict[str, str], form: dict[str, str], tool_rounds: str
) -> None:
    # No result without its call, no reasoning of old, and the turns before are the newest ones, without a gap.
    variables = {"MEMORY_TOOL_ROUNDS": tool_rounds, **bound}
    async with OpenAIPlayer(sociable) as player, service(OPENAI_BASE_URL=player.base_url, **variables) as client:
        for question in LONG:
            assert (await ask(client, question, **form)).status_code == 200

    asked: list[str] = []
    for request in player.requests:
        messages = request.body["messages"]
        assert faults(messages) == []
        given = questions(request)
        if given[-1] not in asked:
            asked.append(given[-1])
            assert len(history(request)) + 1 <= int(bound.get("MEMORY_MAX_MESSAGES", "1000")) or not history(request)
        assert given == asked[-len(given) :]
        answers = [each["content"] for each in history(request) if "tool_calls" not in each]
        assert [each for each in answers if each.startswith("I heard")] == [reply(each) for each in given[:-1]]
    assert asked == LONG
    assert len(player.requests) == len(LONG) + 7


async def test_a_running_turn_that_is_larger_than_the_window_goes_out_whole() -> None:
    # It is neither cut nor refused and keeps its tool results in every round; afterwards the model gets it without its
    # middle, and a person gets all of it.
    variables = {"MEMORY_MAX_TOKENS": "100", "MEMORY_MAX_MESSAGES": "4"}
    large = "长" * 3000 + " Asia/Tokyo Europe/Paris Asia/Seoul"
    async with OpenAIPlayer(sociable) as player, service(OPENAI_BASE_URL=player.base_url, **variables) as client:
        await ask(client, "small")
        assert (await ask(client, large)).text == reply(large)
        await ask(client, "next")
        await ask(client, "last")
        assert (await conversation(client))[2:4] == [("user", large), ("assistant", reply(large))]

    sent = [each.body["messages"] for each in player.requests]
    assert [len(each) for each in sent] == [2, 2, 4, 6, 8, 4, 4]
    assert [each for each in sent if faults(each)] == []
    assert [each["content"] for each in sent[4] if each["role"] == "user"] == [large]
    assert sum(each["role"] == "tool" for each in sent[4]) == 3
    shortened, following = questions(player.requests[-2])
    assert ("characters left out" in shortened, len(shortened) < 100, following) == (True, True, "next")
    assert questions(player.requests[-1]) == ["next", "last"]


LONG_ANSWER = "It is late. " * 11_000
"""With 33,000 tokens it alone is larger than the window."""


async def test_a_long_answer_is_shown_whole_and_reaches_the_model_alike_with_every_question(tmp_path: Path) -> None:
    # Also from another process, which reads the turn instead of storing it.
    def script(request: PlayedRequest) -> Answer:
        return whole(message(**says(LONG_ANSWER if questions(request)[-1] == "long" else "well")))

    state = f"sqlite:///{tmp_path / 'state.db'}"
    async with OpenAIPlayer(script) as player:
        for asked in (["first", "long", "third", "fourth"], ["fifth"]):
            async with service(OPENAI_BASE_URL=player.base_url, STATE_URL=state) as client:
                for question in asked:
                    assert (await ask(client, question)).status_code == 200
                assert (await conversation(client))[2:4] == [("user", "long"), ("assistant", LONG_ANSWER)]
                listed = (await client.get("/sessions/s-1")).json()["turns"]
                assert [each["messages"][-1]["text"] for each in listed if each["turn"] == 1] == [LONG_ANSWER]

    third, fourth, fifth = map(history, player.requests[2:])
    assert (third, fourth) == (fourth[:4], fifth[:6])
    assert [each["content"] for each in third[:3]] == ["first", "well", "long"]
    assert "characters left out" in third[3]["content"]


async def with_tool_rounds(question: str, **variables: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What the last model turn of a question with tools was given, and what the next question brings of it."""
    variables |= {"MEMORY_TOOL_ROUNDS": "true"}
    async with OpenAIPlayer(sociable) as player, service(OPENAI_BASE_URL=player.base_url, **variables) as client:
        await ask(client, question, **JSON)
        running = player.requests[-1].body["messages"]
        await ask(client, "and then?", **JSON)
        assert faults(player.requests[-1].body["messages"]) == []
        return running[1:], player.requests[-1].body["messages"][1:-1]


async def test_tool_rounds_are_stored_with_their_results_if_configured() -> None:
    # Calls and results come back as they were, without the reasoning, which was there while the turn ran.
    question = "Compare Europe/Paris and Asia/Tokyo."
    running, again = await with_tool_rounds(question)

    assert [each["role"] for each in running] == ["user", "assistant", "tool", "assistant", "tool"]
    assert running[1]["reasoning_content"] == f"Thinking about {question}"
    expected = [{key: value for key, value in each.items() if key != "reasoning_content"} for each in running]
    assert again == [*expected, {"role": "assistant", "content": reply(question)}]


def small(request: PlayedRequest) -> Answer:
    """A model that takes six messages beside its instructions."""
    if len(request.body["messages"]) > 7:
        return whole({"error": {"message": "too long", "code": "context_length_exceeded"}}, 400)
    return sociable(request)


@pytest.mark.parametrize("wanted", [JSON, EVENTS])
async def test_a_session_goes_on_with_fewer_turns_if_the_model_takes_no_more(wanted: dict[str, str]) -> None:
    async with OpenAIPlayer(small) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        for number in range(8):
            assert reply(f"{number}") in (await ask(client, f"{number}", **wanted)).text
        sent = [len(each.body["messages"]) for each in player.requests]
        assert [text for _, text in await conversation(client)][-4:] == ["6", reply("6"), "7", reply("7")]
    # Cut to half when it was too long, and kept so.
    assert sent == [2, 4, 6, 8, 4, 6, 8, 4, 6, 8, 4]


async def test_a_turn_that_has_run_a_tool_does_not_begin_again() -> None:
    async with OpenAIPlayer(small) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        for number in range(2):
            await ask(client, f"{number}")
        answer = await ask(client, "Asia/Tokyo and Europe/Paris", **JSON)
        assert (answer.status_code, answer.json()["code"]) == (422, "context-too-long")
        assert len(player.requests) == 4


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
