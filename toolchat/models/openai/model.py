"""The chat model for OpenAI-compatible servers: OpenAI, DeepSeek, MiniMax, Ollama, vLLM, DashScope and others."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any, Literal
from urllib.parse import urlsplit

from multidict import CIMultiDict, CIMultiDictProxy
from pydantic_core import from_json, to_json

from toolchat.errors import NotConfigured, ToolchatError, UpstreamError, UpstreamInvalid
from toolchat.http.client import OutboundHttp, Response
from toolchat.http.pool import MAX_BODY_BYTES, read_body
from toolchat.models.base import ChatModel, ChatOptions, ChatResponse, EmitModelEvent, Progress, Prompt, TextDelta
from toolchat.models.leaked_calls import respond_reading_calls
from toolchat.models.openai import DEFAULT_BASE_URL
from toolchat.models.openai.mapping import ChatCompletionsWire
from toolchat.models.openai.responses_wire import ResponsesWire
from toolchat.models.openai.sse import ServerSentEvent, SseDecoder
from toolchat.models.openai.turn import OpenAITurn, ProviderFault, fault_in
from toolchat.models.profiles import Profile, find_profile, profile_named
from toolchat.models.provider_errors import ApiKey, key_text, provider_error, retry_after_from, secret_words
from toolchat.models.refusals import adapted
from toolchat.models.resilience import FINISH_TIMEOUT, KEEPALIVE

_UPSTREAM = "the chat provider"
_log = logging.getLogger(__name__)
_OPENAI = "api.openai.com"
_MAX_STREAM_BYTES = 32 * 1024 * 1024
_SLICE_BYTES = 16 * 1024
"""Bytes of a stream that are decoded at a time, and that a slow client may leave undelivered."""
_MAX_ERROR_BYTES = 64 * 1024
_END_OF_BODY_TIMEOUT = 0.1
_UNSURE_TIMEOUT = 30.0
"""Seconds to wait after a finish reason that came with content."""
_JSON_TYPES = ("application/json", "text/plain", "application/octet-stream")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_STREAM_STARTS = (b"data:", b"event:", b"id:", b"retry:", b":")
_NO_EVENT = (b"message", b"")
_MAX_LEARNED = 256
_MAX_CHANGES = 8
"""How often one question is asked in another way, since a refusal may name one field only."""

Wire = Literal["auto", "chat", "responses"]
_AnyWire = ChatCompletionsWire | ResponsesWire


class OpenAICompatibleChatModel(ChatModel):
    """A model behind ``POST {base_url}/chat/completions`` or ``POST {base_url}/responses``.

    ::

        async with OpenAICompatibleChatModel(base_url="http://localhost:11434/v1", model="qwen3") as model:
            client = ChatClient(model)

    Args:
        model: the name of the model.
        api_key: the key of the server, or a function that returns it for each request; local servers usually need none.
        base_url: the address of the server without ``/chat/completions``; by default OpenAI's. It may end in Azure's
            ``?api-version=``: then the key is sent as ``api-key``.
        api: ``chat``, ``responses``, or ``auto``: Responses at OpenAI's own address, else chat completions, and for a
            model the other one once the server has asked for it.
        options: the options of every call; those of a prompt take precedence.
        extra_body: fields of every request that no option covers; they take precedence.
        extra_headers: headers of every request.
        profile: what differs from the profile of the server, see :class:`toolchat.models.profiles.Profile`.
        tls: shows a client's certificate; see :func:`toolchat.http.environment.tls_context`.
        http: the connections to use; by default the model opens its own, which :meth:`aclose` closes.
    """

    provider = "openai_compatible"

    def __init__(
        self,
        *,
        model: str = "gpt-4o-mini",
        api_key: ApiKey | None = None,
        base_url: str | None = None,
        api: Wire = "auto",
        options: ChatOptions | None = None,
        extra_body: Mapping[str, Any] | None = None,
        extra_headers: Mapping[str, str] | None = None,
        profile: Mapping[str, Any] | None = None,
        tls: ssl.SSLContext | None = None,
        http: OutboundHttp | None = None,
    ) -> None:
        self.name = model
        self._tls = tls
        # Azure's classic deployments have a version in the query, and take keys in a header of their own:
        # https://learn.microsoft.com/azure/foundry/openai/api-version-lifecycle
        self._base_url, question_mark, version = (base_url or DEFAULT_BASE_URL).rstrip("/").partition("?")
        self._base_url, self._query = self._base_url.rstrip("/"), question_mark + version
        self._options = options
        self._extra_body = dict(extra_body or {})
        wires: tuple[_AnyWire, ...] = (ChatCompletionsWire(), ResponsesWire())
        if api == "responses" or (api == "auto" and urlsplit(self._base_url).hostname == _OPENAI):
            wires = wires[::-1]
        self._wires: dict[str, _AnyWire] = {each.path: each for each in (wires if api == "auto" else wires[:1])}
        """By their paths, the preferred one first."""
        self._known_profile = lru_cache(lambda name: self._find_profile(name, profile or {}))
        self.takes_images = self._known_profile(model).images
        self._learned: dict[tuple[str, frozenset[str]], Profile] = {}
        """The profiles of models that have refused a request and then answered another one, for requests like it."""
        self._headers = {"Content-Type": "application/json", "Accept": "application/json", **(extra_headers or {})}
        self._key, self._key_header = api_key or "", "api-key" if version else "Authorization"
        self._headers_with = lru_cache(2)(self._write_headers)
        self._extra_headers = extra_headers or {}
        self._http, self._owns_http = http or OutboundHttp(), http is None

    @property
    def adapted(self) -> dict[str, dict[str, Any]]:
        """By model, in what its profile has changed after refusals."""
        found: dict[str, dict[str, Any]] = {}
        for (model, _), each in self._learned.items():
            found.setdefault(model, {}).update(_difference(each, self._known_profile(model)))
        return found

    @property
    def secrets(self) -> tuple[str, ...]:
        """See :attr:`ChatModel.secrets`."""
        return secret_words(self._key, self._extra_headers)

    def _write_headers(self, key: str, stream: bool) -> CIMultiDictProxy[str]:
        own = {self._key_header: key if self._key_header == "api-key" else f"Bearer {key}"} if key else {}
        accept = {"Accept": "text/event-stream"} if stream else {}
        # Of the class that aiohttp would make of them for each request.
        return CIMultiDictProxy(CIMultiDict({**own, **self._headers, **accept}))

    async def aclose(self) -> None:
        """Close the connections, unless they were passed."""
        if self._owns_http:
            await self._http.aclose()

    def respond(self, prompt: Prompt, emit: EmitModelEvent) -> Coroutine[Any, Any, ChatResponse]:
        """Call the model; see :meth:`ChatModel.respond`.

        The response decides how to read it, by its content type and its first bytes: some servers stream without being
        asked, some do not stream if asked, and some send a stream as another type, or without one.
        """
        if self._known_profile(prompt.options.model or self.name).reads_text_calls:
            return respond_reading_calls(self._respond, prompt, emit)
        return self._respond(prompt, emit)

    async def _respond(self, prompt: Prompt, emit: EmitModelEvent) -> ChatResponse:
        model = prompt.options.model or self.name
        tried = [self._profile(model, prompt)]
        refused: ToolchatError | None = None
        sent: list[bytes] = []
        while True:
            profile = tried[-1]
            wire, asked = self._wire(profile), prompt.stream or profile.streams_only
            turn = wire.turn(model)
            headers = self._headers_with(key_text(self._key), asked)
            data = self._body(wire, prompt if asked is prompt.stream else replace(prompt, stream=asked), profile)
            if refused is not None and data == sent:
                raise refused  # what it names is a field of ``extra_body``
            sent, url = data, self._base_url + wire.path + self._query
            async with self._http.request(
                "POST", url, upstream=_UPSTREAM, headers=headers, data=data, tls=self._tls
            ) as response:
                if response.status >= 400:
                    fault = await _fault_of(response)
                    error = _as_error(response, fault, profile)
                    changed = self._changed(profile, response.status, fault.message)
                    if changed and changed not in tried and len(tried) <= _MAX_CHANGES:
                        tried.append(changed)
                        refused = refused or error
                        continue
                    raise _that_counts(error, refused)
                is_stream, begun = await _begin(response)
                if is_stream:
                    await self._read_stream(_EventReader(response, begun, profile), turn, prompt, emit)
                elif (text := turn.add(await _whole_body(response, begun, profile, emit))) and prompt.stream:
                    await emit(TextDelta(text))
            if (rest := turn.close()) and prompt.stream:
                await emit(TextDelta(rest))
            answer = turn.response()
            if refused is not None:
                self._learn(model, prompt, profile)
            return profile.signed(answer)

    def _find_profile(self, model: str, own: Mapping[str, Any]) -> Profile:
        found = find_profile(self._base_url, model, own)
        return found.changed(api=self._wire(found).path)

    def _profile(self, model: str, prompt: Prompt) -> Profile:
        found = self._learned.get((model, self._shape(prompt))) if self._learned else None
        return found or self._known_profile(model)

    def _options_of(self, prompt: Prompt) -> ChatOptions:
        return self._options.updated(prompt.options) if self._options else prompt.options

    def _shape(self, prompt: Prompt) -> frozenset[str]:
        """What a request has: one client's options must not change the requests of others."""
        options = self._options_of(prompt)
        optional = [each.name for each in fields(options) if getattr(options, each.name) != each.default]
        return frozenset([*optional, *(["stream"] if prompt.stream else []), *(["tools"] if prompt.tools else [])])

    def _wire(self, profile: Profile) -> _AnyWire:
        return self._wires.get(profile.api) or next(iter(self._wires.values()))

    def _changed(self, profile: Profile, status: int, refusal: str) -> Profile | None:
        """How to ask instead: as the provider's words say, or by the first API if the other one is not there.

        OpenAI's newest models refuse function tools with reasoning on chat completions, and some models have only one
        of the two.
        """
        changed = adapted(profile, status, refusal)
        if changed is None and status in (404, 405):
            changed = profile.changed(api=next(iter(self._wires)))
        return changed if changed and changed.api in self._wires else None

    def _learn(self, model: str, prompt: Prompt, profile: Profile) -> None:
        """Ask a model in another way from now on: it has answered, and refused the way so far."""
        before = self._profile(model, prompt)
        if before == profile:
            return
        if len(self._learned) >= _MAX_LEARNED:
            self._learned.clear()
        self._learned[model, self._shape(prompt)] = profile
        changes = _difference(profile, before)
        _log.warning("the model is asked in another way from now on", extra={"model": model, "changes": changes})

    async def _read_stream(self, reader: _EventReader, turn: OpenAITurn, prompt: Prompt, emit: EmitModelEvent) -> None:
        """Read the events of the stream up to ``[DONE]``, the last event of a response, or the end.

        A lost connection, or silence after the finish reason, ends it as well: the answer may be complete.
        """
        response, stream = reader.response, prompt.stream
        while not (turn.ended or reader.ended):
            try:
                reading = reader.next_piece()
                # Some servers put a finish reason on each piece: https://github.com/BerriAI/litellm/issues/2195
                patience = FINISH_TIMEOUT if turn.is_settled else _UNSURE_TIMEOUT if turn.finished else None
                piece = await (asyncio.wait_for(reading, patience) if patience else reading)
            except (UpstreamError, TimeoutError):
                break  # the incomplete last event is dropped, since it cannot be trusted
            for kind, content in reader.decode(piece) or [_NO_EVENT]:
                data, is_error = content.strip(), kind == b"error"
                if data == b"[DONE]":
                    turn.ended = turn.finished = True
                    break
                if not stream or not (data or is_error):
                    await emit(KEEPALIVE)
                if not data and not is_error:
                    continue
                text = turn.add(_read_chunk(response, data, reader.provider, is_error=is_error))
                if stream and (turn.new_reasoning or not text):
                    await emit(Progress(turn.new_reasoning))
                if stream and text:
                    await emit(TextDelta(text))
        await _end_stream(response, turn)

    def _body(self, wire: _AnyWire, prompt: Prompt, profile: Profile) -> list[bytes]:
        """The JSON of a request in pieces, those that are stored among them: joining them would copy all tools."""
        options = self._options_of(prompt)
        body = wire.body(options.model or self.name, prompt, options, profile)
        data = to_json(profile.request(body) | self._extra_body)
        pieces = [data[:-1]]
        for name, value in wire.written(prompt, profile).items():
            pieces += (b',"%b":' % name, value)
        return [*pieces, b"}"]


