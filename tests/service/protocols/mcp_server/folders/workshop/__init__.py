"""Tools for the tests of MCP: one for each kind of result."""

import asyncio
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated

from pydantic import Field

from toolchat import ToolAnswer, ToolModule
from toolchat.tool_calling.context import CONVERSATION_ID, ToolContext
from toolchat.tool_calling.definition import tool
from toolchat.tool_calling.errors import ToolExecutionError


@dataclass(frozen=True, slots=True)
class Quote:
    """A price."""

    price: float
    note: str = ""


@dataclass(frozen=True, slots=True)
class Label:
    """Two texts."""

    name: str
    unit: str


class Seen:
    """What the tools have done, for tests in the same process."""

    switched: int = 0
    waiting: int = 0
    cancelled: int = 0


@tool(retries=1)
async def quote(price: float) -> Quote:
    """Give a quote."""
    return Quote(price, "fresh")


@tool
async def quotes() -> list[Quote]:
    """Give quotes."""
    return [Quote(1), Quote(2)]


@tool(cache_seconds=60)
async def draw(size: int) -> ToolAnswer[Quote]:
    """Draw a quote."""
    return ToolAnswer(f"drawn in {size}", Quote(size))


@tool
def drawAnything() -> ToolAnswer:  # type: ignore[type-arg]
    """Draw anything."""
    return ToolAnswer({"said": 1}, {"points": [(1, 2)], "at": Decimal("1.5")})


@tool
async def wrongQuote() -> Quote:
    """Give a quote that is none."""
    return Quote("dear")  # type: ignore[arg-type]


@tool
async def label(unit: str) -> Label:
    """Give a label, which is none without a unit."""
    return Label("price", unit or 5)  # type: ignore[arg-type]


@tool
async def fail() -> str:
    """Fail."""
    raise ToolExecutionError("the workshop is closed", kind="closed", hint="come back tomorrow")


@tool
async def count(to: Annotated[int, Field(ge=1, le=1000)], context: ToolContext) -> str:
    """Count aloud."""
    for number in range(1, to + 1):
        context.report(number, of=to, text=f"at {number}")
        await asyncio.sleep(0)
    return f"counted to {to}"


@tool
async def countBack(context: ToolContext) -> str:
    """Count from two to one."""
    context.report(2)
    for _ in range(10):  # the first report is sent in the next iteration of the loop
        await asyncio.sleep(0)
    context.report(1)
    return "counted back"


@tool
async def wait(context: ToolContext) -> str:
    """Wait until the caller has had enough."""
    context.report(1)
    Seen.waiting += 1
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        Seen.waiting -= 1
        Seen.cancelled += 1
    return "never"


@tool(read_only=True)
async def waiting() -> str:
    """Count the calls of wait."""
    return f"{Seen.waiting} waiting, {Seen.cancelled} cancelled"


@tool(requires_approval=True)
async def switchLight(on: bool) -> str:
    """Switch the light."""
    Seen.switched += 1
    return "on" if on else "off"


@tool(read_only=True)
async def whose(context: ToolContext) -> str:
    """Say on whose behalf the call is made, and in which conversation."""
    return f"{context.get('tenantId')} {context.get(CONVERSATION_ID)}"


module = ToolModule(
    functions=(
        *(
            quote,
            quotes,
            draw,
            drawAnything,
            wrongQuote,
            label,
            fail,
            count,
            countBack,
            wait,
            waiting,
            switchLight,
            whose,
        ),
    )
)
