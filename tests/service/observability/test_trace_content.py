"""What is put into spans where questions and answers are wanted in them, and the upstreams of tools."""

import json
from collections.abc import AsyncGenerator

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from tests.application import create_sandbox
from tests.players.otlp_receiver import OtlpReceiver
from tests.service.observability.tracing import the, tree
from tests.serving import service, serving

CAPTURED = {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true"}


class Weather:
    """The tools' upstreams, which note what they are told of traces."""

    def __init__(self) -> None:
        self.app = create_sandbox()
        self.parents: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self.parents += [value.decode() for name, value in scope["headers"] if name == b"traceparent"]
        await self.app(scope, receive, send)


@pytest.fixture(scope="module")
async def weather() -> AsyncGenerator[tuple[Weather, str], None]:
    upstream = Weather()
    async with serving(upstream) as url:
        yield upstream, url


async def ask(client: httpx.AsyncClient) -> None:
    answer = await client.get("/weather/chat-tool-function", params={"query": "Weather in Paris, ‮吗?"})
    assert answer.status_code == 200, answer.text


async def test_a_tools_request_is_a_span_of_its_call_and_carries_the_trace_context(
    weather: tuple[Weather, str],
) -> None:
    upstream, url = weather
    upstream.parents.clear()
    async with OtlpReceiver() as receiver, service(SANDBOX_URL=url, **receiver.variables) as client:
        await ask(client)
        spans = await receiver.trace()
    assert "      GET (client)" in tree(spans)
    assert "    chat offline (internal)" in tree(spans)
    tool, requests = the(spans, "execute_tool"), [each for each in spans if each.name == "GET"]
    assert {each.parent for each in requests} == {tool.id}
    assert set(upstream.parents) == {f"00-{each.trace}-{each.id}-03" for each in requests}  # sampled, random id
    assert requests[0].attributes["http.response.status_code"] == 200
    assert requests[0].attributes["url.full"] == url
    assert "Paris" not in repr(spans)


async def test_questions_answers_arguments_and_results_are_there_where_they_are_wanted(
    weather: tuple[Weather, str],
) -> None:
    async with OtlpReceiver() as receiver, service(SANDBOX_URL=weather[1], **receiver.variables, **CAPTURED) as client:
        await ask(client)
        spans = await receiver.trace()
    agent, tool = the(spans, "invoke_agent").attributes, the(spans, "execute_tool").attributes
    [question] = json.loads(agent["gen_ai.input.messages"])
    assert question == {"role": "user", "parts": [{"type": "text", "content": "Weather in Paris, ‮吗?"}]}
    [answer] = json.loads(agent["gen_ai.output.messages"])
    assert (answer["role"], answer["finish_reason"]) == ("assistant", "stop")
    assert "Paris" in answer["parts"][0]["content"]
    assert "Paris" in json.dumps(json.loads(tool["gen_ai.tool.call.arguments"]))
    assert "Paris" in tool["gen_ai.tool.call.result"]
    last = [each for each in spans if each.name.startswith("chat")][-1].attributes
    roles = [each["role"] for each in json.loads(last["gen_ai.input.messages"])]
    assert roles == ["user", "assistant", "tool"]
    assert json.loads(last["gen_ai.system_instructions"])[0]["type"] == "text"
    request = next(each for each in spans if each.name == "GET").attributes
    assert request["url.path"].startswith("/")
    assert "key=" not in repr(spans)


async def test_a_long_text_is_cut_and_what_is_no_text_at_all_is_sent_all_the_same() -> None:
    async with (
        OtlpReceiver() as receiver,
        service(CHAT_PROVIDER="offline", **receiver.variables, **CAPTURED) as client,
    ):
        messages = [{"role": "user", "content": "\ud800" + "x" * 20_000}]
        asked = json.dumps({"model": "toolchat", "messages": messages})
        await client.post("/v1/chat/completions", content=asked, headers={"Content-Type": "application/json"})
        spans = await receiver.trace()
    assert all(len(str(value)) < 9_000 for each in spans for value in each.attributes.values())