def _that_counts(error: ToolchatError, first: ToolchatError | None) -> ToolchatError:
    """The refusal of the first way to ask, caused by that of the last one, unless that is no refusal of the request."""
    if first is None or error.retryable or not isinstance(error, UpstreamInvalid | NotConfigured):
        return error
    first.__cause__ = error
    return first


def _difference(profile: Profile, other: Profile) -> dict[str, Any]:
    return {name: value for name, value in profile if value != getattr(other, name)}


async def _begin(response: Response) -> tuple[bool, bytes]:
    """Whether the response is a stream or one JSON body, and what was read to tell; raises an error for others."""
    media_type, begun = response.content_type, b""
    if media_type == "text/event-stream":
        return True, begun
    if media_type in _JSON_TYPES or media_type.endswith("+json"):
        begun = (await response.readany()).removeprefix(_BYTE_ORDER_MARK)
        starts = (_BYTE_ORDER_MARK, *_STREAM_STARTS) if begun[:1] != b"{" else ()  # the usual case
        while any(start.startswith(begun) for start in starts) and (piece := await response.readany()):
            begun = (begun + piece).removeprefix(_BYTE_ORDER_MARK)
        return begun.startswith(_STREAM_STARTS), begun
    # Not retryable: a wrong address answers every request with the same page.
    detail = "answered with a content type that is not a chat completion's; check OPENAI_BASE_URL"
    error = UpstreamInvalid(f"{_UPSTREAM} {detail}")
    error.log_fields["upstream_status"] = response.status
    raise error


