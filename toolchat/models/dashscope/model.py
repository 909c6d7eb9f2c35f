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

from toolchat.errors import ConfigurationError, ToolchatError, UpstreamInvalid
from toolchat.http.client import OutboundHttp
from toolchat.models.base import ChatModel, ChatResponse, EmitModelEvent, Progress, Prompt, TextDelta
from toolchat.models.dashscope.aiohttp_adapter import ClientSession
from toolchat.models.dashscope.mapping import DashScopeAnswer, map_messages, map_tool_definition, map_tool_options

__all__ = ["DashScopeChatModel", "warm_up"]

_DEFAULT_BASE_URL = "https://dashscope.aliyuncs.com/api/v1"
_MULTIMODAL_MODEL = re.compile(r"^qwen3\.[5-9]|-vl\b|omni", re.IGNORECASE)


@cache
def _sdk() -> Any:
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

    Args:
        api_key: the key of Alibaba Cloud Model Studio; a key belongs to one region.
        model: the name of the model.
        base_url: the native API of the region, ending in ``/api/v1``; by default that of mainland China. A place
            ``{workspace_id}`` in it is replaced by the workspace.
        endpoint: the generation endpoint; ``auto`` chooses it by the model's name.
        workspace: the workspace, if calls are billed per workspace.
        enable_thinking: whether the model thinks first; ``None`` leaves it to the model.
        http: the connections to use; by default the model opens its own, which :meth:`aclose` closes.

    Raises:
        ConfigurationError: the key is missing, or the workspace for a base URL that needs one.
    """

    provider = "dashscope"

    def __init__(
        self,
        *,
        api_key: str,
        model: str = "qwen-plus",
        base_url: str | None = None,
        endpoint: Literal["auto", "text", "multimodal"] = "auto",
        workspace: str | None = None,
        enable_thinking: bool | None = None,
        http: OutboundHttp | None = None,
    ) -> None:
        if not api_key:
            raise ConfigurationError("DASHSCOPE_API_KEY: must be set to use DashScope")
        if "{workspace_id}" in (base_url or "") and workspace is None:
            raise ConfigurationError("DASHSCOPE_WORKSPACE: must be set when DASHSCOPE_BASE_URL holds {workspace_id}")
        self.name = model
        self._api_key, self._base_url = api_key, base_url or _DEFAULT_BASE_URL
        self._endpoint, self._workspace, self._enable_thinking = endpoint, workspace, enable_thinking
        self._http, self._owns_http = http or OutboundHttp(), http is None
        self._session = ClientSession(self._http)

    async def aclose(self) -> None:
        """Close the connections, unless they were passed."""
        if self._owns_http:
            await self._http.aclose()

    async def respond(self, prompt: Prompt, emit: EmitModelEvent) -> ChatResponse:
        """Run one turn; see :meth:`ChatModel.respond`.

        With thinking switched on the wire is a stream in any case, since many models think only there
        (https://help.aliyun.com/en/model-studio/error-code).

        Raises:
            UpstreamError: one of its kinds; also :class:`ContextTooLong`, :class:`ContentFiltered` and
                :class:`NotConfigured` where the provider does not know the model.
        """
        answer = DashScopeAnswer(prompt.stream or self._enable_thinking is True)
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
            "api_key": self._api_key,
            "base_address": self._base_url,
            "workspace": self._workspace,
            "headers": {"user-agent": "toolchat"},
            **self._parameters(prompt),
        }

    def _parameters(self, prompt: Prompt) -> dict[str, Any]:
        thinking = self._enable_thinking
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
        return prompt.options.model or self.name

    def _is_multimodal(self, model: str) -> bool:
        if self._endpoint == "auto":
            return _is_multimodal(model)
        return self._endpoint == "multimodal"
