"""The pace at which texts are sent to Baidu, and who gives way to whom."""

import asyncio
import json
import time
from itertools import pairwise
from statistics import median

import pytest

from app.tools.baidu_translate.rate_limiter import Pacer
from tests.app.tools.baidu_translate.baidu_player import played, tools
from tests.calling_as import calling_as
from tests.waiting import PATIENCE
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.errors import ToolExecutionError


async def test_calls_at_once_arrive_in_order_and_never_closer_than_the_rate_allows() -> None:
    interval = 0.04
    async with played(requests_per_second=1 / interval) as (client, player):
        started = time.monotonic()
        await client.translate("first", "auto", "en")  # opens the connection, so that none of the others overtakes
        calls = [tool.call(json.dumps({"q": f"{i}", "from": "", "to": "en"}), ToolContext())
                 for i in range(5) for tool in tools(client)]  # fmt: skip
        await asyncio.gather(*calls)
    asked = [arrival.form["q"] for arrival in player.arrivals]
    assert asked == ["first", *(f"{i}" for i in range(5) for _ in range(2))]
    times = [arrival.at - started for arrival in player.arrivals]
    # None comes before its turn; where the machine stalls, two may meet on the way that were sent apart.
    assert all(at > 0.99 * place * interval for place, at in enumerate(times))
    assert median(later - earlier for earlier, later in pairwise(times)) > interval / 2


async def test_a_rate_below_one_keeps_requests_seconds_apart() -> None:
    pacer = Pacer(rate=0.1, max_wait=1)
    await pacer.acquire()
    with pytest.raises(ToolExecutionError, match=r"its turn would be (10\.0|[5-9]\.\d) s away"):
        await pacer.acquire()


@pytest.mark.slow
async def test_a_wait_beyond_the_limit_is_refused_at_once_and_the_others_keep_their_turns() -> None:
    async with played(requests_per_second=1, max_wait=2.5) as (client, player):
        tasks = [asyncio.create_task(client.translate(f"{i}", "auto", "en")) for i in range(6)]
        _, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        assert tasks[2] in pending  # a refusal that had waited in vain would come after the last in line was sent
        results = await asyncio.gather(*tasks, return_exceptions=True)
    errors = [each for each in results if isinstance(each, ToolExecutionError)]
    assert [error.kind for error in errors] == ["busy"] * 3
    assert "one per line" in str(errors[0].hint)
    assert [arrival.form["q"] for arrival in player.arrivals] == ["0", "1", "2"]


async def test_waiting_calls_that_are_cancelled_give_their_turns_back() -> None:
    pacer = Pacer(rate=0.01, max_wait=600)
    started = time.monotonic()
    pacer.hold(0.3)
    waiting = [asyncio.create_task(pacer.acquire()) for _ in range(5)]
    await asyncio.sleep(0)
    for task in waiting[:4]:
        task.cancel()
    async with asyncio.timeout(PATIENCE):  # behind the four, its turn would be 400 s away
        await waiting[4]
    assert time.monotonic() - started > 0.29
    assert [task.cancelled() for task in waiting] == [True] * 4 + [False]


async def test_a_slot_granted_during_a_cancellation_goes_to_the_next(caplog: pytest.LogCaptureFixture) -> None:
    pacer = Pacer(rate=0.01, max_wait=600)
    pacer.hold(0.3)
    first, second = (asyncio.create_task(pacer.acquire()) for _ in range(2))
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_later(0.1, first.cancel)
    time.sleep(0.4)  # noqa: ASYNC251 - a stalled loop runs both timers before either task
    async with asyncio.timeout(PATIENCE):  # if the turn were lost, the next one would be 100 s away
        await second
    assert first.cancelled()
    assert not caplog.records


async def test_a_new_call_does_not_overtake_an_overdue_one() -> None:
    pacer = Pacer(rate=50, max_wait=10)
    order: list[str] = []

    async def taking(name: str) -> None:
        await pacer.acquire()
        order.append(name)

    await taking("first")
    waiting = asyncio.create_task(taking("second"))
    await asyncio.sleep(0)
    time.sleep(0.1)  # noqa: ASYNC251 - a stalled loop lets the turn become overdue
    await taking("third")
    await waiting
    assert order == ["first", "second", "third"]


async def test_a_call_held_up_beyond_its_patience_is_refused() -> None:
    pacer = Pacer(rate=1000, max_wait=0.3)
    pacer.hold(0.25)
    waiting = asyncio.create_task(pacer.acquire())
    await asyncio.sleep(0)
    pacer.hold(60)
    with pytest.raises(ToolExecutionError) as caught:
        await waiting
    assert caught.value.kind == "busy"
    assert not pacer._lines


async def test_retries_of_one_client_do_not_hold_up_another() -> None:
    pacer, order = Pacer(rate=200, max_wait=60), list[str]()
    pacer.hold(0.05)

    async def ask(name: str, retries: int) -> None:
        await pacer.acquire()
        for _ in range(retries):
            order.append(name)
            await pacer.acquire(ahead=True)
        order.append(name)

    tasks = []
    for name, retries in (("a", 3), ("a", 3), ("b", 0)):
        with calling_as(address=name):
            tasks.append(asyncio.create_task(ask(name, retries)))
    await asyncio.gather(*tasks)
    assert order.index("b") <= 2
