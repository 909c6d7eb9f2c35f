"""The documents' other examples as routes: date and time, alarms, weather by a fixed value, orders, own control."""

from collections.abc import AsyncGenerator

from dishka import Provider, Scope, provide
from fastapi import APIRouter

from app.container import named
from app.tool_calling.callback import ToolCallback
from app.tool_calling.function_callback import FunctionToolCallback
from app.tools.examples.alarm_routes import router as alarm_routes
from app.tools.examples.alarms import AlarmStore
from app.tools.examples.idempotency import IdempotencyStore
from app.tools.examples.routes import router as example_routes
from app.tools.examples.settings import ExamplesSettings
from app.tools.examples.tools import AlarmTools, CurrentWeather, DateTimeTools
from app.tools.module import ToolModule, ToolSettings

__all__ = ["module"]


class ExamplesProvider(Provider):
    """What the examples share; the alarms' timer ends with the container."""

    scope = Scope.APP
    date_time_tools = provide(DateTimeTools)
    alarm_tools = provide(AlarmTools)
    current_weather = provide(CurrentWeather)

    @provide
    def idempotency(self) -> IdempotencyStore:
        """The answers that a repeated request gets again."""
        return IdempotencyStore()

    @provide
    async def alarms(self) -> AsyncGenerator[AlarmStore, None]:
        """The alarms of this process."""
        store = AlarmStore()
        yield store
        await store.aclose()


class ExamplesModule(ToolModule):
    """A folder whose tools belong to its own routes alone.

    ``currentWeather`` has its name in the container, but is not among ``functions``: what is there is also offered
    elsewhere, and its fixed value must not compete with a real forecast.
    """

    def providers(self, settings: ToolSettings) -> list[Provider]:
        """See :meth:`ToolModule.providers`."""

        def in_sandbox(service: CurrentWeather) -> ToolCallback:
            return FunctionToolCallback.of(service).in_sandbox()

        weather = named("currentWeather", ToolCallback, in_sandbox, CurrentWeather)  # type: ignore[type-abstract]
        return [*super().providers(settings), weather]


def _routes() -> APIRouter:
    router = APIRouter(tags=["Examples"])
    router.include_router(example_routes)
    router.include_router(alarm_routes)
    return router


module = ExamplesModule(
    title="Examples", path="/tool", settings=ExamplesSettings, provider=ExamplesProvider, router=_routes()
)
