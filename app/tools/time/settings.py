"""Settings of the time tool."""

from pydantic_settings import SettingsConfigDict

from app.tools.module import ToolSettings

__all__ = ["TimeSettings"]


class TimeSettings(ToolSettings):
    """The switch ``TIME_ENABLED``; the clock is the machine's, so nothing else is needed."""

    model_config = SettingsConfigDict(env_prefix="TIME_")
