"""A rate holds in every window, forgets nothing that counts, and costs a refused one nothing."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from app.access.rate import Rate, RateLimiter


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


rates = st.builds(Rate, st.integers(1, 50), st.floats(0.5, 120))
pauses = st.lists(st.floats(0, 5), min_size=1, max_size=40)


@given(rates, pauses)
def test_no_window_allows_more_than_the_limit_plus_the_refill(rate: Rate, waits: list[float]) -> None:
    clock, allowed = Clock(), []
    limiter = RateLimiter(clock=clock)
    for wait in waits:
        clock.now += wait
        if limiter.hit("a", rate).allowed:
            allowed.append(clock.now)
    for (first, start), (last, end) in itertools.combinations(enumerate(allowed), 2):
        assert last - first + 1 <= rate.limit + (end - start) / rate.interval + 1e-3


@given(rates)
def test_the_whole_limit_may_come_at_once_and_one_more_an_interval_later(rate: Rate) -> None:
    clock = Clock()
    limiter = RateLimiter(clock=clock)
    remaining = [limiter.hit("a", rate).remaining for _ in range(rate.limit)]
    assert remaining == list(range(rate.limit - 1, -1, -1))
    refused = limiter.hit("a", rate)
    assert not refused.allowed
    clock.now += refused.wait - 1e-6 * rate.interval - 2e-6
    assert not limiter.hit("a", rate).allowed
    clock.now += 2e-6 * rate.interval + 4e-6
    assert limiter.hit("a", rate).allowed
    assert not limiter.hit("a", rate).allowed


@given(rates, pauses)
def test_a_client_that_waits_for_retry_after_is_accepted(rate: Rate, waits: list[float]) -> None:
    clock = Clock()
    limiter = RateLimiter(clock=clock)
    for wait in waits:
        clock.now += wait
        decision = limiter.hit("a", rate)
        if not decision.allowed:
            clock.now += decision.wait + 1e-6
            assert limiter.hit("a", rate).allowed


def test_a_refused_one_is_as_if_it_had_not_come() -> None:
    clock = Clock()
    limiter, rate = RateLimiter(clock=clock), Rate(1, 60)
    assert limiter.hit("a", rate).allowed
    for _ in range(1000):
        assert not limiter.hit("a", rate).allowed
    clock.now += 60
    assert limiter.hit("a", rate).allowed


def test_one_name_uses_up_nothing_of_another() -> None:
    limiter, rate = RateLimiter(clock=Clock()), Rate(2, 60)
    assert [limiter.hit(name, rate).allowed for name in "aaabab"] == [True, True, False, True, False, True]


def test_names_are_forgotten_before_they_fill_the_memory() -> None:
    limiter = RateLimiter(max_names=100, clock=Clock())
    for number in range(10_000):
        limiter.hit(f"{number}", Rate(10, 60))
    assert len(limiter) == 100
