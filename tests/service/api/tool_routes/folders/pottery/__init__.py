"""A tool folder with a tool of each kind, for runs without a model."""

import asyncio
import threading
import time
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from toolchat import ToolModule
from toolchat.tool_calling.context import CONVERSATION_ID, ToolContext
from toolchat.tool_calling.definition import tool
from toolchat.tool_calling.errors import ToolExecutionError

__all__ = ["YARD", "module"]


@dataclass
class Yard:
    """What tests see of the tools, and the door at which some of them wait."""

    fired: list[str] = field(default_factory=list)
    hanging: int = 0
    ended: int = 0
    door: asyncio.Event = field(default_factory=asyncio.Event)

    def tidy(self) -> None:
        """Begin anew."""
        self.fired, self.hanging, self.ended, self.door = [], 0, 0, asyncio.Event()


YARD = Yard()


class Pot(BaseModel):
    """A pot."""

    name: str = Field(min_length=3, examples=["amphora"])
    lids: "list[Pot]" = []


@tool(requires_approval=True)
async def firePot(pot: str) -> str:
    """Fire a pot, which cannot be undone."""
    YARD.fired.append(pot)
    await YARD.door.wait()
    return f"fired {pot}"


async def hang(context: ToolContext) -> str:
    """Report once, then wait at the door."""
    YARD.hanging += 1
    try:
        context.report(1, of=2, text="at the door")
        await YARD.door.wait()
    finally:
        YARD.hanging -= 1
        YARD.ended += 1
    return "out"


def turnPots(number: Annotated[int, Field(ge=1, le=1000)], context: ToolContext) -> str:
    """Turn pots in a thread, and say how far it is."""
    assert threading.current_thread() is not threading.main_thread()
    for each in range(number):
        context.report(each + 1, of=number, text=f"pot {each + 1}")
    return f"turned {number}"


@tool(timeout=0.2)
async def sleepLong() -> str:
    """Sleep for too long."""
    await asyncio.Event().wait()
    return "awake"


@tool(cache_seconds=600)
async def weigh(pot: str, unit: Literal["g", "kg"] = "kg") -> str:
    """Weigh a pot."""
    return f"{pot}: {time.monotonic_ns()} {unit}"


async def crack(kind: Literal["told", "untold"]) -> str:
    """Fail."""
    raise ToolExecutionError("cracked", kind="crack") if kind == "told" else RuntimeError("secret")


async def whose(context: ToolContext) -> str:
    """Tell who asks."""
    return f"{context.caller.tenant or None} {context.get(CONVERSATION_ID)} {len(context.history)}"


async def nest(pot: Pot, also: Pot | None = None) -> str:
    """Put pots into each other."""
    return f"{pot.name} {also}"


module = ToolModule(
    functions=(firePot, hang, turnPots, sleepLong, weigh, crack, whose, nest), default_query="Turn 3 pots"
)
