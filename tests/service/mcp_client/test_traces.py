"""The trace of a question, which MCP servers get."""

import json
from collections.abc import AsyncGenerator

import httpx
import pytest

from tests.players.otlp_receiver import OtlpReceiver
from tests.service.mcp_client.player import McpPlayer
from tests.service.mcp_client.playing import hostile, run, written
from tests.service.observability.tracing import the
from tests.serving import service, serving

player = McpPlayer()


@pytest.fixture(scope="module")
async def client(
    receiver: OtlpReceiver, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[httpx.AsyncClient, None]:
    async with serving(player.app) as url:
        file = written(tmp_path_factory.mktemp("servers"), far={"url": f"{url}/mcp"}, near=hostile())
        async with service(MCP_SERVERS_FILE=file, CHAT_PROVIDER="offline", **receiver.variables) as client:
            yield client


async def test_a_server_over_http_gets_the_trace_in_a_header_and_in_meta(
    client: httpx.AsyncClient, receiver: OtlpReceiver
) -> None:
    await run(client, "look", tracestate="a=1", traceparent=f"00-{'c' * 32}-{'b' * 16}-01")
    call, received = the(await receiver.trace("POST"), "execute_tool"), player.calls()[-1]
    expected = {"traceparent": f"00-{'c' * 32}-{call.id}-01", "tracestate": "a=1"}
    assert received.headers.items() >= expected.items()
    assert received.params["_meta"].items() >= expected.items()


async def test_a_server_over_stdio_gets_the_trace_in_meta(client: httpx.AsyncClient, receiver: OtlpReceiver) -> None:
    meta = json.loads((await run(client, "meta")).json()["result"])
    call = the(await receiver.trace("POST"), "execute_tool meta")
    assert meta["traceparent"].startswith(f"00-{call.trace}-{call.id}-")


@pytest.mark.parametrize(
    ("tool", "kind", "text"),
    [
        ("fails", "failed", "no such thing"),
        ("refuses", "failed", "not today"),
        ("wrong", "upstream-invalid", "nonsense"),
    ],
)
async def test_the_span_of_a_failed_call_has_its_kind_and_no_text(
    tool: str, kind: str, text: str, client: httpx.AsyncClient, receiver: OtlpReceiver
) -> None:
    assert (await run(client, tool)).json()["error_kind"] == kind
    spans = await receiver.trace("POST")
    call = the(spans, "execute_tool")
    assert (call.is_error, call.attributes["error.type"], call.events) == (True, kind, ())
    assert text not in repr(spans)


async def test_nothing_but_calls_has_spans(client: httpx.AsyncClient, receiver: OtlpReceiver) -> None:
    await run(client, "look")
    await receiver.trace("POST")
    assert receiver.spans == []
