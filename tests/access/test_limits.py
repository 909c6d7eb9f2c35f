"""Rates and quotas: in one process and over several, and while the store is away."""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.access.principals import Principal
from app.access.quotas import Limits, LocalQuotas, QuotaReservation, Quotas, open_quotas
from app.access.rate import Rate, RateLimiter
from tests.players.redis_server import RedisServer
from tests.sessions.replicas import needs_redis
from tests.waiting import until
from toolchat.errors import QuotaExceeded
from toolchat.state.base import StateStore
from toolchat.state.redis import RedisStateStore
from toolchat.state.sqlite import SqliteStateStore
from toolchat.state.sqlite_file import IN_MEMORY


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


pytestmark = pytest.mark.usefixtures("tmp_path")  # for the file of the state

NOBODY = Limits("all")
KINDS = ["memory", "sqlite", pytest.param("redis", marks=needs_redis)]


@asynccontextmanager
async def quotas(kind: str, together: Limits = NOBODY, processes: int = 1) -> AsyncGenerator[list[Quotas], None]:
    """The quotas of some processes that share a store."""
    async with AsyncExitStack() as stack:
        if kind == "redis":
            server = await stack.enter_async_context(RedisServer())
        path = {"memory": IN_MEMORY, "sqlite": "state.db"}.get(kind)
        stores: list[StateStore] = [
            SqliteStateStore(path, deadline=10) if path else RedisStateStore(server.url, deadline=10)
            for _ in range(processes)
        ]
        try:
            yield [open_quotas(store, together, 60) for store in stores]
        finally:
            for store in stores:
                await store.aclose()


async def refusal(counted: Quotas, principal: Principal) -> QuotaExceeded:
    with pytest.raises(QuotaExceeded) as caught:
        await counted.reserve(principal)
    return caught.value


@pytest.mark.parametrize("kind", KINDS)
async def test_a_client_over_its_quota_gets_retry_after(kind: str) -> None:
    alice, bob = Principal("alice", requests_per_minute=3), Principal("bob", requests_per_minute=3)
    async with quotas(kind) as (counted, *_):
        spent = [await counted.reserve(alice) for _ in range(3)]
        assert [each.headers["RateLimit-Policy"] for each in spent] == ['"minute";q=3;w=60'] * 3
        assert [each.headers["RateLimit"].partition(";t")[0] for each in spent] == [
            f'"minute";r={n}' for n in (2, 1, 0)
        ]
        refused = await refusal(counted, alice)
        assert refused.violated == "minute"
        assert refused.retry_after is not None
        assert 0 < refused.retry_after <= 20
        await counted.reserve(bob)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_place_is_free_again_when_its_question_is_answered(kind: str) -> None:
    alice = Principal("alice", concurrent=2)
    async with quotas(kind) as (counted, *_):
        first, _second = await counted.reserve(alice), await counted.reserve(alice)
        assert (await refusal(counted, alice)).violated == "concurrent"
        await counted.settle(first)
        await counted.reserve(alice)
        await refusal(counted, alice)


@pytest.mark.parametrize("kind", KINDS)
async def test_an_answer_is_not_cut_by_the_tokens_of_the_day_and_the_next_is_refused(kind: str) -> None:
    alice = Principal("alice", tokens_per_day=100)
    async with quotas(kind) as (counted, *_):
        spending = await counted.reserve(alice)
        spending.tokens = 5000
        await counted.settle(spending)
        refused = await refusal(counted, alice)
        assert refused.violated == "day"
        assert refused.retry_after is not None
        assert 0 < refused.retry_after <= 86_400


@pytest.mark.parametrize("kind", KINDS)
async def test_the_limits_of_all_together_count_everybody_and_a_refused_one_is_charged_nothing(kind: str) -> None:
    alice = Principal("alice", requests_per_minute=5)
    async with quotas(kind, Limits("all", requests_per_minute=2)) as (counted, *_):
        await counted.reserve(Principal(""))
        await counted.reserve(alice)
        for _ in range(20):
            assert (await refusal(counted, alice)).headers["RateLimit-Policy"] == '"minute";q=2;w=60'


@pytest.mark.parametrize("kind", KINDS[1:])
async def test_concurrent_processes_allow_no_more_than_the_limit(kind: str) -> None:
    alice = Principal("alice", requests_per_minute=40, concurrent=25)
    async with quotas(kind, processes=3) as processes:
        asked = await asyncio.gather(
            *(each.reserve(alice) for _ in range(20) for each in processes), return_exceptions=True
        )
        refused = [each for each in asked if isinstance(each, QuotaExceeded)]
        assert len(asked) - len(refused) == 25
        assert {each.violated for each in refused} == {"concurrent"}


async def test_each_further_process_exceeds_a_large_limit_by_a_hundredth_at_most() -> None:
    alice = Principal("alice", concurrent=1000)
    async with quotas("sqlite", processes=3) as processes:
        turns = [each for _ in range(500) for each in processes]
        asked = [await asyncio.gather(each.reserve(alice), return_exceptions=True) for each in turns]
        assert 1000 <= sum(isinstance(each, QuotaReservation) for [each] in asked) <= 1020


@pytest.mark.parametrize("is_stopped", [False, True])
async def test_tokens_that_a_process_counts_by_itself_reach_the_others(*, is_stopped: bool) -> None:
    alice = Principal("alice", tokens_per_day=1_000_000)
    async with quotas("sqlite", processes=2) as (one, other):

        async def is_charged() -> bool:
            return (await other.reserve(alice)).usage[0].remaining == 990_000

        for _ in range(2):
            spending = await one.reserve(alice)
            spending.tokens = 5000
            await one.settle(spending)
        if is_stopped:
            await one.aclose()
            assert await is_charged()
        await until(is_charged)


@needs_redis
async def test_while_redis_is_unavailable_each_process_applies_the_whole_limit() -> None:
    alice = Principal("alice", requests_per_minute=20)
    async with RedisServer() as server:
        stores: list[StateStore] = [RedisStateStore(server.url, deadline=10) for _ in range(2)]
        one, other = (open_quotas(store, NOBODY, 60) for store in stores)
        await stores[0].start()
        await one.reserve(alice)
        await other.reserve(alice)
        await server.kill()
        for each in (one, other):
            assert (await accepted_by(each, alice), each.alone) == (20, True)
        await server.start()
        await until(lambda: has_returned(stores[0]))
        await one.reserve(alice)
        assert not one.alone
        for store in stores:
            await store.aclose()


async def has_returned(store: StateStore) -> bool:
    return store.available


async def accepted_by(counted: Quotas, principal: Principal) -> int:
    number = 0
    while True:
        try:
            await counted.reserve(principal)
        except QuotaExceeded:
            return number
        number += 1


async def test_a_new_day_begins_with_all_its_tokens() -> None:
    today = [100]
    counted, alice = Quotas(LocalQuotas(today=day_of(today)), NOBODY), Principal("alice", tokens_per_day=10)
    spending = await counted.reserve(alice)
    spending.tokens = 10
    await counted.settle(spending)
    await refusal(counted, alice)
    today[0] += 1
    await counted.reserve(alice)


def day_of(today: list[int]) -> Callable[[], int]:
    return lambda: today[0]


async def test_principals_without_a_limit_are_not_counted() -> None:
    spending = await Quotas(LocalQuotas(), NOBODY).reserve(Principal("alice"))
    assert (spending.store, spending.headers) == (None, {})
