"""Files with MCP servers, and requests for their tools."""

import json
import sys
from pathlib import Path
from typing import Any

import httpx

from tests.waiting import until

__all__ = ["HOSTILE", "described", "hostile", "ran", "reaches", "run", "state", "tools_of", "written"]

HOSTILE = Path(__file__).with_name("hostile.py")


def hostile(*words: str, **more: Any) -> dict[str, Any]:
    """The entry of a hostile server."""
    return {"command": sys.executable, "args": ["-S", str(HOSTILE), *words], **more}


def written(folder: Path, **servers: dict[str, Any]) -> str:
    """Write a file that names servers; gives its path."""
    file = folder / "servers.json"
    file.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    return str(file)


async def run(client: httpx.AsyncClient, tool: str, arguments: Any = None, **headers: str) -> httpx.Response:
    """Run a tool without a model."""
    return await client.post(f"/tools/{tool}", json=arguments or {}, headers=headers)


async def ran(client: httpx.AsyncClient, tool: str, arguments: Any = None, **headers: str) -> tuple[str, Any]:
    """The outcome of a run, an error's kind in its place, and the result."""
    answer = await run(client, tool, arguments, **headers)
    call = answer.json()
    assert answer.status_code == 200, answer.text
    return call.get("error_kind") or call["outcome"], call["result"]


async def described(client: httpx.AsyncClient, server: str) -> dict[str, Any]:
    """The folder of a server in ``/tools``."""
    folders: list[dict[str, Any]] = (await client.get("/tools")).json()
    return next(each for each in folders if each["name"] == f"mcp-{server}")


async def state(client: httpx.AsyncClient, server: str = "far") -> str:
    """``registered``, or the reason why a server is unavailable."""
    folder = await described(client, server)
    return "registered" if folder["registered"] else str(folder["reason"])


async def reaches(client: httpx.AsyncClient, wanted: str, server: str = "far") -> None:
    """Wait until the state of a server begins with a text."""

    async def is_reached() -> bool:
        return (await state(client, server)).startswith(wanted)

    await until(is_reached)


async def tools_of(client: httpx.AsyncClient, server: str) -> dict[str, dict[str, Any]]:
    """The tools of a server in ``/tools``, by name."""
    return {each["name"]: each for each in (await described(client, server))["tools"]}
