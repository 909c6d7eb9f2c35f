"""A turn that does not reach its end leaves the conversation as it was, and free at once."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from tests.chat.played import asks, clock
from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, body, delta, finish, message, sse, whole
from tests.service.api.sessions.conversing import (
    EVENTS,
    JSON,
    GatedPlayer,
    ask,
    conversation,
    faults,
    metric,
    questions,
    reply,
    sociable,
)
from tests.serving import client_of, events_of, service
from tests.waiting import until

PARTIAL = delta(content="I was about to")
CALL = delta(tool_calls=[{**asks(clock("Asia/Tokyo"))["tool_calls"][0], "index": 0}])
SILENT = sse(PARTIAL, done=False, ending="hang")
KEPT = [("user", "before"), ("assistant", reply("before"))]


def fails_once(*answers: Answer) -> Any:
    """A sociable model that gives these answers instead while it is asked the question "fail"."""
    remaining = iter(answers)

    def answer(request: PlayedRequest) -> Answer:
        return next(remaining, answers[-1]) if questions(request)[-1] == "fail" else sociable(request)

    return answer


@asynccontextmanager
async def failing_service(
    answers: Sequence[Answer], variables: Mapping[str, str]
) -> AsyncGenerator[tuple[httpx.AsyncClient, OpenAIPlayer], None]:
    async with OpenAIPlayer(fails_once(*answers)) as player:
        environment = {"OPENAI_BASE_URL": player.base_url, "MODEL_MAX_ATTEMPTS": "1", **variables}
        async with service(**environment) as client:
            yield client, player


async def go_on(client: httpx.AsyncClient, player: OpenAIPlayer) -> None:
    """Make sure that nothing of the failed turn is kept, its lock neither: the next one would wait for that in vain."""
    assert await conversation(client) == KEPT
    after = await ask(client, "after")
    assert (after.status_code, after.text) == (200, reply("after"))
    assert questions(player.requests[-1]) == ["before", "after"]
    assert [each for each in player.requests if faults(each.body["messages"])] == []
    assert await conversation(client) == [*KEPT, ("user", "after"), ("assistant", reply("after"))]


FAILURES = [
    pytest.param([sse(PARTIAL, done=False, ending="cut")], {}, "upstream-invalid", id="upstream dies in the stream"),
    pytest.param([sse(PARTIAL, done=False, ending="reset")], {}, "upstream-", id="connection is reset"),
    pytest.param([body(b"no", 500)], {}, "upstream-unavailable", id="upstream fails before a byte"),
    pytest.param([SILENT], {"REQUEST_TIMEOUT": "2"}, "deadline", id="deadline", marks=pytest.mark.slow),
    pytest.param([SILENT], {"MODEL_TIMEOUT": "2"}, "upstream-timeout", id="silence", marks=pytest.mark.slow),
    pytest.param([sse(CALL, finish("tool_calls"))], {"TOOL_MAX_ROUNDS": "1"}, "tool-loop", id="tool loop"),
    pytest.param(
        [sse(CALL, finish("tool_calls")), body(b"no", 500)], {}, "upstream-unavailable", id="dies after a tool round"
    ),
    pytest.param([sse(finish("content_filter"))], {}, "content-filtered", id="content filter"),
    pytest.param([sse(finish("stop"))], {}, "upstream-invalid", id="empty answer"),
]


WHOLE_FAILURES = [
    pytest.param([whole(message(), 200)], {}, "upstream-invalid", id="whole: empty"),
    pytest.param(
        [Answer([b'{"id"'], 200, {"Content-Type": "application/json"}, "cut")], {}, "upstream-", id="whole: cut"
    ),
    pytest.param(
        [Answer([b"{"], ending="hang")], {"REQUEST_TIMEOUT": "2"}, "deadline", id="hang", marks=pytest.mark.slow
    ),
    pytest.param(
        [whole(message("tool_calls", **asks(clock("UTC"))))], {"TOOL_MAX_ROUNDS": "1"}, "tool-loop", id="loop"
    ),
]


@pytest.mark.parametrize(
    ("form", "answers", "variables", "code"),
    [
        pytest.param(form, *each.values, id=each.id, marks=each.marks)
        for form, failures in ((EVENTS, FAILURES), (JSON, WHOLE_FAILURES))
        for each in failures
    ],
)
async def test_a_turn_that_fails_leaves_no_trace(
    form: dict[str, str], answers: Sequence[Answer], variables: dict[str, str], code: str
) -> None:
    # Whatever the phase in which it failed.
    async with failing_service(answers, variables) as (client, player):
        await ask(client, "before")
        failed = await ask(client, "fail", **form)
        if failed.status_code == 200:
            *_, last = events_of(failed.text)
            assert (last.name, last.data["code"].startswith(code)) == ("error", True)
        else:
            assert failed.json()["code"].startswith(code)
        await go_on(client, player)


@pytest.mark.parametrize(("said", "told"), [("content_filter",) * 2, ("SAFETY", "content_filter"), ("?", "incomplete")])
async def test_an_answer_cut_by_moderation_or_for_an_unknown_reason_is_returned_and_not_stored(
    said: str, told: str
) -> None:
    # Given again with every question, what moderation refused would have every one refused.
    answers = [sse(PARTIAL, finish(said))]
    async with OpenAIPlayer(fails_once(*answers)) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        await ask(client, "before")
        cut = events_of((await ask(client, "fail", **EVENTS)).text)[-1]
        assert (cut.data["answer"], cut.data["finish_reason"]) == ("I was about to", told)
        await go_on(client, player)


@pytest.mark.parametrize("form", [EVENTS, JSON], ids=["streamed", "whole"])
async def test_a_turn_of_a_client_that_disconnects_is_not_stored(form: dict[str, str]) -> None:
    # The model is stopped, and the session is free for the next question.
    answers = [sse(PARTIAL, done=False, ending="hang"), sse(PARTIAL, done=False, ending="hang")]
    async with OpenAIPlayer(fails_once(*answers)) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        await ask(client, "before")
        async with client_of(str(client.base_url)) as leaving:
            question = asyncio.create_task(ask(leaving, "fail", **form))
            await until(lambda: _is_asked(player, "fail"))
            question.cancel()
            await asyncio.wait([question])
        await until(player.aborted.is_set)
        await go_on(client, player)


async def test_a_waiting_client_that_disconnects_does_not_block_the_queue() -> None:
    # Its question is never asked, and the next in the line gets its turn when the running one ends.
    async with GatedPlayer(sociable) as player, service(OPENAI_BASE_URL=player.base_url) as client:

        async def in_flight(number: int) -> None:
            await until(lambda: _equals(metric(client, "questions_in_flight"), number))

        await ask(client, "before")
        player.gate.clear()
        questions_asked = [asyncio.create_task(ask(client, "running"))]
        await in_flight(1)
        leaving = asyncio.create_task(ask(client, "never asked"))
        await in_flight(2)
        questions_asked.append(asyncio.create_task(ask(client, "behind")))
        await in_flight(3)
        leaving.cancel()
        await in_flight(2)
        player.gate.set()
        assert [(await each).text for each in questions_asked] == [reply("running"), reply("behind")]
    assert [questions(each)[-1] for each in player.requests] == ["before", "running", "behind"]


async def _is_asked(player: OpenAIPlayer, question: str) -> bool:
    return any(questions(each)[-1] == question for each in player.requests)


async def _equals(figure: Awaitable[float], number: int) -> bool:
    return await figure == number
