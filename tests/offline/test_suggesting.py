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
    variables = with_tools(tmp_path, {"disk": DISK.format(mark=mark)})
    return run("ask", "hello", cwd=tmp_path, CHAT_PROVIDER="offline", **variables).stdout


def test_a_tool_that_waits_for_consent_is_not_proposed(tmp_path: Path) -> None:
    told = greeting(tmp_path, "requires_approval=True")
    assert "wipe" not in told
    assert "- What time is it in London?" in told.splitlines()


def test_a_tool_that_runs_without_it_is(tmp_path: Path) -> None:
    assert "- wipe disk" in greeting(tmp_path, "").splitlines()
