"""MCP servers behind the forward proxy of a company."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.mcp_client.playing import state, written
from tests.serving import service


@asynccontextmanager
async def refusing_proxy(asked: list[str]) -> AsyncGenerator[int, None]:
    """A proxy that lets nobody through; gives its port."""

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


async def test_a_server_is_reached_by_the_proxy_of_the_environment_with_its_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[str] = []
    async with refusing_proxy(asked) as port:
        monkeypatch.setenv("HTTPS_PROXY", f"http://someone:canary@127.0.0.1:{port}")
        monkeypatch.setenv("NO_PROXY", "near.invalid")
        file = written(tmp_path, far={"url": "https://far.invalid/mcp"}, near={"url": "https://near.invalid/mcp"})
        async with service(MCP_SERVERS_FILE=file, CHAT_PROVIDER="offline") as client:
            assert await state(client, "far") == "it cannot be reached (ProxyError)"
            assert await state(client, "near") == "it cannot be reached (ConnectError)"
    head = asked[0].lower()
    assert head.startswith("connect far.invalid:443 http/1.1\r\n")
    assert "\r\nproxy-authorization: basic c29tzw9uztpjyw5hcnk=\r\n" in head
    by_proxy, directly = sorted((vars(each)["cause"] for each in caplog.records if "cause" in vars(each)), reverse=True)
    assert by_proxy == f"refused by the proxy (403): far.invalid:443 through 127.0.0.1:{port}"
    assert directly.startswith("name not found (")
    assert directly.endswith("): near.invalid:443 directly (NO_PROXY)")
