"""What the documents' examples are told by the environment."""

from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field
from pydantic_settings import SettingsConfigDict

from app.places.gazetteer import zone_ids
from app.tools.module import ToolSettings

__all__ = ["ExamplesSettings"]


def _known_zone(value: str) -> str:
    if value not in zone_ids():
        raise ValueError("must be an IANA time-zone id such as Asia/Shanghai")
    return value


class ExamplesSettings(ToolSettings):
    """The user's time zone, and whether a GET may set an alarm as in the documents."""

    model_config = SettingsConfigDict(env_prefix="EXAMPLES_")

    zone: Annotated[str, AfterValidator(_known_zone)] = Field(
        "Asia/Shanghai", description="The user's time zone in the examples, an IANA id"
    )
    alarm_by_get: bool = Field(
        False, description="GET /tool/alarm sets alarms as in the documents, guarded; else only POST does"
    )

    @property
    def time_zone(self) -> ZoneInfo:
        """The rules of the user's time zone."""
        return ZoneInfo(self.zone)
