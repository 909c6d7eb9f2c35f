"""What the alarms are told by the environment."""

from pydantic import Field

from app.tools.user_clock import UserClockSettings

__all__ = ["AlarmsSettings"]


class AlarmsSettings(UserClockSettings):
    """Whether a GET may set an alarm as in the documents; the variables are those of the examples."""

    alarm_by_get: bool = Field(
        False, description="GET /tool/alarm sets alarms as in the documents, guarded; else only POST does"
    )
