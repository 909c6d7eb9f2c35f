"""The documents' other examples as routes: date and time, weather by a fixed value, orders, own control."""

from dishka import Provider, Scope, provide

from app.composition.container import named
from app.tools.examples.routes import router
from app.tools.examples.tools import CurrentWeather
from app.tools.module import ToolModule, ToolSettings
from app.tools.user_clock import DateTimeTools, UserClockSettings
from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.function_callback import FunctionToolCallback

__all__ = ["module"]


class ExamplesProvider(Provider):
    """What the examples share."""

    scope = Scope.APP
    date_time_tools = provide(DateTimeTools)
    current_weather = provide(CurrentWeather)


class ExamplesModule(ToolModule):
    """A folder whose tools belong to its own routes alone.

    ``currentWeather`` has its name in the container, but is not among ``functions``: what is there is also offered
    elsewhere, and its fixed value must not compete with a real forecast.
    """

    def providers(self, settings: ToolSettings) -> list[Provider]:
        """See :meth:`ToolModule.providers`."""

        def in_sandbox(service: CurrentWeather) -> ToolCallback:
            return FunctionToolCallback.from_function(service).in_sandbox()

        weather = named("currentWeather", ToolCallback, in_sandbox, CurrentWeather)  # type: ignore[type-abstract]
        return [*super().providers(settings), weather]


module = ExamplesModule(
    title="Examples", path="/tool", settings=UserClockSettings, provider=ExamplesProvider, router=router
)
