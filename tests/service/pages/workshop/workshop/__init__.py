"""Tools with every kind of argument."""

import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from toolchat import ToolModule
from toolchat.tool_calling.definition import tool
from toolchat.tool_calling.errors import ToolExecutionError


class Guest(BaseModel):
    """Somebody who comes along."""

    name: str = Field(description="Full name")
    vegetarian: bool = False


@tool
async def bookTable(
    restaurant: Annotated[str, Field(description="Name of the restaurant", examples=["Zum Löwen"], max_length=60)],
    day: Annotated[datetime.date, Field(description="Day of the visit")],
    seats: Annotated[int, Field(description="Seats at the table", ge=1, le=12)] = 2,
    area: Annotated[Literal["inside", "terrace"], Field(description="Where to sit")] = "inside",
    quiet: Annotated[bool, Field(description="Away from the door")] = False,
    arrival: Annotated[datetime.time | None, Field(description="When the guests come")] = None,
    until: Annotated[datetime.datetime | None, Field(description="Until when the table is kept")] = None,
    deposit: Annotated[float | None, Field(description="Paid in advance, in euros", gt=0)] = None,
    guests: Annotated[list[Guest] | None, Field(description="Who comes along", max_length=12)] = None,
) -> dict[str, object]:
    """Book a table in a restaurant."""
    if restaurant == "closed":
        raise ToolExecutionError("the restaurant is closed on that day")
    given = {"restaurant": restaurant, "day": day, "seats": seats, "area": area, "quiet": quiet, "arrival": arrival}
    return {"booked": True, **given, "until": until, "deposit": deposit, "guests": guests or []}


@tool(cache_seconds=600)
async def listPrices() -> list[int]:
    """List the prices of today."""
    return [12, 15]


module = ToolModule(functions=(bookTable, listPrices))
