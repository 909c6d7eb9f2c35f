"""What a question looks like in spans, whatever form its answer has."""

from collections.abc import AsyncGenerator

import httpx
import pytest

from tests.players.openai_player import OpenAIPlayer
from tests.players.otlp_receiver import OtlpReceiver
from tests.service.observability.reading import figures_of, grown
from tests.service.observability.tracing import PATH, the, tree
from tests.serving import service

ANSWERED = [
    "  invoke_agent toolchat (internal)",
    "    chat gpt-4o-mini (client)",
    "    execute_tool getCityTimeFunction (internal)",
    "    chat gpt-4o-mini (client)",
]
IN_SESSION = {"sessionId": "canary-session", "tools": "getCityTimeFunction"}


@pytest.fixture(scope="module")
async def client(receiver: OtlpReceiver, player: OpenAIPlayer) -> AsyncGenerator[httpx.AsyncClient, None]:
    variables = {"OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test", "OTEL_SERVICE_NAME": "chat"}
    async with service(OPENAI_BASE_URL=player.base_url, **receiver.variables, **variables) as client:
        yield client


@pytest.mark.parametrize("accept", ["text/plain", "application/json", "text/event-stream"])
async def test_a_question_is_a_tree_whatever_form_its_answer_has(
    client: httpx.AsyncClient, receiver: OtlpReceiver, accept: str
) -> None:
    answer = await client.get(PATH, params={"query": "x"}, headers={"Accept": accept})
    assert answer.status_code == 200
    spans = await receiver.trace()
    assert tree(spans) == [f"GET {PATH} (server)", *ANSWERED]
    assert all(each.began <= each.ended for each in spans)
    assert len({each.id for each in spans}) == len(spans)
    turns = [each.attributes for each in spans if each.name.startswith("chat")]
    assert [each["gen_ai.request.stream"] for each in turns] == [accept == "text/event-stream"] * 2
    assert ["gen_ai.response.time_to_first_chunk" in each for each in turns] == [accept == "text/event-stream"] * 2


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
async def test_the_openai_facade_is_traced_as_a_whole_and_as_a_stream(
    path: str, client: httpx.AsyncClient, receiver: OtlpReceiver
) -> None:
    messages = [{"role": "user", "content": "x"}]
    for stream in (False, True):
        asked = {"model": "toolchat", "messages": messages, "input": messages, "stream": stream}
        assert (await client.post(path, json=asked)).status_code == 200
        spans = await receiver.trace()
        first, agent, *rest = tree(spans)
        assert (first, agent) == (f"POST {path} (server)", ANSWERED[0])
        assert [each.split()[0] for each in rest] == ["chat", "execute_tool", "chat"]


async def test_a_host_that_asks_by_mcp_is_traced_and_its_figures_name_the_form(
    client: httpx.AsyncClient, receiver: OtlpReceiver
) -> None:
    before = await figures_of(client)
    params = {"name": "ask", "arguments": {"question": "x", "tools": ["getCityTimeFunction"]}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {"Accept": "application/json, text/event-stream"}
    assert (await client.post("/mcp", json=call, headers=headers)).status_code == 200
    answered = {"POST /mcp", *(each.strip().rpartition(" (")[0] for each in ANSWERED)}
    assert answered <= {each.name for each in await receiver.trace("POST /mcp")}
    params |= {"_meta": {"progressToken": "p"}}
    streamed = await client.post("/mcp", json=call, headers=headers)
    assert streamed.headers["content-type"].startswith("text/event-stream")
    assert answered <= {each.name for each in await receiver.trace("POST /mcp")}
    told = grown(before, await figures_of(client), "toolchat_questions_total")
    assert {dict(key)["form"] for key in told} == {"application/json", "text/event-stream"}


async def test_a_tool_that_is_run_by_hand_has_no_agent(client: httpx.AsyncClient, receiver: OtlpReceiver) -> None:
    await client.post("/tools/getCityTimeFunction", json={"timeZoneId": "Asia/Tokyo"})
    assert tree(await receiver.trace()) == [
        "POST /tools/{name} (server)",
        "  execute_tool getCityTimeFunction (internal)",
    ]


async def test_the_attributes_are_those_of_the_conventions(client: httpx.AsyncClient, receiver: OtlpReceiver) -> None:
    answer = await client.get("/chat", params=IN_SESSION | {"userInput": "x"})
    assert answer.status_code == 200
    spans = await receiver.trace()
    server = the(spans, "GET").attributes
    assert server["http.route"] == "/chat"
    assert (server["http.request.method"], server["http.response.status_code"]) == ("GET", 200)
    assert server["toolchat.request_id"] == answer.headers["x-request-id"]
    agent, tool = the(spans, "invoke_agent").attributes, the(spans, "execute_tool").attributes
    turn = next(each for each in spans if each.name.startswith("chat")).attributes
    assert agent["gen_ai.operation.name"] == "invoke_agent"
    assert (agent["gen_ai.usage.input_tokens"], agent["gen_ai.usage.output_tokens"]) == (40, 10)
    assert (turn["gen_ai.usage.input_tokens"], turn["gen_ai.usage.output_tokens"]) == (20, 5)
    assert (turn["gen_ai.provider.name"], turn["gen_ai.request.model"]) == ("openai", "gpt-4o-mini")
    assert (turn["gen_ai.response.model"], turn["gen_ai.response.finish_reasons"]) == ("played", ["tool_calls"])
    assert turn["server.address"] == "127.0.0.1"
    assert (tool["gen_ai.tool.name"], tool["gen_ai.tool.call.id"]) == ("getCityTimeFunction", "call_played")
    assert agent["gen_ai.conversation.id"] == turn["gen_ai.conversation.id"]
    resource = spans[0].resource
    assert (resource["service.name"], resource["deployment.environment.name"]) == ("chat", "test")


async def test_a_trace_holds_neither_question_nor_answer_nor_session_unless_that_is_switched_on(
    client: httpx.AsyncClient, receiver: OtlpReceiver
) -> None:
    answer = await client.get("/chat", params=IN_SESSION | {"userInput": "canary-question"})
    spans = await receiver.trace()
    assert len(spans) >= 5
    assert "Asia/Shanghai" in answer.text
    for secret in ("canary", "Asia", "tools say"):
        assert secret not in repr(spans)


async def test_probes_and_figures_are_no_traces(client: httpx.AsyncClient, receiver: OtlpReceiver) -> None:
    for path in ("/health/live", "/health/ready", "/metrics", "/tools"):
        await client.get(path)
    assert tree(await receiver.trace("/tools")) == ["GET /tools (server)"]
    assert receiver.spans == []
