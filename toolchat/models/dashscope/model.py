"""The chat model for Alibaba Cloud's native DashScope API, with the ``dashscope`` SDK over our own connections.

The SDK only encodes requests and decodes responses. Its behaviour was measured with 2.0.2; one ``try`` around it
converts every failure to our errors:

- HTTP errors are returned as values, all others are raised unchanged (ours, aiohttp's, ``json``'s, ``KeyError``).
- Within a stream every error has the status 400, so its ``code`` decides.
- The SDK drops the ``code`` of an error object in a 200 response, and the status of an error whose body is not JSON:
  both become an invalid response.
- If aiohttp loses the connection before the response starts, the SDK sends the request **again**. That cannot be
  switched off, but our session raises our errors, none of which triggers it.

DashScope rejects a tool with the name ``search``. It is sent nevertheless, and the rejection is an
:class:`UpstreamInvalid`.
"""

import asyncio
import logging
import platform
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from functools import cache, lru_cache, partial
from typing import Any, Literal

import aiohttp

from toolchat.errors import ConfigurationError, ToolchatError, UpstreamInvalid
from toolchat.http.client import OutboundHttp
from toolchat.models.base import (
    ChatModel,
    ChatOptions,
    ChatResponse,
    EmitModelEvent,
    PreparedTools,
    Progress,
    Prompt,
    TextDelta,
)
from toolchat.models.dashscope import DEFAULT_BASE_URL
from toolchat.models.dashscope.mapping import DashScopeAnswer, parts
from toolchat.models.openai.mapping import map_message, map_messages, map_options, map_tool_definition, map_tool_options
from toolchat.models.profiles import Profile, find_profile
from toolchat.models.provider_errors import ApiKey, key_text, secret_words
from toolchat.models.resilience import FINISH_TIMEOUT, KEEPALIVE

_MULTIMODAL_MODEL = re.compile(r"^qwen3\.[5-9]|-vl\b|omni", re.IGNORECASE)
_NOT_TAKEN = ("model", "frequency_penalty", "reasoning_effort")


@cache
def _sdk() -> Any:
    from dashscope.client.base_api import BaseAioApi

    # Its log lines contain URLs and bodies, and an environment variable could enable them.
    logging.getLogger("dashscope").setLevel(logging.CRITICAL + 1)
    return BaseAioApi


def warm_up() -> None:
    """Import the SDK (0.4 s) and compute its ``User-Agent`` (it forks ``uname`` once), before the first request."""
    platform.platform()
    platform.processor()
    _sdk()


