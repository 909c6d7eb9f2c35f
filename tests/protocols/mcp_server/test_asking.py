"""The tool ``ask``, which answers a question with the other tools."""

from pathlib import Path

import httpx
import pytest

from tests.players.openai_player import OpenAIPlayer, sensible_model, whole
from tests.protocols.mcp_server.host import Host
from tests.serving import client_of, configured, service, serving
from tests.waiting import until
from toolchat.service.api.schemas import ChatAnswer
from toolchat.service.main import create_app
from toolchat.state.base import StateStore


async def test_a_question_is_answered_with_the_services_tools(modern: Host) -> None:
    result = await modern.call("ask", question="北京现在几点？")
    document = ChatAnswer.model_validate(result["structuredContent"])
    assert result["content"] == [{"type": "text", "text": document.answer}]
    assert [each.name for each in document.tool_calls] == ["getCityTimeFunction"]


async def test_a_question_uses_only_the_tools_that_it_names(modern: Host) -> None:
    result = await modern.call("ask", question="北京现在几点？", tools=["todoRead"])
    assert "getCityTimeFunction" not in [each["name"] for each in result["structuredContent"]["tool_calls"]]


async def test_a_question_continues_the_conversation_of_an_earlier_answer() -> None:
    async with (
        OpenAIPlayer(sensible_model({"timeZoneId": "Asia/Shanghai"})) as player,
        service(OPENAI_BASE_URL=player.base_url) as client,
    ):
        host = Host(client)
        first = await host.call("ask", question="What time is it in Shanghai?")
        session = first["structuredContent"]["session_id"]
        await host.call("ask", question="And now?", sessionId=session)
    asked = [each["content"] for each in player.requests[-1].body["messages"] if each["role"] == "user"]
    assert asked == ["What time is it in Shanghai?", "And now?"]


async def test_a_question_without_a_session_is_answered_while_the_store_is_away(tmp_path: Path) -> None:
    read = configured(CHAT_PROVIDER="offline", STATE_URL=f"sqlite:///{tmp_path}/state.db")
    app = create_app(read)
    async with serving(app, read.settings) as url, client_of(url) as client:
        (tmp_path / "state.db").rename(tmp_path / "elsewhere.db")
        await until(lambda: is_away(app.state.service.store))
        host = Host(client)
        assert (await host.call("ask", question="hello"))["structuredContent"]["answer"]
        told = await host.ask("tools/call", name="ask", arguments={"question": "hello", "sessionId": "s"})
        assert told.json()["error"]["data"]["code"] == "store-unavailable"


async def is_away(store: StateStore) -> bool:
    return not store.available


@pytest.mark.parametrize("token", [{}, {"progressToken": 1}], ids=["whole", "streamed"])
async def test_a_model_that_fails_is_an_error_of_the_service(token: dict[str, int]) -> None:
    async with (
        OpenAIPlayer([whole({"error": {"message": "no"}}, 401)] * 4) as player,
        service(OPENAI_BASE_URL=player.base_url) as client,
    ):
        answer = await Host(client).ask("tools/call", name="ask", arguments={"question": "?"}, _meta=token)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["data"]["code"]) == (503, -32603, "provider-auth")
    assert error["data"]["request_id"] == answer.headers["x-request-id"]


async def test_only_answers_of_a_model_name_the_model(modern: Host, client: httpx.AsyncClient) -> None:
    asked = await modern.ask("tools/call", name="ask", arguments={"question": "hello"})
    called = await modern.ask("tools/call", name="quotes", arguments={})
    streamed = await modern.ask("tools/call", name="count", arguments={"to": 1}, _meta={"progressToken": 1})
    assert asked.headers["x-chat-model"] == "offline"
    assert [answer for answer in (called, streamed) if "x-chat-model" in answer.headers] == []