async def _whole_body(response: Response, begun: bytes, provider: Profile, emit: EmitModelEvent) -> dict[str, Any]:
    async def next_piece() -> bytes:
        await emit(KEEPALIVE)  # DeepSeek sends empty lines: https://api-docs.deepseek.com/quick_start/rate_limit
        return await response.readany()

    if not response.at_end:
        begun += await read_body(next_piece, _UPSTREAM, MAX_BODY_BYTES)
    return _read_chunk(response, begun, provider)


class _EventReader:
    """Reads the server-sent events of a response in slices of limited size."""

    def __init__(self, response: Response, begun: bytes, provider: Profile) -> None:
        self.response, self.provider = response, provider
        self._decoder = SseDecoder(_UPSTREAM)
        self._rest = begun
        self._size = 0
        self.ended = False
        """Whether the end of the stream was decoded."""

    def next_piece(self) -> Coroutine[Any, Any, bytes]:
        """The next bytes to decode, empty at the end of the stream; raises what :meth:`Response.readany` raises."""
        # The pause between slices: a flood of tiny lines must not block the event loop.
        return asyncio.sleep(0, self._rest) if self._rest else self.response.readany()

    def decode(self, piece: bytes) -> list[ServerSentEvent]:
        """Decode the piece that was read, or its first slice, and return the events that it completes."""
        if not self._rest:
            self._size += len(piece)
            if self._size > _MAX_STREAM_BYTES:
                raise UpstreamInvalid(f"{_UPSTREAM} sent more than {_MAX_STREAM_BYTES} bytes")
        if not piece:
            self.ended = True
            return self._decoder.finish()
        if len(piece) > _SLICE_BYTES or self._rest:
            piece, self._rest = piece[:_SLICE_BYTES], piece[_SLICE_BYTES:]
        return self._decoder.feed(piece)


