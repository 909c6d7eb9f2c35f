"""The documents' example that writes: alarms, each set once, listed, deleted, and rung."""

from collections.abc import AsyncGenerator

from app.tools.alarms.alarms import AlarmIdempotency, AlarmStore
from app.tools.alarms.tools import AlarmsSettings, AlarmTools
from app.tools.user_clock import DateTimeTools
from toolchat import StateStore, ToolModule

__all__ = ["module"]


async def open_alarms(store: StateStore) -> AsyncGenerator[AlarmStore, None]:
    """The alarms, and the timer that rings them."""
    alarms = AlarmStore(store)
    yield alarms
    await alarms.aclose()


# ``functions`` would offer the tool in every conversation, and it writes: only the module's own routes use it.
module = ToolModule(
    title="Alarms",
    path="/tool/alarm",
    settings=AlarmsSettings,
    provides=(DateTimeTools, AlarmTools, AlarmIdempotency, open_alarms),
)
