"""Settings of the chat providers."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FilePath,
    ValidationInfo,
    field_validator,
)
from pydantic_core import from_json
from pydantic_settings import NoDecode, SettingsConfigDict

from toolchat.models.dashscope import DEFAULT_BASE_URL as DASHSCOPE_URL
from toolchat.models.openai import DEFAULT_BASE_URL as OPENAI_URL
from toolchat.models.profiles import Profile
from toolchat.service.settings.base import EnvironmentSettings
from toolchat.tool_calling.setting_types import BaseUrl, Secret, Url


def _without_operation(url: str) -> str:
    if not re.fullmatch(r"(?i)[^?#]+(?<!/completions)(?<!/completions/)(\?api-version=[\w.-]+)?", url):
        raise ValueError("must end before /chat/completions, and without ? and # but for Azure's ?api-version=")
    return url


class ModelOptions(BaseModel):
    """Options of every call of a model; a question's options take precedence."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = Field(None, ge=1)
    stop: tuple[str, ...] | None = None
    seed: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    reasoning_effort: str | None = None
    parallel_tool_calls: bool | None = None
    extra_body: dict[str, Any] = {}
    profile: Profile | None = None
    extra_headers: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9-]+$")], Secret] = {}


def _parsed(value: object) -> object:
    try:
        return from_json(value) if isinstance(value, str) else value
    except ValueError:
        raise ValueError("must be a JSON object") from None


Options = Annotated[ModelOptions | None, NoDecode, BeforeValidator(_parsed)]


class OpenAISettings(EnvironmentSettings):
    """Models of an OpenAI-compatible server."""

    model_config = SettingsConfigDict(env_prefix="OPENAI_")

    api_key: Secret | None = Field(None, description="API key of the server; local servers usually need none")
    base_url: Annotated[Url, AfterValidator(_without_operation)] | None = Field(
        None, description=f"Address without /chat/completions, at Azure with ?api-version=...; default {OPENAI_URL}"
    )
    model: str = Field("gpt-4o-mini", min_length=1, description="Name of the chat model")
    api: Literal["auto", "chat", "responses"] = Field(
        "auto",
        description="chat: chat completions; responses: the Responses API; auto: Responses at api.openai.com, else "
        "chat completions, and the other one if the server asks for it",
    )
    client_cert: FilePath | None = Field(
        None, description="File of a client certificate that the server asks for, in PEM with its chain"
    )
    client_key: FilePath | None = Field(
        None, description="File of its private key, without a password; default: the file of the certificate"
    )
    images: bool | None = Field(
        None, description="Whether the model takes images; by default what is known of it. Others get a note instead"
    )
    options: Options = Field(
        None,
        description='Options of every call as JSON, such as {"temperature": 0.2, "reasoning_effort": "low", '
        '"extra_body": {...}, "extra_headers": {...}, "profile": {...}}; those of a question take precedence; what a '
        'profile differs in from that of the provider, such as {"renamed": {"top_p": ""}}, which leaves top_p out',
    )

    @field_validator("client_key")
    @classmethod
    def _belongs_to_certificate(cls, key: Path | None, read: ValidationInfo) -> Path | None:
        if key and read.data.get("client_cert", key) is None:
            raise ValueError("needs the file of a certificate as well")
        return key


class DashScopeSettings(EnvironmentSettings):
    """Models of DashScope."""

    model_config = SettingsConfigDict(env_prefix="DASHSCOPE_")

    api_key: Secret | None = Field(None, description="Key of Alibaba Cloud Model Studio; keys belong to one region")
    base_url: BaseUrl | None = Field(
        None, description=f"Native API of the region, ending in /api/v1; default {DASHSCOPE_URL}"
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
    options: Options = Field(
        None,
        description='Options of every call as JSON, such as {"temperature": 0.2, '
        '"extra_body": {"enable_thinking": true, "enable_search": true}}; those of a question take precedence',
    )
