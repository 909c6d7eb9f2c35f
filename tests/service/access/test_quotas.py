"""Rates and quotas: in one process and over several, and while the store is away."""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing
from functools import partial

import pytest
from pydantic_core import from_json

from tests.players.postgresql_server import PostgresqlServer
from tests.players.redis_server import RedisServer
from tests.state.conftest import postgresql_store
from tests.waiting import until
from toolchat.errors import QuotaExceeded
from toolchat.service.access.principals import Principal
from toolchat.service.access.quotas import Quotas
from toolchat.service.access.usage import QuotaLimits
from toolchat.state.base import StateStore
from toolchat.state.redis import RedisStateStore
from toolchat.state.sqlite import SqliteStateStore
from toolchat.state.sqlite_file import IN_MEMORY

pytestmark = pytest.mark.usefixtures("tmp_path")  # for the file of the state

NOBODY = QuotaLimits("all")
KINDS = ["memory", "sqlite", "redis", pytest.param("postgresql", marks=pytest.mark.slow)]


@asynccontextmanager
async def quotas(kind: str, together: QuotaLimits = NOBODY, processes: int = 1) -> AsyncGenerator[list[Quotas], None]:
    """The quotas of some processes that share a store."""
    async with AsyncExitStack() as stack:
        opened: Callable[[], StateStore]
        if kind == "redis":
            redis = await stack.enter_async_context(RedisServer())
            opened = partial(RedisStateStore, redis.url, deadline=10)
        elif kind == "postgresql":
            postgresql = stack.enter_context(PostgresqlServer())
            opened = partial(postgresql_store, postgresql, "toolchat", deadline=10)
        else:
            opened = partial(SqliteStateStore, IN_MEMORY if kind == "memory" else "state.db", deadline=10)
        stores = [opened() for _ in range(processes)]
        await stores[0].start()  # creates tables
        try:
            yield [Quotas(store, together, lease=600) for store in stores]  # no place is free by the end of its lease
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


async def left_by(counted: Quotas, principal: Principal) -> dict[str, int]:
    """What the limits of a principal still allow, by their kind; nothing if one of them is used up."""
    try:
        reservation = await counted.reserve(principal)
    except QuotaExceeded:
        return {}
    await counted.settle(reservation)
    return {each.kind: each.remaining for each in reservation.usage}


@pytest.mark.parametrize("kind", KINDS)
async def test_clients_that_leave_at_any_moment_free_their_places_and_are_charged_once(kind: str) -> None:
    alice = Principal("alice", concurrent=30, tokens_per_day=100_000)
    charged = 0

    async def ask(counted: Quotas) -> None:
        nonlocal charged
        reservation = await counted.reserve(alice)
        reservation.tokens = 10
        charged += 10
        await counted.settle(reservation)

    async with quotas(kind) as (counted, *_):
        for moment in range(30):
            asking = asyncio.ensure_future(ask(counted))
            for _ in range(moment):
                await asyncio.sleep(0.0002 * (moment % 3))
            asking.cancel()
            await asyncio.wait([asking])

        async def are_free() -> bool:
            return await left_by(counted, alice) == {"concurrent": 29, "day": 100_000 - charged}

        await until(are_free)


async def test_a_question_that_ends_while_the_file_is_locked_is_charged_later() -> None:
    alice = Principal("alice", concurrent=1, tokens_per_day=1000)
    store = SqliteStateStore("state.db", deadline=0.05)
    counted = Quotas(store, NOBODY)
    reservation = await counted.reserve(alice)
    reservation.tokens = 10
    with closing(sqlite3.connect("state.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        await counted.settle(reservation)
        other.execute("COMMIT")
    assert not store.available

    async def is_free() -> bool:
        return await left_by(counted, alice) == {"concurrent": 0, "day": 990}

    await until(is_free)
    await store.aclose()


async def running_of_alice(store: StateStore) -> dict[str, float]:
    """Her running questions as they are stored, with the time at which each counts as ended."""
    stored: dict[str, float] = from_json(await store.get("quota:key:alice") or b"{}").get("running", {})
    return stored


async def test_the_place_of_a_process_that_died_is_free_after_its_lease() -> None:
    alice = Principal("alice", concurrent=1)
    store = SqliteStateStore("state.db", deadline=10)

    async def ask_and_die() -> None:
        await Quotas(SqliteStateStore("state.db"), NOBODY, lease=0.5).reserve(alice)

    await asyncio.to_thread(asyncio.run, ask_and_die())
    assert len(await running_of_alice(store)) == 1
    counted = Quotas(store, NOBODY, lease=0.5)

    async def is_free() -> bool:
        return await left_by(counted, alice) == {"concurrent": 0}

    await until(is_free)
    await store.aclose()


@pytest.mark.slow
async def test_a_question_keeps_its_place_while_it_runs() -> None:
    alice = Principal("alice", concurrent=1)
    store = SqliteStateStore("state.db", deadline=10)
    counted = Quotas(store, NOBODY, lease=6)
    reservation = await counted.reserve(alice)
    [first_end] = (await running_of_alice(store)).values()

    async def is_renewed() -> bool:
        return [*(await running_of_alice(store)).values()] > [first_end]

    await until(is_renewed)
    await counted.settle(reservation)
    assert not await running_of_alice(store)
    await store.aclose()


@pytest.mark.parametrize("kind", KINDS)
async def test_the_limits_of_all_together_count_everybody_and_a_refused_one_is_charged_nothing(kind: str) -> None:
    alice = Principal("alice", requests_per_minute=5)
    async with quotas(kind, QuotaLimits("all", requests_per_minute=2)) as (counted, *_):
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


async def test_while_redis_is_unavailable_each_process_applies_the_whole_limit() -> None:
    alice = Principal("alice", requests_per_minute=20)
    async with RedisServer() as server:
        stores: list[StateStore] = [RedisStateStore(server.url, deadline=10) for _ in range(2)]
        one, other = (Quotas(store, NOBODY) for store in stores)
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


async def test_principals_without_a_limit_are_not_counted() -> None:
    spending = await Quotas(SqliteStateStore(), NOBODY).reserve(Principal("alice"))
    assert (spending.store, spending.headers) == (None, {})
