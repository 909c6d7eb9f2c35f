"""Settings of the chat providers."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from pydantic_settings import SettingsConfigDict

from app.settings.base import BaseUrl, EnvironmentSettings, Secret

__all__ = ["DashScopeSettings", "OpenAISettings"]


def _without_operation(url: str) -> str:
    if url.lower().endswith("/completions"):
        raise ValueError("must end before /chat/completions, which is put behind it")
    return url


class OpenAISettings(EnvironmentSettings):
    """Models of an OpenAI-compatible server."""

    model_config = SettingsConfigDict(env_prefix="OPENAI_")

    api_key: Secret | None = Field(None, description="API key of the server; local servers usually need none")
    base_url: Annotated[BaseUrl, AfterValidator(_without_operation)] | None = Field(
        None, description="Address of the server without /chat/completions; default https://api.openai.com/v1"
    )
    model: str = Field("gpt-4o-mini", min_length=1, description="Name of the chat model")


class DashScopeSettings(EnvironmentSettings):
    """Models of DashScope."""

    model_config = SettingsConfigDict(env_prefix="DASHSCOPE_")

    api_key: Secret | None = Field(None, description="Key of Alibaba Cloud Model Studio; keys belong to one region")
    base_url: BaseUrl | None = Field(
        None, description="Native API of the region, ending in /api/v1; default https://dashscope.aliyuncs.com/api/v1"
    )
    model: str = Field("qwen-plus", min_length=1, description="Name of the chat model")
    endpoint: Literal["auto", "text", "multimodal"] = Field(
        "auto", description="Generation endpoint of the model; auto: chosen by the model's name"
    )
    workspace: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$",
        description="Workspace id, where calls are billed per workspace",
    )
    enable_thinking: bool | None = Field(
        None, description="Let the model think first; none leaves the model's own default"
    )
