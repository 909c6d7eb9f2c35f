"""What is used of quotas: the pace of questions, days, running questions, and clocks that are set back."""

import itertools

import pytest
from hypothesis import given, strategies as st

from toolchat.service.access.usage import DAY, NameUsage, QuotaLimits, QuotaUsage, reserve


class Pace:
    """A name with a limit of questions per minute, at a time that a test sets."""

    def __init__(self, limit: int) -> None:
        self.limits, self.used, self.now = QuotaLimits("alice", limit), NameUsage(), 1000.0
        self.usage: QuotaUsage

    def accepts(self) -> bool:
        """Ask once more, and keep the usage after that."""
        self.used.refresh(self.now, 60)
        _, [self.usage], refused = reserve([self.used], [self.limits], "1", now=self.now, lease=60)
        return refused is None


paces = st.builds(Pace, st.integers(1, 50))
pauses = st.lists(st.floats(0, 5), min_size=1, max_size=40)


@given(paces, pauses)
def test_no_window_allows_more_than_the_limit_plus_the_refill(pace: Pace, waits: list[float]) -> None:
    allowed: list[float] = []
    for wait in waits:
        pace.now += wait
        if pace.accepts():
            allowed.append(pace.now)
    limit, interval = pace.limits.requests_per_minute or 0, pace.limits.interval
    for (first, start), (last, end) in itertools.combinations(enumerate(allowed), 2):
        assert last - first + 1 <= limit + (end - start) / interval + 1e-3


@given(paces, pauses)
def test_a_client_that_waits_for_retry_after_is_accepted_and_not_before(pace: Pace, waits: list[float]) -> None:
    for wait in waits:
        pace.now += wait
        if not pace.accepts():
            wait = pace.usage.wait
            assert not pace.accepts()
            assert pace.usage.wait == wait  # a refused one is as if it had not come
            pace.now += wait + 2e-6 * pace.limits.interval
            assert pace.accepts()


@given(paces)
def test_the_whole_limit_may_come_at_once_and_one_more_an_interval_later(pace: Pace) -> None:
    limit = pace.limits.requests_per_minute or 0
    assert [(pace.accepts(), pace.usage.remaining) for _ in range(limit)] == [(True, n) for n in reversed(range(limit))]
    assert not pace.accepts()
    pace.now += pace.usage.wait - 1e-6 * pace.limits.interval - 2e-6
    assert not pace.accepts()
    pace.now += 2e-6 * pace.limits.interval + 4e-6
    assert [pace.accepts() for _ in range(2)] == [True, False]


@pytest.mark.parametrize("limits", [QuotaLimits("alice", requests_per_minute=1), QuotaLimits("alice", concurrent=1)])
def test_a_clock_that_is_set_back_refuses_for_no_longer_than_usual(limits: QuotaLimits) -> None:
    used = NameUsage()
    accepted = []
    for now in (5 * DAY, 0.0, 1.0):
        used.refresh(now, 60)
        accepted.append(reserve([used], [limits], "1", now=now, lease=60)[2] is None)
    assert accepted == [True, True, False]


def test_a_clock_that_steps_back_a_little_forgets_no_running_question() -> None:
    used, limits = NameUsage(), QuotaLimits("alice", concurrent=1)
    for now, refused in ((5.0, None), (4.999, "concurrent")):
        used.refresh(now, 60)
        assert reserve([used], [limits], f"{now}", now=now, lease=60)[2] == refused


def test_a_question_whose_process_died_ends_by_itself() -> None:
    used, limits = NameUsage(), QuotaLimits("alice", concurrent=1)
    for now, refused in ((0.0, None), (59.0, "concurrent"), (60.0, None)):
        used.refresh(now, 60)
        assert reserve([used], [limits], f"{now}", now=now, lease=60)[2] == refused


def test_a_used_up_day_admits_nobody_and_a_new_one_begins_with_all_its_tokens() -> None:
    used, limits = NameUsage(), QuotaLimits("alice", tokens_per_day=10)
    for now, tokens, refused in ((0.0, 9, None), (1.0, 1, None), (2.0, 0, "day"), (86_400.0, 0, None)):
        used.refresh(now, 60)
        assert reserve([used], [limits], "1", now=now, lease=60)[2] == refused
        used.settle(limits, "1", tokens)
