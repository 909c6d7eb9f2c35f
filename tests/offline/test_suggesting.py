"""What the offline model proposes to ask."""

from pathlib import Path

from tests.command_line import run, with_tools

DISK = '''
from toolchat.tool_calling.function_callback import tool
from toolchat import ToolModule


@tool({mark})
async def wipeDisk() -> str:
    """Wipe the disk."""
    return "Gone."


module = ToolModule(functions=(wipeDisk,))
'''


def greeting(tmp_path: Path, mark: str) -> str:
    (folder,) = with_tools(tmp_path, {"disk": DISK.format(mark=mark)}).values()
    return run("ask", "hello", cwd=tmp_path, CHAT_PROVIDER="offline", TOOLS_PATH=folder).stdout


def test_a_tool_that_waits_for_consent_is_not_proposed(tmp_path: Path) -> None:
    told = greeting(tmp_path, "requires_approval=True")
    assert "wipe" not in told
    assert '"What time is it in London?"' in told


def test_the_users_own_tool_is_proposed_first(tmp_path: Path) -> None:
    told = greeting(tmp_path, "")
    assert told.index('"wipeDisk"') < told.index('"Show the todo list"')
