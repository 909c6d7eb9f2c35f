"""The trace context that a host sends within a message, and the spans of requests."""

from collections.abc import AsyncGenerator

import pytest

from tests.observability.tracing import play, the
from tests.players.openai_player import OpenAIPlayer
from tests.players.otlp_receiver import OtlpReceiver
from tests.protocols.mcp_server.host import Host
from tests.serving import service

TRACE, PARENT = "c" * 32, "b" * 16
SENT = {"traceparent": f"00-{TRACE}-{PARENT}-01"}


@pytest.fixture
async def receiver() -> AsyncGenerator[OtlpReceiver, None]:
    async with OtlpReceiver() as receiver:
        yield receiver


@pytest.fixture
async def host(receiver: OtlpReceiver) -> AsyncGenerator[Host, None]:
    """A host of a traced service, whose model fails if it is asked to."""
    async with (
        OpenAIPlayer(play) as player,
        service(OPENAI_BASE_URL=player.base_url, **receiver.variables) as client,
    ):
        yield Host(client)


async def test_a_call_belongs_to_the_trace_of_its_host(host: Host, receiver: OtlpReceiver) -> None:
    call = {"name": "getCityTimeFunction", "arguments": {"timeZoneId": "Asia/Shanghai"}}
    await host.result("tools/call", **call, _meta=SENT)
    spans = await receiver.trace("tools/call")
    assert {each.trace for each in spans} == {TRACE}
    served = the(spans, "tools/call getCityTimeFunction")
    assert served.parent == PARENT
    assert the(spans, "execute_tool").parent == served.id
    assert served.attributes.items() >= {"mcp.method.name": "tools/call", "mcp.protocol.version": "2026-07-28"}.items()


@pytest.mark.parametrize(
    ("name", "arguments", "kind"),
    [
        ("ask", {"question": "wrong key"}, "provider-auth"),
        ("getCityTimeFunction", {"timeZoneId": "secret"}, "tool_error"),
        ("secret", {}, "-32602"),
        ("ask", 5, "-32602"),
    ],
)
async def test_the_span_of_a_failed_request_has_its_kind_and_no_text(
    name: str, arguments: object, kind: str, host: Host, receiver: OtlpReceiver
) -> None:
    await host.ask("tools/call", name=name, arguments=arguments, _meta=SENT | {"tracestate": 5})
    served = the(await receiver.trace("tools/call"), "tools/call")
    assert (served.parent, served.is_error, served.attributes["error.type"]) == (PARENT, True, kind)
    assert served.events == ()
