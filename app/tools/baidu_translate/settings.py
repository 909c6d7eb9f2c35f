"""Settings of the translation tool."""

from typing import ClassVar

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from app.settings import BaseUrl, Secret
from app.tools.module import ToolSettings

__all__ = ["CACHE_SECONDS", "BaiduTranslateSettings"]

CACHE_SECONDS = 3600
"""An hour: a translation does not age, but what users had translated should not lie in memory for long."""


class BaiduTranslateSettings(ToolSettings):
    """Where Baidu's general translation is, and what its plan allows."""

    model_config = SettingsConfigDict(env_prefix="BAIDU_TRANSLATE_")
    required: ClassVar[tuple[str, ...]] = ("app_id", "secret_key")
    has_sandbox = True

    app_id: Secret | None = Field(None, description="APP ID of the Baidu translate account")
    secret_key: Secret | None = Field(None, description="Secret key of the Baidu translate account")
    base_url: BaseUrl = Field(
        "https://fanyi-api.baidu.com/api/trans/vip/translate", description="Address of the general translation API"
    )
    requests_per_second: float = Field(
        1, gt=0, le=1000, description="Requests per second that the plan allows: Standard 1, Advanced 10, Premium 100"
    )
    max_chars: int = Field(
        1000, ge=1, le=6000, description="Longest text in characters: Standard plan 1000, Advanced and Premium 6000"
    )
    timeout: float = Field(10, gt=0, le=600, description="Seconds one request may take")
    max_wait: float = Field(8, ge=0, le=600, description="Seconds a call may wait for its turn before it is refused")
    cache_seconds: float = Field(
        CACHE_SECONDS, ge=0, le=86400, description="Seconds a translation also answers equal calls; 0 asks each time"
    )
