"""A circuit breaker by itself: when it opens, who may try, and when it closes."""

import asyncio
from contextlib import suppress

import pytest

from toolchat.errors import (
    Overloaded,
    ProviderRateLimited,
    ToolchatError,
    UpstreamError,
    UpstreamInvalid,
    UpstreamTimeout,
    UpstreamUnavailable,
)
from toolchat.http.breakers import Breakers, CircuitBreaker

AWAY, STALE = UpstreamUnavailable("away"), UpstreamUnavailable("closed")
STALE.is_stale = True


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def asked(breaker: CircuitBreaker, failure: BaseException | None = None) -> str:
    """Ask through a breaker: ``ok``, ``failed``, or ``refused`` where nobody was asked."""
    outcome = "refused"
    with suppress(UpstreamError, ValueError, asyncio.CancelledError), breaker:
        outcome = "failed"
        if failure is not None:
            raise failure
        outcome = "ok"
    return outcome


@pytest.mark.parametrize("failure", [AWAY, UpstreamTimeout("silent")])
def test_it_opens_after_consecutive_failures_and_refuses_until_its_pause_is_over(failure: UpstreamError) -> None:
    clock = Clock()
    breaker = CircuitBreaker("x", failures=3, pause=10, clock=clock)
    assert [asked(breaker, failure) for _ in range(5)] == ["failed"] * 3 + ["refused"] * 2
    clock.now = 9.9
    assert asked(breaker) == "refused"
    clock.now = 10
    assert [asked(breaker), asked(breaker)] == ["ok", "ok"]


@pytest.mark.parametrize("answer", [None, ProviderRateLimited("busy"), UpstreamInvalid("nonsense"), ValueError()])
def test_any_response_resets_the_count_of_failures(answer: Exception | None) -> None:
    breaker = CircuitBreaker("x", failures=2)
    for _ in range(5):
        assert asked(breaker, AWAY) == "failed"
        assert asked(breaker, answer) != "refused"


@pytest.mark.parametrize("error", [Overloaded("no open file left"), STALE])
def test_what_proves_nothing_counts_neither_way(error: ToolchatError) -> None:
    breaker = CircuitBreaker("x", failures=2)
    assert asked(breaker, AWAY) == "failed"
    for _ in range(3):
        with suppress(Overloaded):
            assert asked(breaker, error) == "failed"
    assert not breaker.is_open
    assert [asked(breaker, AWAY), asked(breaker)] == ["failed", "refused"]


def test_a_failed_trial_keeps_the_circuit_open_for_another_pause() -> None:
    clock = Clock()
    breaker = CircuitBreaker("x", failures=1, pause=10, clock=clock)
    asked(breaker, AWAY)
    clock.now = 10
    meanwhile = ""
    with suppress(UpstreamUnavailable), breaker:
        meanwhile = asked(breaker)
        raise AWAY
    assert meanwhile == "refused"
    clock.now = 19.9
    assert asked(breaker) == "refused"
    clock.now = 20
    assert asked(breaker) == "ok"


def test_a_cancelled_trial_lets_the_next_request_try() -> None:
    clock = Clock()
    breaker = CircuitBreaker("x", failures=1, pause=10, clock=clock)
    asked(breaker, AWAY)
    clock.now = 10
    assert [asked(breaker, asyncio.CancelledError()), asked(breaker)] == ["failed", "ok"]


def test_a_refusal_has_the_time_of_the_next_trial() -> None:
    clock = Clock()
    breaker = CircuitBreaker("the shop", failures=1, pause=10, clock=clock)
    asked(breaker, AWAY)
    clock.now = 4
    with pytest.raises(UpstreamUnavailable, match="the shop has failed") as refused, breaker:
        pass
    assert (refused.value.retryable, refused.value.retry_after) == (True, 6)


def test_the_log_says_when_a_circuit_opens_is_tried_and_closes(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    clock = Clock()
    breaker = CircuitBreaker("the shop", failures=2, pause=10, clock=clock)
    for clock.now, failure in ((0, AWAY), (0, AWAY), (10, AWAY), (20, None)):
        asked(breaker, failure)
    lines = [(each.levelname, each.getMessage(), vars(each)["upstream"]) for each in caplog.records]
    tried = ("INFO", "circuit half-open: a trial request passes", "the shop")
    opened, closed = ("WARNING", "circuit open", "the shop"), ("INFO", "circuit closed", "the shop")
    assert lines == [opened, tried, tried, closed]
    assert (vars(caplog.records[0])["failures"], vars(caplog.records[0])["last_failure"]) == (
        2,
        f"upstream-unavailable: {AWAY}",
    )


def test_an_answer_of_500_is_a_failure_and_one_of_404_is_none() -> None:
    for status, opens in ((500, True), (404, False)):
        breaker = Breakers(failures=1).get("x")
        with breaker:
            breaker.record_status(status)
        assert breaker.is_open is opens


def test_without_a_number_of_failures_it_never_opens() -> None:
    breaker = CircuitBreaker("x", failures=0)
    assert {asked(breaker, AWAY) for _ in range(50)} == {"failed"}


def test_upstreams_have_breakers_of_their_own() -> None:
    breakers = Breakers(failures=1)
    asked(breakers.get("one"), AWAY)
    assert (asked(breakers.get("one")), asked(breakers.get("other"))) == ("refused", "ok")
