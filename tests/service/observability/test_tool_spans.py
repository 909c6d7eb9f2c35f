"""Spans that tools open with OpenTelemetry's API, the caller's own current span."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from starlette.types import Receive, Scope, Send

from tests.application import create_app
from tests.command_line import started, with_tools
from tests.players.otlp_receiver import OtlpReceiver
from tests.service.observability.tracing import the, tree
from tests.serving import client_of, serving
from toolchat import FunctionToolCallback, ToolCall, ToolCallingManager
from toolchat.messages import AssistantMessage

OWN = """
from opentelemetry import trace

from toolchat import ToolModule, ToolSettings, tool

tracer = trace.get_tracer(__name__)


def dim() -> str:
    "Dim the lamp, in a thread."
    with tracer.start_as_current_span("blocking step"):
        return "dimmed"


async def glow() -> str:
    "Let the lamp glow."
    with tracer.start_as_current_span("step"):
        with tracer.start_as_current_span("inner step"):
            return "glowing"


@tool(cache_seconds=60)
async def shine() -> str:
    "Say how bright the lamp shines, from a cache."
    with tracer.start_as_current_span("shared step"):
        return "bright"


class LampSettings(ToolSettings):
    pass


module = ToolModule(settings=LampSettings, functions=(dim, glow, shine))
"""


@pytest.mark.slow
async def test_spans_that_a_tool_opens_are_children_of_its_call(tmp_path: Path) -> None:
    expected: dict[str, Sequence[str]] = {
        "dim": ["    blocking step (internal)"],
        "glow": ["    step (internal)", "      inner step (internal)"],
        "shine": ["    shared step (internal)"],
    }
    async with OtlpReceiver() as receiver:
        variables = with_tools(tmp_path, {"lamp": OWN}) | receiver.variables | {"CHAT_PROVIDER": "offline"}
        with started(cwd=tmp_path, **variables) as (_, url):
            async with client_of(url) as client:
                for tool, own in expected.items():
                    await client.post(f"/tools/{tool}", json={})
                    request = "POST /tools/{name} (server)"
                    assert tree(await receiver.trace()) == [request, f"  execute_tool {tool} (internal)", *own]


async def test_the_current_span_of_an_outer_application_is_the_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    tracer, outside = TracerProvider(shutdown_on_exit=False).get_tracer("outer"), list[str]()
    async with OtlpReceiver() as receiver:
        for name, value in {"CHAT_PROVIDER": "offline", **receiver.variables}.items():
            monkeypatch.setenv(name, value)
        inner = create_app()

        async def outer(scope: Scope, receive: Receive, send: Send) -> None:
            with tracer.start_as_current_span("outer") as span:
                outside.append(trace.format_span_id(span.get_span_context().span_id))
                await inner(scope, receive, send)

        async with inner.lifespan(), serving(outer) as url, client_of(url) as client:
            outside.clear()
            await client.get("/tools", headers={"traceparent": f"00-{'a' * 32}-{'b' * 16}-01"})
            server = the(await receiver.trace(), "GET")
    assert [server.parent] == outside


async def test_a_tool_of_the_library_runs_in_the_callers_span() -> None:
    provider, seen = TracerProvider(shutdown_on_exit=False), list[int]()

    def look() -> str:
        """Look at the current span, in a thread."""
        seen.append(trace.get_current_span().get_span_context().span_id)
        return "seen"

    calls = AssistantMessage(tool_calls=(ToolCall("c1", "look", "{}"),))
    with provider.get_tracer("caller").start_as_current_span("caller") as span:
        await ToolCallingManager().execute_tool_calls([], calls, [FunctionToolCallback.from_function(look)])
    assert seen == [span.get_span_context().span_id]
