"""What the weather tool is told by the environment."""

from typing import ClassVar

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from app.settings import BaseUrl, Secret
from app.tools.module import ToolSettings

__all__ = ["WeatherSettings"]


class WeatherSettings(ToolSettings):
    """Where WeatherAPI is, and the key to it."""

    model_config = SettingsConfigDict(env_prefix="WEATHER_")
    required: ClassVar[tuple[str, ...]] = ("api_key",)

    api_key: Secret | None = Field(None, description="Key of weatherapi.com")
    base_url: BaseUrl = Field("https://api.weatherapi.com/v1", description="Address of WeatherAPI, up to its version")
    timeout: float = Field(10, gt=0, le=600, description="Seconds a weather look-up may take, a second try included")
