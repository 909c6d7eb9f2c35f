"""The documents' other examples as routes: date and time, weather by a fixed value, orders, own control."""

from typing import Annotated

from dishka import FromComponent, Provider, Scope, provide

from app.tools.examples.tools import CurrentWeather
from app.user_clock import DateTimeTools, UserClockSettings
from toolchat import FunctionToolCallback, ToolCallback, ToolModule


class CurrentWeatherProvider(Provider):
    """Registers ``currentWeather`` by its name, for the module's own routes.

    ``functions`` would offer it in every conversation, where its fixed value would compete with a real forecast.
    """

    scope = Scope.APP
    component = "currentWeather"

    @provide
    def callback(self, service: Annotated[CurrentWeather, FromComponent("")]) -> ToolCallback:
        """The tool, marked as invented."""
        return FunctionToolCallback.from_function(service).in_sandbox()


module = ToolModule(
    title="Examples",
    path="/tool",
    settings=UserClockSettings,
    provides=(DateTimeTools, CurrentWeather),
    provider=CurrentWeatherProvider,
)
