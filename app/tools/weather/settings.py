"""What the weather tool is told by the environment."""

from typing import ClassVar

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from app.settings import BaseUrl, Secret
from app.tools.module import ToolSettings

__all__ = ["CACHE_SECONDS", "WeatherSettings"]

CACHE_SECONDS = 600
"""Ten minutes: the present weather may be that old, and a busy place is asked for six times an hour at most."""


class WeatherSettings(ToolSettings):
    """Where WeatherAPI is, and the key to it."""

    model_config = SettingsConfigDict(env_prefix="WEATHER_")
    required: ClassVar[tuple[str, ...]] = ("api_key",)
    has_sandbox = True

    api_key: Secret | None = Field(None, description="Key of weatherapi.com")
    base_url: BaseUrl = Field("https://api.weatherapi.com/v1", description="Address of WeatherAPI, up to its version")
    timeout: float = Field(10, gt=0, le=600, description="Seconds a weather look-up may take, a second try included")
    cache_seconds: float = Field(
        CACHE_SECONDS, ge=0, le=86400, description="Seconds a forecast also answers equal look-ups; 0 asks each time"
    )
