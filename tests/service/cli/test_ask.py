"""``python -m app ask`` with tools and advisors of one's own."""

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from tests.command_line import run, with_tools
from tests.players.openai_player import OpenAIPlayer, delta, finish, sensible_model, sse
from tests.service.cli.terminal import CTRL_D, at_a_terminal

LIGHT = '''
from typing import Annotated

from toolchat.tool_calling.function_callback import tool
from toolchat import ToolModule


@tool({mark})
async def switchLight(on: Annotated[bool, "Whether the light is to be on"]) -> str:
    """Switch the light."""
    return "The light is on."


module = ToolModule(functions=(switchLight,))
'''
FOOTER = """
from dataclasses import replace

from toolchat.chat.advisors.base import BaseAdvisor
from toolchat import ToolModule


class Footer(BaseAdvisor):
    order = 100

    def after(self, response):
        return replace(response, message=replace(response.message, text=response.message.text + " Yours, the advisor"))


module = ToolModule(advisors=(Footer,))
"""


FAILING = '''
import logging
from typing import Annotated

from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.errors import ToolExecutionError
from toolchat.tool_calling.function_callback import tool
from toolchat import ToolModule


@tool(retries=2)
async def switchLight(context: ToolContext, on: Annotated[bool, "Whether the light is to be on"]) -> str:
    """Switch the light."""
    context.report(1, of=2, text="looking for it")
    logging.getLogger("app.light").warning("the light is broken")
    raise ToolExecutionError("there is no light", kind="broken", retryable=True)


module = ToolModule(functions=(switchLight,))
'''


async def ask(tmp_path: Path, folders: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Ask a model that calls the first tool it is offered, with more tool folders."""
    variables = with_tools(tmp_path, folders)
    async with OpenAIPlayer(sensible_model({"on": True})) as player:
        variables["OPENAI_BASE_URL"] = player.base_url
        return await asyncio.to_thread(run, "ask", "Light on", *arguments, cwd=tmp_path, **variables)


WAITING = """\
toolchat: switchLight({"on": true}) needs approval, but no terminal is attached
toolchat: ask again in a terminal and decide there, or add --approve switchLight
"""


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["text", "json"])
async def test_a_call_without_a_terminal_to_approve_it_gives_exit_code_3(form: list[str], tmp_path: Path) -> None:
    # The document of ``--json`` is as it always is; as text there is no answer, and so no empty line.
    guarded = LIGHT.format(mark="requires_approval=True")
    done = await ask(tmp_path, {"light": guarded}, "--tool", "switchLight", *form)
    assert (done.returncode, done.stderr) == (3, WAITING)
    if form:
        assert json.loads(done.stdout)["finish_reason"] == "approval_required"
    else:
        assert done.stdout == ""


async def test_text_that_an_advisor_appends_is_printed(tmp_path: Path) -> None:
    # The model's words are streamed; what a folder's advisor puts behind them at the end follows on the same line.
    done = await ask(tmp_path, {"footer": FOOTER, "light": LIGHT.format(mark="")})
    (answer,) = done.stdout.splitlines()
    assert answer.endswith(" Yours, the advisor")
    assert answer.count("Yours") == 1
    assert len(answer) > len(" Yours, the advisor")
    assert done.stderr.count("- switchLight(") == 1


async def test_the_result_of_a_tool_that_returns_directly_is_printed(tmp_path: Path) -> None:
    # No word of it was streamed, since no model wrote it.
    direct = LIGHT.format(mark="return_direct=True")
    done = await ask(tmp_path, {"light": direct}, "--tool", "switchLight")
    assert (done.returncode, done.stdout) == (0, "The light is on.\n")


async def test_a_call_that_was_approved_beforehand_runs_and_the_trace_is_that_of_the_whole_question(
    tmp_path: Path,
) -> None:
    guarded = LIGHT.format(mark="requires_approval=True")
    done = await ask(tmp_path, {"light": guarded}, "--tool", "switchLight", "--approve", "switchLight", "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["answer"]) == (0, "The tools say: The light is on.")
    assert [(call["name"], call["round"]) for call in document["tool_calls"]] == [("switchLight", 1)]
    assert (document["rounds"], document["usage"]["total_tokens"]) == (2, 50)


async def test_a_failed_tool_gives_exit_code_1_and_each_warning_is_shown_once(tmp_path: Path) -> None:
    done = await ask(tmp_path, {"light": FAILING}, "--tool", "switchLight")
    assert done.returncode == 1
    assert done.stderr.count("toolchat: WARNING: the light is broken\n") == 1
    assert "switchLight: 1 of 2, looking for it\n" in done.stderr
    assert done.stderr.splitlines()[-1].startswith('- switchLight({"on": true}) -> error in ')


async def test_an_answer_cut_off_by_the_length_limit_is_marked(tmp_path: Path) -> None:
    async with OpenAIPlayer([sse(delta(content="half an answer"), finish("length"))]) as player:
        done = await asyncio.to_thread(run, "ask", "?", cwd=tmp_path, OPENAI_BASE_URL=player.base_url)
    assert (done.returncode, done.stdout) == (0, "half an answer [cut off by the model's length limit]\n")


async def test_terminal_escapes_are_removed_in_pipes_too(tmp_path: Path) -> None:
    # Behind the pipe may be a terminal; letters that change the direction of a text belong to some languages.
    async with OpenAIPlayer([sse(delta(content="red\x1b[31m \u200fשלום\tand\x9b2J"), finish("stop"))]) as player:
        done = await asyncio.to_thread(run, "ask", "?", cwd=tmp_path, OPENAI_BASE_URL=player.base_url)
    assert done.stdout == "red\\x1b[31m \u200fשלום\tand\\x9b2J\n"


@pytest.mark.parametrize("arguments", [["-"], []], ids=["dash", "pipe"])
def test_a_question_is_read_from_standard_input(arguments: list[str], tmp_path: Path) -> None:
    done = run("ask", *arguments, cwd=tmp_path, entering="东京现在几点？\n")
    assert done.returncode == 0
    assert done.stdout.startswith("东京现在是")


async def test_at_a_terminal_a_question_is_needed_and_a_decision_can_be_left_open(tmp_path: Path) -> None:
    async with at_a_terminal("ask", cwd=tmp_path) as terminal:
        await terminal.sees("the question is missing: toolchat ask")
        assert await terminal.ends() == 2
    variables = with_tools(tmp_path, {"light": LIGHT.format(mark="requires_approval=True")})
    async with OpenAIPlayer(sensible_model({"on": True})) as player:
        variables["OPENAI_BASE_URL"] = player.base_url
        question = ("ask", "Light on", "--tool", "switchLight")
        async with at_a_terminal(*question, cwd=tmp_path, **variables) as terminal:
            await terminal.sees("[y/n/edit] ")
            terminal.type(CTRL_D)
            await terminal.sees("needs approval")
            assert await terminal.ends() == 3
        async with at_a_terminal(*question, cwd=tmp_path, **variables) as terminal:
            await terminal.sees("[y/n/edit] ")
            await terminal.interrupt(lambda: terminal.process.poll() is not None)
            assert await terminal.ends() == 130
