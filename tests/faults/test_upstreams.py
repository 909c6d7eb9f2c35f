"""A provider that sends too much, or is silent for some."""

import asyncio
import gzip

import pytest

from tests.faults.stage import Stage
from tests.faults.upstream import Behaviour, Call, frozen, playing, saying, speaking
from tests.faults.wire import Reply
from tests.players.openai_player import body

_IMPATIENT = {"MODEL_TIMEOUT": "1", "REQUEST_TIMEOUT": "3", "TOOL_TIMEOUT": "3", "MODEL_MAX_ATTEMPTS": "2"}
_SAID = "It is 你好 \u2028 😀, and so on."
_JSON = "application/json"


async def _asked(stage: Stage, behave: Behaviour) -> Reply:
    service = await stage.service(**_IMPATIENT)
    stage.upstream.behave = behave
    return await service.ask("/time/chat?query=hi")


async def _endless_body(call: Call) -> None:
    await call.begin(_JSON)
    while True:
        await call.piece(b" " * 2**16)


@pytest.mark.parametrize(
    "behave",
    [
        playing(body(gzip.compress(bytes(200 * 2**20), 9), 200, Content_Type=_JSON, Content_Encoding="gzip")),
        pytest.param(_endless_body, marks=pytest.mark.nightly),
    ],
    ids=["200 KB that unpack to 200 MB", "a JSON answer that does not end"],
)
async def test_an_answer_without_end_costs_little_memory(behave: Behaviour, stage: Stage) -> None:
    assert await _growth(stage, behave) <= 30


async def _growth(stage: Stage, behave: Behaviour) -> float:
    await _asked(stage, saying())
    service = await stage.service(**_IMPATIENT)
    before = most = service.mib()
    asking = asyncio.create_task(_asked(stage, behave))
    while not asking.done():
        await asyncio.wait([asking], timeout=0.02)
        most = max(most, service.mib())
    assert asking.result().outcome == "502 upstream-invalid", f"answered {asking.result().outcome}"
    return most - before


@pytest.mark.nightly
async def test_upstream_that_is_slow_for_some(stage: Stage) -> None:
    """The provider is silent for 200 questions, and answers 50 others meanwhile."""
    service = await stage.service(**_IMPATIENT)

    async def answer(call: Call) -> None:
        text = call.body["messages"][-1]["content"]
        await (frozen if text == "hang" else speaking(lambda _: _SAID))(call)

    stage.upstream.behave = answer
    hanging = [asyncio.create_task(service.ask("/time/chat?query=hang")) for _ in range(200)]
    await asyncio.sleep(0.2)
    replies = [await service.ask("/time/chat?query=hi") for _ in range(50)]
    assert all(each.status == 200 for each in replies), f"answered {sorted({each.outcome for each in replies})}"
    await asyncio.gather(*hanging)
    assert max(each.seconds for each in replies) * 1000 <= 2000