async def _end_stream(response: Response, turn: OpenAITurn) -> None:
    """Read the body to its end, so that the connection can be reused; not all servers end it in time."""
    if turn.ended and not response.at_end:
        with suppress(TimeoutError, UpstreamError):
            async with asyncio.timeout(_END_OF_BODY_TIMEOUT):
                while await response.readany():
                    pass
    # Not every server sends [DONE], but a stream without a finish reason was cut short.
    if not turn.finished:
        raise UpstreamInvalid(f"{_UPSTREAM}'s answer was cut short", retryable=True)


def _read_chunk(response: Response, data: bytes, provider: Profile, *, is_error: bool = False) -> dict[str, Any]:
    try:
        chunk = from_json(data, allow_inf_nan=False)
    except ValueError:
        chunk = None
    fault = fault_in(chunk) or (ProviderFault() if is_error else None)
    if fault:
        raise _as_error(response, fault, provider)
    if not isinstance(chunk, dict):
        raise UpstreamInvalid(f"{_UPSTREAM} sent something that is not a JSON object", retryable=True)
    return chunk


async def _fault_of(response: Response) -> ProviderFault:
    """Read the error of a 4xx or 5xx response, whose body may be anything."""
    body = b""
    try:
        body = await response.read(_MAX_ERROR_BYTES)
        return fault_in(from_json(body), refused=True) or ProviderFault()
    except (ValueError, UpstreamError):
        is_text = response.content_type == "text/plain" and not body.lstrip().startswith(b"<")
        return ProviderFault(message=body.decode("utf-8", "replace")) if is_text else ProviderFault()


def _as_error(response: Response, fault: ProviderFault, provider: Profile) -> ToolchatError:
    wait = retry_after_from(response.headers)
    error = provider_error(
        status=response.status if response.status >= 400 else fault.status or response.status,
        code=fault.code,
        message=fault.message,
        retry_after=retry_after_from({"retry-after": fault.retry_after}) if wait is None else wait,
        variables="OPENAI",
        profile=profile_named(fault.profile) if fault.profile else provider,
    )
    error.provider_param = fault.param
    if response.proxy:
        error.log_fields["cause"] = f"status {response.status} came {response.proxy}, which may have sent it itself"
    return error
