"""The time tool, as a function tool and as a method tool."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from app.places.recognizers import find_zone
from app.tools.time.zones import CityTime, current_time
from toolchat import Recognizer, ToolAnswer, tool

# Without an example: small models copy it for any city.
_ID = "Time zone id of the city, as Continent/City"
_TimeZoneId = Annotated[str, Field(alias="timeZoneId", description=_ID), Recognizer(find_zone)]


class TimeRequest(BaseModel):
    """Get the current time based on time zone id."""

    model_config = ConfigDict(extra="forbid")

    time_zone_id: _TimeZoneId


@tool(name="getCityTimeFunction", description="Get the time of a specified city.", read_only=True)
class GetCurrentTimeByTimeZoneIdService:
    """The function tool."""

    async def __call__(self, request: TimeRequest) -> ToolAnswer[CityTime]:
        """Return the current time; see :func:`current_time`."""
        return current_time(request.time_zone_id)


class TimeTools:
    """The method tool."""

    @tool(name="getCityTimeMethod", description="Get the time of a specified city.", read_only=True)
    async def get_city_time(self, time_zone_id: _TimeZoneId) -> ToolAnswer[CityTime]:
        """Return the current time; see :func:`current_time`."""
        return current_time(time_zone_id)
