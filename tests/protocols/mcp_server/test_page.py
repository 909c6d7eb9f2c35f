"""The page about the protocol shows what hosts can read; its commands are run with those of the other pages."""

import re

from pydantic_core import from_json

from tests.command_line import ROOT


def test_what_hosts_are_configured_by_is_json() -> None:
    text = (ROOT / "docs" / "mcp.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```json\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    inline = re.findall(r"`(\{.*\})`", text)
    assert len(blocks) + len(inline) == 3
    for each in (*blocks, *inline):
        assert isinstance(from_json(each), dict)
