"""The documents' example of a tool that writes: alarms, each set once, listed and deleted."""

from app.tools.alarms.alarms import AlarmIdempotency, AlarmStore
from app.tools.alarms.tools import AlarmTools
from app.user_clock import DateTimeTools, UserClockSettings
from toolchat import ToolModule

# ``functions`` would offer the tool in every conversation, and it writes: only the module's own routes use it.
module = ToolModule(
    title="Alarms",
    path="/tool/alarm",
    settings=UserClockSettings,
    provides=(DateTimeTools, AlarmTools, AlarmIdempotency, AlarmStore),
)
