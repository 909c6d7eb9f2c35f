"""The pages for newcomers: their files where the reader is told to save them, and their commands."""

import asyncio
import re
import subprocess
from pathlib import Path

import httpx

from scripts.readme import BASE_URL, written_tools
from tests.command_line import ROOT, WITHOUT_EXAMPLE, environment, installed, started
from tests.players.openai_player import OpenAIPlayer, sensible_model
from tests.programs import require
from tests.waiting import PATIENCE

START = ROOT / "docs" / "start.md"
FROM_SPRING_AI = ROOT / "docs" / "from-spring-ai.md"


def typed(command: str, folder: Path) -> str:
    """What a command prints."""
    done = subprocess.run(
        installed(command), cwd=folder, env=environment({}), capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


async def test_a_reader_of_the_first_page_gets_an_answer_of_a_model_from_the_tool(tmp_path: Path) -> None:
    require("curl")
    page = START.read_text(encoding="utf-8")
    written_tools(tmp_path, START)
    _, (run_tool, serve), (_, *model), *_, (ask,) = (
        each.splitlines() for each in re.findall(r"^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    )
    assert serve == "toolchat serve"
    assert await asyncio.to_thread(typed, run_tool, tmp_path) == "lamp: 7 in stock\n"
    async with OpenAIPlayer(sensible_model({"item": "lamp"})) as player:
        settings = "\n".join(model).replace("http://127.0.0.1:11434/v1", player.base_url)
        (tmp_path / ".env").write_text(settings, encoding="utf-8")
        assert "works    Chat model" in await asyncio.to_thread(typed, "toolchat check", tmp_path)
        with started("serve", cwd=tmp_path, **WITHOUT_EXAMPLE) as (_, url):
            answer = await asyncio.to_thread(typed, ask.replace(BASE_URL, url).replace("curl", "curl -s"), tmp_path)
    assert '"name":"pieces_in_stock","arguments":{"item":"lamp"},"result":"lamp: 7 in stock"' in answer


async def test_the_file_for_readers_from_spring_ai_has_the_three_routes(tmp_path: Path) -> None:
    written_tools(tmp_path, FROM_SPRING_AI)
    model = sensible_model({"time_zone_id": "Asia/Tokyo"})
    async with OpenAIPlayer(model) as player:
        variables = {"OPENAI_BASE_URL": player.base_url, "OPENAI_MODEL": "fake", **WITHOUT_EXAMPLE}
        with started("serve", cwd=tmp_path, **variables) as (_, url):
            async with httpx.AsyncClient(base_url=f"{url}/time", timeout=PATIENCE, trust_env=False) as client:
                paths = ("/chat", "/chat-tool-function", "/chat-tool-method")
                headers = {"Accept": "application/json"}
                answers = [(await client.get(path, headers=headers)).json() for path in paths]
    called = [[each["name"] for each in answer["tool_calls"]] for answer in answers]
    assert called == [[], ["cityTimeFunction"], ["cityTimeMethod"]]
