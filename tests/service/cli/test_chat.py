"""A conversation at a terminal, and one that is piped in."""

from pathlib import Path

from tests.command_line import run, with_tools
from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, delta, sensible_model, sse, whole
from tests.service.cli.terminal import CTRL_C, CTRL_D, UP, at_a_terminal

LIGHT = '''
from typing import Annotated

from toolchat.tool_calling.function_callback import tool
from toolchat import ToolModule


@tool(requires_approval=True)
async def switchLight(on: Annotated[bool, "Whether the light is to be on"]) -> str:
    """Switch the light."""
    return f"The light is {'on' if on else 'off'}."


module = ToolModule(functions=(switchLight,))
'''


async def test_a_conversation_continues_until_quit(tmp_path: Path) -> None:
    async with at_a_terminal("chat", cwd=tmp_path) as terminal:
        assert "chat model offline" in await terminal.sees("/quit")
        await terminal.enter("What time is it in Tokyo?")
        await terminal.sees("- getCityTimeFunction")
        await terminal.sees("In Tokyo it is")
        await terminal.enter("And in Paris?")  # the model is given the question before
        await terminal.sees("In Paris it is")
        await terminal.enter(UP + UP)
        await terminal.sees("In Tokyo it is")
        await terminal.enter("/tools")
        await terminal.sees("todoRead: Show the current todo list")
        await terminal.enter("/nwe")
        await terminal.sees("there is no /nwe; /tools lists the tools, /new")
        await terminal.enter("/new")
        await terminal.enter("And in Paris?")
        await terminal.sees("> ")
        assert "In Paris it is" not in terminal.shown.rsplit("And in Paris?", 1)[1]
        terminal.type(CTRL_D)
        assert await terminal.ends() == 0


async def test_a_call_that_needs_approval_prompts_the_user(tmp_path: Path) -> None:
    variables = with_tools(tmp_path, {"light": LIGHT}) | {"NO_COLOR": "1"}
    async with OpenAIPlayer(sensible_model({"on": True})) as player:
        variables["OPENAI_BASE_URL"] = player.base_url
        async with at_a_terminal("chat", "--tool", "switchLight", cwd=tmp_path, **variables) as terminal:
            await terminal.enter("Light on")
            await terminal.sees('Run switchLight({"on": true})? [y/n/edit] ')
            terminal.type("what?\n")
            await terminal.sees("[y/n/edit] ")
            terminal.type("edit off\n")
            await terminal.sees("edit JSON changes the arguments")
            await terminal.sees("[y/n/edit] ")
            terminal.type('edit {"on": false}\n')
            await terminal.sees('Run switchLight({"on": false})? [y/n/edit] ')
            terminal.type("y\n")
            await terminal.sees("The tools say: The light is off.")
            await terminal.enter("Light on")
            await terminal.sees("[y/n/edit] ")
            terminal.type("n it is day\n")
            await terminal.sees("The tools say: ")
            assert "it is day" in await terminal.sees("> ")
            terminal.type("/quit\n")
            assert await terminal.ends() == 0
        assert "\x1b[2m" not in terminal.raw


async def test_neither_an_interrupt_nor_a_failure_ends_the_conversation(tmp_path: Path) -> None:
    def model(request: PlayedRequest) -> Answer:
        said = request.body["messages"][-1]["content"]
        if said == "fail":
            return whole({"error": {"message": "no", "type": "invalid_request_error"}}, 400)
        return sse(delta(content="half"), ending="hang", done=False) if said == "hang" else sensible_model()(request)

    async with OpenAIPlayer(model) as player:
        async with at_a_terminal(
            "chat", "--tool", "todoRead", cwd=tmp_path, OPENAI_BASE_URL=player.base_url
        ) as terminal:
            await terminal.enter("hang")
            await terminal.sees("half")
            terminal.type(CTRL_C)
            await terminal.sees("stopped")
            await terminal.enter("fail")
            await terminal.sees("toolchat: upstream-invalid: ")
            await terminal.enter("Go on")
            await terminal.sees("The tools say: ")
            await terminal.sees("> ")
            terminal.type("taken back")
            await terminal.sees("taken back")
            await terminal.interrupt(lambda: terminal.shown.count("stopped") > 1)
            terminal.type("/quit\n")
            assert await terminal.ends() == 0
        assert "taken back" not in str([each.body for each in player.requests])


def test_lines_that_are_piped_in_are_questions_and_the_worst_one_gives_the_exit_code(tmp_path: Path) -> None:
    lines = "What time is it in Tokyo?\nAnd in Paris?\n" + "x" * 33_000 + "\n"
    done = run("chat", cwd=tmp_path, entering=lines)
    assert [line[:11] for line in done.stdout.splitlines()] == ["In Tokyo it", "In Paris it"]
    assert done.stderr.splitlines()[-1] == "toolchat: the question must have 1 to 32000 characters"
    assert done.returncode == 1
