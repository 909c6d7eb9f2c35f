"""The documents' example that writes: alarms, each set once, listed, deleted, and rung."""

from collections.abc import AsyncGenerator

from dishka import Provider, Scope, provide

from app.tools.alarms.alarms import AlarmIdempotency, AlarmStore
from app.tools.alarms.routes import router
from app.tools.alarms.tools import AlarmsSettings, AlarmTools
from app.tools.module import ToolModule
from app.tools.user_clock import DateTimeTools
from toolchat.state.base import StateStore

__all__ = ["module"]


class AlarmsProvider(Provider):
    """What the routes need; the alarms' timer ends with the container."""

    scope = Scope.APP
    date_time_tools = provide(DateTimeTools)
    alarm_tools = provide(AlarmTools)
    once = provide(AlarmIdempotency)

    @provide
    async def alarms(self, store: StateStore) -> AsyncGenerator[AlarmStore, None]:
        """The alarms, and the timer that rings them."""
        alarms = AlarmStore(store)
        yield alarms
        await alarms.aclose()


# The tool is no part of the folder's functions: what is there is offered in every conversation, and it writes.
module = ToolModule(title="Alarms", path="/tool/alarm", settings=AlarmsSettings, provider=AlarmsProvider, router=router)
