"""Every Python block of the documentation runs as it stands."""

import ast
import inspect
import re
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from app.main import open_service, read_configuration
from tests.command_line import ROOT

PAGES = [ROOT / "docs" / name for name in ("tools.md", "advisors.md")]
BLOCKS = [
    (page, block)
    for page in PAGES
    for block in re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
]


def compiled(page: Path, block: str) -> CodeType:
    """A block that may await at its outermost level."""
    code: CodeType = compile(block, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    return code


@pytest.mark.parametrize(("page", "block"), BLOCKS, ids=[f"{page.stem}-{n}" for n, (page, _) in enumerate(BLOCKS)])
async def test_a_block_of_a_page_runs_as_it_stands(page: Path, block: str) -> None:
    async with open_service(read_configuration()) as (state, _):
        names: dict[str, Any] = {"__name__": "shown", "client": state.chat}
        running = eval(compiled(page, block), names)
        if inspect.iscoroutine(running):
            await running


@pytest.mark.parametrize("readme", ["README.md", "README.zh-CN.md"])
def test_the_readme_leads_to_every_page(readme: str) -> None:
    text = (ROOT / readme).read_text(encoding="utf-8")
    assert [page.name for page in PAGES if f"](docs/{page.name})" not in text] == []
