"""Alibaba Cloud's DashScope in its native form, through the ``dashscope`` SDK and our own connections.

The SDK writes and reads what the wire carries; it is trusted with nothing else. What it returns, raises or loses was
measured with 2.0.2, and one ``try`` around it turns all of that into our errors:

- Errors of HTTP are returned as values, everything else is raised as it came (ours, ``json``, ``KeyError``).
- Within a stream an error has the status 400 whatever it is, so ``code`` decides.
- An error object in a 200 answer arrives without its ``code``, and an error body that is not the JSON that it
  claims to be without its status: both can only be called unusable.
- When an aiohttp session loses the connection before the answer begins, the SDK sends the request **once more**; that
  cannot be switched off, but no error of ours sets it off.

DashScope refuses a tool that is named ``search``; it is sent under its name all the same, and the refusal
comes back as :class:`UpstreamInvalid`.
"""

import logging
import platform
import re
from contextlib import aclosing
from functools import cache, lru_cache
from typing import Any, Literal

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from app.server.deferred_models import models_built_late
from app.settings.base import BaseUrl, EnvironmentSettings, Secret
from toolchat.errors import ConfigurationError, ToolchatError, UpstreamInvalid
from toolchat.http.client import OutboundHttp
from toolchat.models.base import ChatModel, ChatResponse, EmitModelEvent, Progress, Prompt, TextDelta
from toolchat.models.dashscope.aiohttp_adapter import ClientSession
from toolchat.models.dashscope.mapping import DashScopeAnswer, map_messages, map_tool_definition, map_tool_options

__all__ = ["DashScopeChatModel", "DashScopeSettings", "warm_up"]

_DEFAULT_BASE_URL = "https://dashscope.aliyuncs.com/api/v1"
_MULTIMODAL_MODEL = re.compile(r"^qwen3\.[5-9]|-vl\b|omni", re.IGNORECASE)


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


@cache
def _sdk() -> Any:
    with models_built_late():  # it declares hundreds that belong to its other services
        from dashscope.client.base_api import BaseAioApi

    # Its log lines carry URLs and bodies, and its environment switch would bring them back.
    logging.getLogger("dashscope").setLevel(logging.CRITICAL + 1)
    return BaseAioApi


def warm_up() -> None:
    """Import the SDK (0.4 s) and pay for its ``User-Agent`` (it forks ``uname`` once); for a thread at start."""
    platform.platform()
    platform.processor()
    _sdk()


@lru_cache(maxsize=64)
def _is_multimodal(model: str) -> bool:
    return _MULTIMODAL_MODEL.search(model) is not None


class DashScopeChatModel(ChatModel):
    """A model behind DashScope's ``text-generation`` or ``multimodal-generation`` endpoint.

    Both are called by the SDK's common door, which sends what it is given. The SDK's own class for
    multimodal conversations must never be used: it uploads local files whose path is a user's text.

    Raises:
        ConfigurationError: there is no key, or no workspace for a base URL that needs one.
    """

    provider = "dashscope"

    def __init__(self, settings: DashScopeSettings, http: OutboundHttp) -> None:
        if settings.api_key is None:
            raise ConfigurationError("DASHSCOPE_API_KEY: must be set to use DashScope")
        if "{workspace_id}" in (settings.base_url or "") and settings.workspace is None:
            raise ConfigurationError("DASHSCOPE_WORKSPACE: must be set when DASHSCOPE_BASE_URL holds {workspace_id}")
        self.name = settings.model
        self._api_key = settings.api_key
        self._settings = settings
        self._session = ClientSession(http)

    async def respond(self, prompt: Prompt, emit: EmitModelEvent) -> ChatResponse:
        """Run one turn; see :meth:`ChatModel.respond`.

        With thinking switched on the wire is a stream in any case, since many models think only there
        (https://help.aliyun.com/en/model-studio/error-code).

        Raises:
            UpstreamError: one of its kinds; also :class:`ContextTooLong`, :class:`ContentFiltered` and
                :class:`NotConfigured` where the provider does not know the model.
        """
        answer = DashScopeAnswer(prompt.stream or self._settings.enable_thinking is True)
        try:
            sent = await _sdk().call(**self._request(prompt), stream=answer.stream, session=self._session)
            if not answer.stream:
                answer.add(sent)
            else:
                async with aclosing(sent):
                    async for reply in sent:
                        text = answer.add(reply)
                        is_shown = bool(text) and prompt.stream
                        if answer.reasoned or not is_shown:
                            await emit(Progress(answer.reasoned))
                        if is_shown:
                            await emit(TextDelta(text))
            if (rest := answer.close()) and prompt.stream:
                await emit(TextDelta(rest))
        except ToolchatError:
            raise
        except Exception as error:  # the SDK raises whatever happened to it
            raise UpstreamInvalid("DashScope sent something that is not an answer", retryable=True) from error
        return ChatResponse(answer.message(), answer.reason(), answer.usage, self._model(prompt))

    def _request(self, prompt: Prompt) -> dict[str, Any]:
        model = self._model(prompt)
        multimodal = self._is_multimodal(model)
        return {
            "model": model,
            "input": {"messages": map_messages(prompt.messages, multimodal=multimodal)},
            "task_group": "aigc",
            "task": "multimodal-generation" if multimodal else "text-generation",
            "function": "generation",
            "api_key": self._api_key.get_secret_value(),
            "base_address": self._settings.base_url or _DEFAULT_BASE_URL,
            "workspace": self._settings.workspace,
            "headers": {"user-agent": "toolchat"},
            **self._parameters(prompt),
        }

    def _parameters(self, prompt: Prompt) -> dict[str, Any]:
        thinking = self._settings.enable_thinking
        optional = {
            "incremental_output": True if prompt.stream or thinking else None,
            "enable_thinking": thinking,
            "temperature": prompt.options.temperature,
            "top_p": prompt.options.top_p,
            "max_tokens": prompt.options.max_tokens,
            "stop": prompt.options.stop,
            "seed": prompt.options.seed,
            "presence_penalty": prompt.options.presence_penalty,
            "response_format": prompt.options.response_format,
            "tools": [map_tool_definition(tool) for tool in prompt.tools] or None,
            **map_tool_options(prompt),
        }
        return {"result_format": "message"} | {key: value for key, value in optional.items() if value is not None}

    def _model(self, prompt: Prompt) -> str:
        return prompt.options.model or self._settings.model

    def _is_multimodal(self, model: str) -> bool:
        if self._settings.endpoint == "auto":
            return _is_multimodal(model)
        return self._settings.endpoint == "multimodal"
