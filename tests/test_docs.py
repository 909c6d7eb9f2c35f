"""Every Python block of the documentation runs as it stands."""

import ast
import inspect
import re
from types import CodeType
from typing import Any

import pytest

from app.main import open_service, read_configuration
from tests.command_line import ROOT

PAGE = ROOT / "docs" / "tools.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def compiled(block: str) -> CodeType:
    """A block that may await at its outermost level."""
    code: CodeType = compile(block, str(PAGE), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    return code


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: str(block).split("\n", 1)[0])
async def test_a_block_of_the_page_about_tools_runs_as_it_stands(block: str) -> None:
    async with open_service(read_configuration()) as (state, _):
        names: dict[str, Any] = {"__name__": "shown", "client": state.chat}
        running = eval(compiled(block), names)
        if inspect.iscoroutine(running):
            await running


@pytest.mark.parametrize("readme", ["README.md", "README.zh-CN.md"])
def test_the_readme_leads_to_the_page(readme: str) -> None:
    assert "](docs/tools.md)" in (ROOT / readme).read_text(encoding="utf-8")
