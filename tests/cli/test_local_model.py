"""A model server on this machine is named in the banner of a terminal, and never used by itself."""

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.cli.terminal import at_a_terminal
from tests.serving import serving
from tests.waiting import PATIENCE
from toolchat.service.cli.local_model import local_model_hint


def models(*names: object) -> Response:
    return JSONResponse({"object": "list", "data": [{"id": name, "object": "model"} for name in names]})


def server(answer: Response) -> Starlette:
    async def listed(_: Request) -> Response:
        return answer

    return Starlette(routes=[Route("/v1/models", listed)])


@pytest.mark.parametrize(
    ("answer", "model"),
    [
        (models("qwen3:8b", "llama3.2:latest"), "qwen3:8b"),
        (models("$(reboot)", "\x1b[2J", 7, "org/model-1.5"), "org/model-1.5"),
        (models(), None),
        (JSONResponse([1]), None),
        (JSONResponse({"data": "qwen3"}), None),
        (Response("<html>"), None),
        (Response(status_code=404), None),
    ],
)
async def test_the_line_names_the_first_model_with_a_plain_name(answer: Any, model: str | None) -> None:
    async with serving(server(answer)) as url:
        hint = await asyncio.to_thread(local_model_hint, f"{url}/v1", PATIENCE)
    wanted = f"OPENAI_BASE_URL={url}/v1 and OPENAI_MODEL={model}" if model else ""
    assert hint.partition("to use it, set ")[2] == wanted


async def test_a_silent_server_does_not_stop_the_start() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # the system accepts connections, and nobody answers
        hinting = asyncio.to_thread(local_model_hint, f"http://127.0.0.1:{silent.getsockname()[1]}/v1")
        assert await asyncio.wait_for(hinting, PATIENCE) == ""


async def test_the_banner_of_a_terminal_shows_it_and_the_offline_model_answers(tmp_path: Path) -> None:
    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 29\r\n\r\n" + b'{"data": [{"id":"qwen3:8b"}]}')
        writer.close()

    try:
        ollama = await asyncio.start_server(play, "127.0.0.1", 11434)
    except OSError:
        pytest.skip("needs port 11434, at which something listens")
    shown = ""
    async with ollama, asyncio.timeout(PATIENCE):
        while "OPENAI_MODEL=qwen3:8b" not in shown:  # its fifth of a second may be too short on a busy machine
            async with at_a_terminal("serve", cwd=tmp_path, SERVER_PORT="0") as terminal:
                await terminal.sees("/docs")
                terminal.process.terminate()
                await terminal.ends()
                shown = terminal.shown
    assert "chat model: offline" in shown
