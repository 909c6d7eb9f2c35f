"""``python -m app ask`` with tools and advisors of one's own."""

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from tests.command_line import copy_of_the_app, run
from tests.players.openai_player import OpenAIPlayer, sensible_model

LIGHT = '''
from typing import Annotated

from app.tool_calling.function_callback import tool
from app.tools.module import ToolModule


@tool({mark})
async def switchLight(on: Annotated[bool, "Whether the light is to be on"]) -> str:
    """Switch the light."""
    return "The light is on."


module = ToolModule(functions=(switchLight,))
'''
FOOTER = """
from dataclasses import replace

from app.chat.advisors import BaseAdvisor
from app.tools.module import ToolModule


class Footer(BaseAdvisor):
    order = 100

    def after(self, response):
        return replace(response, message=replace(response.message, text=response.message.text + " Yours, the advisor"))


module = ToolModule(advisors=(Footer,))
"""


async def ask(tmp_path: Path, folders: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Ask a model that calls the first tool it is offered, in a copy of the service with more tool folders."""
    copy_of_the_app(tmp_path, folders)
    async with OpenAIPlayer(sensible_model({"on": True})) as player:
        variables = {"PYTHONPATH": str(tmp_path), "OPENAI_BASE_URL": player.base_url}
        return await asyncio.to_thread(run, "ask", "Light on", *arguments, cwd=tmp_path, **variables)


WAITING = 'toolchat: switchLight({"on": true}) waits for approval, which cannot be given on the terminal\n'


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["text", "json"])
async def test_a_call_that_waits_for_approval_is_told_and_the_exit_code_is_1(form: list[str], tmp_path: Path) -> None:
    # The document of ``--json`` is as it always is; as text there is no answer, and so no empty line.
    guarded = LIGHT.format(mark="requires_approval=True")
    done = await ask(tmp_path, {"light": guarded}, "--tool", "switchLight", *form)
    assert (done.returncode, done.stderr) == (1, WAITING)
    if form:
        assert json.loads(done.stdout)["finish_reason"] == "approval_required"
    else:
        assert done.stdout == ""


async def test_what_an_advisor_adds_to_the_end_is_printed_as_chat_answers_it(tmp_path: Path) -> None:
    # The model's words are streamed; what a folder's advisor puts behind them at the end follows on the same line.
    done = await ask(tmp_path, {"footer": FOOTER, "light": LIGHT.format(mark="")})
    answer, *calls = done.stdout.splitlines()
    assert answer.endswith(" Yours, the advisor")
    assert answer.count("Yours") == 1
    assert len(answer) > len(" Yours, the advisor")
    assert len(calls) == 1


async def test_the_result_of_a_tool_that_returns_directly_is_printed(tmp_path: Path) -> None:
    # No word of it was streamed, since no model wrote it.
    direct = LIGHT.format(mark="return_direct=True")
    done = await ask(tmp_path, {"light": direct}, "--tool", "switchLight")
    assert (done.returncode, done.stderr) == (0, "")
    assert "The light is on." in done.stdout.splitlines()[0]
