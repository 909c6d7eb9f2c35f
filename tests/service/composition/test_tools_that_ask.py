"""A tool that asks the model itself: within the limits, the quota, the deadline and the trace of its question."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from tests.chat.played import JSON
from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, message, sse, whole
from tests.service.access.principals import as_, principals
from tests.service.access.test_charging import LIMIT
from tests.serving import service
from tests.waiting import until

ASKING = '''
from toolchat import ChatClient, ToolModule, tool


class Asking:
    def __init__(self, client: ChatClient) -> None:
        self._client = client

    @tool
    async def summarize(self) -> str:
        """Summarize the notes."""
        return await self._client.prompt("Summarize").call().content()

    @tool(max_calls=1000, max_identical_calls=1000)
    async def delegate(self) -> str:
        """Delegate the question to the same tool."""
        return await self._client.prompt("Delegate").tools(self.delegate).call().content()


@tool
class Classify:
    def __init__(self, client: ChatClient) -> None:
        self._client = client

    async def __call__(self) -> str:
        """Classify the notes."""
        return await self._client.prompt("Summarize").call().content()


module = ToolModule(functions=(Classify,), methods=(Asking,), default_query="What is in the notes?")
'''


def usage(tokens: int) -> dict[str, int]:
    return {"prompt_tokens": tokens - 1, "completion_tokens": 1, "total_tokens": tokens}


def question_of(request: PlayedRequest) -> str:
    texts: Sequence[str] = [each["content"] for each in request.body["messages"] if each["role"] == "user"]
    return texts[-1]


def play(request: PlayedRequest) -> Answer:
    """Call the first tool until there is a result, or, for the question "Delegate", as long as there is a tool."""
    question, tools = question_of(request), request.body.get("tools")
    if question == "Wait":
        return sse(done=False, ending="hang")
    if question == "Summarize":
        return whole(message("stop", usage(1000), content="in short"))
    results = [each["content"] for each in request.body["messages"] if each["role"] == "tool"]
    if tools and request.body.get("tool_choice") != "none" and (question == "Delegate" or not results):
        function = {"name": tools[0]["function"]["name"], "arguments": "{}"}
        call = {"id": f"c{len(results)}", "type": "function", "function": function}
        return whole(message("tool_calls", usage(10), content=None, tool_calls=[call]))
    return whole(message("stop", usage(10), content=f"The tool says: {results[-1]}"))


@asynccontextmanager
async def asking(
    tmp_path: Path, player: OpenAIPlayer, *, source: str = ASKING, **settings: str
) -> AsyncGenerator[httpx.AsyncClient, None]:
    folder = tmp_path / "asking_tools"
    folder.mkdir()
    (folder / "asking.py").write_text(source, encoding="utf-8")
    async with service(str(folder), OPENAI_BASE_URL=player.base_url, **settings) as client:
        yield client


@pytest.fixture
async def player() -> AsyncGenerator[OpenAIPlayer, None]:
    async with OpenAIPlayer(play) as player:
        yield player


@pytest.mark.parametrize("tool", ["summarize", "Classify"])
async def test_the_answer_of_the_model_to_a_tool_returns_with_the_usage_of_both(
    tool: str, tmp_path: Path, player: OpenAIPlayer
) -> None:
    keys = principals(tmp_path, alice=f"tokens_per_day = {LIMIT}")
    async with asking(tmp_path, player, **keys) as client:
        asked = {"query": "What is in the notes?", "tools": tool}
        answer = (await client.get("/chat", params=asked, headers=as_("alice", **JSON))).json()
        later = await client.get("/chat", params={"query": "x"}, headers=as_("alice"))
    assert answer["answer"] == "The tool says: in short"
    assert (answer["rounds"], answer["usage"]["total_tokens"]) == (2, 1020)
    assert f'"day";r={LIMIT - 1020}' in later.headers["ratelimit"]
    nested = next(each.body for each in player.requests if question_of(each) == "Summarize")
    assert "tools" not in nested
    assert [each["role"] for each in nested["messages"]] == ["user"]


async def test_the_deadline_of_the_question_cuts_what_its_tool_asks(tmp_path: Path, player: OpenAIPlayer) -> None:
    source = ASKING.replace('prompt("Summarize")', 'prompt("Wait")')
    async with asking(tmp_path, player, source=source, REQUEST_TIMEOUT="1") as client:
        answer = await client.get("/chat", params={"query": "x", "tools": "summarize"})
        assert (answer.status_code, answer.json()["code"]) == (504, "deadline")
        await until(player.aborted.is_set)
        run = await client.post("/tools/summarize", json={})
        assert (run.status_code, run.json()["code"]) == (504, "deadline")


async def test_a_tool_that_asks_with_itself_as_a_tool_ends_at_the_limit_of_the_question(
    tmp_path: Path, player: OpenAIPlayer
) -> None:
    async with asking(tmp_path, player, TOOL_MAX_CALLS="4") as client:
        asked = {"query": "x", "tools": "delegate"}
        answer = (await client.get("/chat", params=asked, headers=JSON)).json()
        by_question = [question_of(each) for each in player.requests].count("Delegate")
        (call,) = answer["tool_calls"]
        player.follow(play)
        run = (await client.post("/tools/delegate", json={})).json()
    assert (call["outcome"], call["error_kind"]) == (run["outcome"], run["error_kind"]) == ("error", "limit")
    assert "the tools of this question have used up their 4 model calls" in answer["answer"]
    assert by_question == len(player.requests) == 4
