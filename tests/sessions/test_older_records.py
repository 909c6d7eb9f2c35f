"""Records in the state store that version 0.1.0 wrote: this version reads them and continues from them.

During a rolling update both versions share the store. The files in ``records/`` are what that version stored for one
plan: while it waited for approval, and after its end.
"""

from pathlib import Path

from app.tools.todo.advisors import PLANNING
from tests.chat.played import JSON, asks, says, turns, update
from tests.players.openai_player import OpenAIPlayer
from tests.players.redis_server import RedisServer
from tests.serving import service
from tests.sessions.conversing import conversation
from tests.sessions.deciding import LIGHTS, approve
from tests.sessions.replicas import needs_redis

pytestmark = needs_redis

RECORDS = Path(__file__).parent / "records"
PAUSED_TURN = (RECORDS / "paused_turn.json").read_text(encoding="utf-8")
CONVERSATION = (RECORDS / "conversation.json").read_text(encoding="utf-8")


async def test_a_turn_that_an_older_version_paused_is_resumed_with_all_its_advisors() -> None:
    script = turns(asks(update(("a", "pending"))), asks(("getCityTimeFunction", '{"timeZoneId": ')), says("done"))
    async with (
        RedisServer() as redis,
        OpenAIPlayer(script) as player,
        service(LIGHTS, REDIS_URL=redis.url, OPENAI_BASE_URL=player.base_url) as client,
    ):
        await redis.run("SET", "toolchat:approval:{x}", PAUSED_TURN)
        answer = (await approve(client, "/approvals/x", "c0")).json()
        stored = await conversation(client)
        summary = (await client.get("/chat/s-1")).json()["messages"][-1]
        assert (await approve(client, "/approvals/x", "c0")).status_code == 404

    assert (answer["answer"], answer["session_id"]) == ("done", "s-1")
    assert [each["name"] for each in answer["tool_calls"]] == ["switchLight", "todoUpdate"]
    assert [each["name"] for each in summary["tool_calls"]] == ["getCityTimeFunction", "switchLight", "todoUpdate"]
    assert stored == [("user", "Plan"), ("assistant", "done")]
    # The plan's instructions stand once, and its repair of broken calls works.
    assert [str(each.body).count(PLANNING[:40]) for each in player.requests] == [1, 1, 1]
    assert len(player.requests) == 3


async def test_a_conversation_that_an_older_version_stored_continues() -> None:
    async with (
        RedisServer() as redis,
        OpenAIPlayer(turns(says("hello"))) as player,
        service(REDIS_URL=redis.url, OPENAI_BASE_URL=player.base_url) as client,
    ):
        await redis.run("SET", "toolchat:memory:{s-1}", CONVERSATION)
        await client.get("/chat", params={"userInput": "Hi", "sessionId": "s-1"}, headers=JSON)
        stored = (await client.get("/chat/s-1")).json()["messages"]

    assert [each["content"] for each in player.requests[0].body["messages"][1:]] == ["Plan", "done", "Hi"]
    assert [each["text"] for each in stored] == ["Plan", "done", "Hi", "hello"]
    assert [each["name"] for each in stored[1]["tool_calls"]] == ["getCityTimeFunction", "switchLight"]
