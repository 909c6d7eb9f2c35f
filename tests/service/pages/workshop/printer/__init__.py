"""Tools that need consent, take their time, or write Markdown."""

import asyncio
from typing import Annotated

from pydantic import Field

from toolchat import ToolModule
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.definition import tool

PRINTED: list[str] = []
"""What was printed, so that a test sees that it happened once."""


@tool(requires_approval=True)
async def printPage(text: Annotated[str, Field(description="What to print")]) -> str:
    """Print a page."""
    PRINTED.append(text)
    return f"printed, page {len(PRINTED)}"


@tool
async def printBook(context: ToolContext) -> str:
    """Print a whole book, page by page."""
    context.report(3, of=8, text="page 3")
    await asyncio.Event().wait()
    return "never"


module = ToolModule(functions=(printPage, printBook))
