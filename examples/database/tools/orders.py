"""The orders of a shop that serves several tenants."""

import sqlite3
from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from toolchat import NotFound, ToolContext, ToolModule, ToolSettings, tool

Number = Annotated[str, Field(description="Order number, such as A-1042")]


class OrdersSettings(ToolSettings):
    """Read from variables that begin with ``ORDERS_``."""

    database: str = Field("orders.db", description="SQLite file with the orders")


def open_database(settings: OrdersSettings) -> Iterator[sqlite3.Connection]:
    """Open the database when the service starts, and close it when the service stops."""
    # Read-only: no argument of a model can change the data.
    database = sqlite3.connect(f"file:{settings.database}?mode=ro", uri=True, check_same_thread=False)
    yield database
    database.close()


class OrderTools:
    """Each query has the caller's tenant, which the model neither sees nor chooses."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    @tool(read_only=True)
    def order_status(self, number: Number, context: ToolContext) -> str:
        """Status of an order: whether it is paid, and when it was shipped."""
        query = "SELECT item, state FROM orders WHERE tenant = ? AND number = ?"
        row = self._database.execute(query, (context.caller.tenant, number)).fetchone()
        if row is None:
            raise NotFound(f"there is no order {number}")
        return f"Order {number} ({row[0]}): {row[1]}"

    @tool(read_only=True)
    def list_orders(self, context: ToolContext) -> list[str]:
        """List the numbers of all orders."""
        query = "SELECT number FROM orders WHERE tenant = ? ORDER BY number"
        return [number for (number,) in self._database.execute(query, (context.caller.tenant,))]


module = ToolModule(settings=OrdersSettings, provides=(open_database,), methods=(OrderTools,))