class DashScopeChatModel(ChatModel):
    """A model behind DashScope's ``text-generation`` or ``multimodal-generation`` endpoint.

    Both use the SDK's common base class, which sends the request unchanged. Never use the SDK's class for multimodal
    conversations: it uploads local files whose path is the text of a user.

    Args:
        api_key: the key of one region of Alibaba Cloud Model Studio, or a function that returns it for each request.
        model: the name of the model.
        base_url: the native API of the region, ending in ``/api/v1``; by default that of mainland China. A place
            ``{workspace_id}`` in it is replaced by the workspace.
        endpoint: the generation endpoint; ``auto`` chooses it by the model's name.
        workspace: the workspace, if calls are billed per workspace.
        options: the options of every call; those of a prompt take precedence.
        extra_body: parameters of every call that no option covers, such as ``enable_thinking`` and ``enable_search``.
        extra_headers: headers of every request.
        profile: what differs from the profile of the server, see :class:`toolchat.models.profiles.Profile`.
        http: the connections to use; by default the model opens its own, which :meth:`aclose` closes.

    Raises:
        ConfigurationError: the key is missing, or the workspace for a base URL that needs one.
    """

    provider = "dashscope"

    def __init__(
        self,
        *,
        api_key: ApiKey,
        model: str = "qwen-plus",
        base_url: str | None = None,
        endpoint: Literal["auto", "text", "multimodal"] = "auto",
        workspace: str | None = None,
        options: ChatOptions | None = None,
        extra_body: Mapping[str, Any] | None = None,
        extra_headers: Mapping[str, str] | None = None,
        profile: Mapping[str, Any] | None = None,
        http: OutboundHttp | None = None,
    ) -> None:
        if not api_key:
            raise ConfigurationError("DASHSCOPE_API_KEY: must be set to use DashScope")
        if "{workspace_id}" in (base_url or "") and workspace is None:
            raise ConfigurationError("DASHSCOPE_WORKSPACE: must be set when DASHSCOPE_BASE_URL holds {workspace_id}")
        self.name = model
        self._api_key, self._base_url = api_key, base_url or DEFAULT_BASE_URL
        self._endpoint, self._workspace = endpoint, workspace
        self._options, self._extra_body, self._extra_headers = options, dict(extra_body or {}), extra_headers or {}
        self._thinks = self._extra_body.get("enable_thinking") is True
        self._definitions = PreparedTools(lambda tools: list(map(map_tool_definition, tools)))
        self._profile = lru_cache(lambda name: self._find_profile(name, profile or {}))
        self.takes_images = self._profile(model).images
        self._http, self._owns_http = http or OutboundHttp(), http is None

    @property
    def secrets(self) -> tuple[str, ...]:
        """See :attr:`ChatModel.secrets`."""
        return secret_words(self._api_key, self._extra_headers)

    async def aclose(self) -> None:
        """Close the connections, unless they were passed."""
        if self._owns_http:
            await self._http.aclose()

    async def respond(self, prompt: Prompt, emit: EmitModelEvent) -> ChatResponse:
        """Call the model; see :meth:`ChatModel.respond`.

        With thinking enabled or by default it always streams, since many models can only think in a stream
        (https://help.aliyun.com/en/model-studio/error-code).
        """
        model = prompt.options.model or self.name
        profile = self._profile(model)
        answer = DashScopeAnswer(model, stream=prompt.stream or self._thinks or profile.streams_only)

        async def watch(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
            response = await send(request)
            if response.content_type == "text/event-stream":
                response.content = _Lines(response.content, answer, emit)  # type: ignore[assignment]
            return response

        try:
            async with self._http.session("DashScope", self._base_url, watch) as session:
                request = self._request(model, prompt, profile, stream=answer.stream)
                sent = await _sdk().call(**request, stream=answer.stream, session=session)
                await _read(sent, answer, prompt, emit)
            if (rest := answer.close()) and prompt.stream:
                await emit(TextDelta(rest))
        except ToolchatError:
            raise
        except aiohttp.ContentTypeError:
            # Not retryable: a wrong address answers every request with the same page.
            raise UpstreamInvalid("DashScope answered with another content type; check DASHSCOPE_BASE_URL") from None
        except Exception as error:  # the SDK raises every kind of exception
            raise UpstreamInvalid("DashScope sent something that is not an answer", retryable=True) from error
        return profile.signed(answer.response())

    def _find_profile(self, model: str, own: Mapping[str, Any]) -> Profile:
        by_name = _MULTIMODAL_MODEL.search(model) is not None
        images = by_name if self._endpoint == "auto" else self._endpoint == "multimodal"
        return find_profile(self._base_url, model, {**own, "images": images})

    def _request(self, model: str, prompt: Prompt, profile: Profile, *, stream: bool) -> dict[str, Any]:
        messages = map_messages(prompt.messages, prompt.tools, profile, partial(map_message, parts=parts))
        return {
            "model": model,
            "input": {"messages": messages},
            "task_group": "aigc",
            "task": "multimodal-generation" if profile.images else "text-generation",
            "function": "generation",
            "api_key": key_text(self._api_key),
            "base_address": self._base_url,
            "workspace": self._workspace,
            "headers": {"user-agent": "toolchat", **self._extra_headers},
            **profile.request(self._parameters(prompt, stream=stream)),
        }

    def _parameters(self, prompt: Prompt, *, stream: bool) -> dict[str, Any]:
        options = self._options.updated(prompt.options) if self._options else prompt.options
        mapped = {name: value for name, value in map_options(options).items() if name not in _NOT_TAKEN}
        if prompt.tools:
            mapped |= {"tools": self._definitions.of(prompt.tools)} | map_tool_options(options, prompt.tools)
        if mapped.get("tool_choice") in ("auto", "required"):
            del mapped["tool_choice"]  # it takes neither: https://help.aliyun.com/zh/model-studio/qwen-api-reference
        optional = {"incremental_output": True if stream else None, **mapped, **self._extra_body}
        return {"result_format": "message"} | {key: value for key, value in optional.items() if value is not None}


async def _read(sent: Any, answer: DashScopeAnswer, prompt: Prompt, emit: EmitModelEvent) -> None:
    if not answer.stream:
        answer.add(sent)
        return
    async with aclosing(sent):
        async for reply in sent:
            text = answer.add(reply)
            is_shown = bool(text) and prompt.stream
            if answer.new_reasoning or not is_shown:
                await emit(Progress(answer.new_reasoning))
            if is_shown:
                await emit(TextDelta(text))


class _Lines:
    """The lines of a stream for the SDK, which drops comments in silence and waits for the end of the connection."""

    def __init__(self, content: aiohttp.StreamReader, answer: DashScopeAnswer, emit: EmitModelEvent) -> None:
        self._content, self._answer, self._emit = content, answer, emit

    def __getattr__(self, name: str) -> Any:
        return getattr(self._content, name)

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        with suppress(TimeoutError):
            while line := await asyncio.wait_for(
                self._content.readline(), FINISH_TIMEOUT if self._answer.finished else None
            ):
                if not line.startswith(b"data:"):
                    await self._emit(KEEPALIVE)
                yield line
