"""The trace context that a host sends within a message."""

from pathlib import Path

import pytest

from tests.command_line import started
from tests.observability.tracing import the
from tests.players.otlp_receiver import OtlpReceiver
from tests.protocols.mcp_server.host import Host
from tests.serving import client_of

TRACE, PARENT = "a" * 32, "b" * 16


@pytest.mark.slow
async def test_a_call_belongs_to_the_trace_of_its_host(tmp_path: Path) -> None:
    async with OtlpReceiver() as receiver:
        variables = {**receiver.variables, "CHAT_PROVIDER": "offline", "PYTHONUNBUFFERED": "1"}
        with started(cwd=tmp_path, **variables) as (_, url):
            async with client_of(url) as client:
                call = {"name": "getCityTimeFunction", "arguments": {"timeZoneId": "Asia/Shanghai"}}
                meta = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
                await Host(client).result("tools/call", **call, _meta=meta)
            spans = await receiver.trace("tools/call")
    assert {each.trace for each in spans} == {TRACE}
    assert the(spans, "tools/call").parent == PARENT
    assert the(spans, "execute_tool").parent == the(spans, "tools/call").id
