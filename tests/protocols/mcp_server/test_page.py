"""The page about MCP shows valid configurations for hosts."""

import re

from pydantic_core import from_json

from tests.command_line import ROOT


def test_host_configurations_are_valid_json() -> None:
    text = (ROOT / "docs" / "mcp.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```json\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    inline = re.findall(r"`(\{.*\})`", text)
    assert len(blocks) + len(inline) == 3
    for each in (*blocks, *inline):
        assert isinstance(from_json(each), dict)
