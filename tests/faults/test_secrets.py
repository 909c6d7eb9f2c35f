"""What must never be in an answer or a log."""

import asyncio
import json

from tests.faults.service import CANARY
from tests.faults.stage import Stage
from tests.faults.upstream import frozen, playing, speaking
from tests.players.openai_player import Answer

_STREAM = {"Accept": "text/event-stream"}
_SHORT = {"MODEL_TIMEOUT": "1", "MODEL_MAX_ATTEMPTS": "1"}


async def test_keys_are_never_told(stage: Stage) -> None:
    """At `LOG_LEVEL=DEBUG` the provider fails in eight ways, some of which echo the key; all answers and the log."""
    service = await stage.service(LOG_LEVEL="DEBUG", **_SHORT)
    echo = json.dumps({"error": {"message": f"bad key {CANARY}", "code": CANARY, "type": CANARY}}).encode()
    failures = [playing(Answer([echo], status)) for status in (400, 401, 403, 429, 500)]
    failures += [playing(Answer([CANARY.encode()], ending="reset")), playing(Answer([CANARY.encode()])), frozen]
    seen = ""
    for behave in failures:
        stage.upstream.behave = behave
        for headers in ({}, _STREAM):
            seen += (await service.ask("/time/chat?query=hi", headers=headers)).text
    for path in ("/", "/metrics", "/openapi.json", "/health/ready", "/tools"):
        seen += (await service.ask(path)).text
    assert (seen + service.written()).count(CANARY) == 0


async def test_prompts_are_not_logged(stage: Stage) -> None:
    """Questions, answers and session ids with a word of their own, that go well and that fail."""
    service = await stage.service(**_SHORT)
    word = "zanzibar4711"
    begin = service.log.stat().st_size
    stage.upstream.behave = speaking(lambda _: word)
    for path in (f"/time/chat?query={word}", f"/chat?userInput={word}&sessionId={word}", f"/chat/{word}"):
        await service.ask(path)
        await service.ask(path, headers=_STREAM)
    stage.upstream.behave = playing(Answer([word.encode()], 500))
    await service.ask(f"/chat?userInput={word}&sessionId={word}")
    await asyncio.sleep(0.2)
    assert service.written(begin).count(word) == 0
