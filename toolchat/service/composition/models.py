"""The chat model and the tool loop that the settings describe."""

from collections.abc import AsyncGenerator, Callable, Mapping, Set
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import from_json

from toolchat.chat.advisors.tool_loop import ToolCallingAdvisor
from toolchat.chat.client import ChatClient
from toolchat.errors import ConfigurationError
from toolchat.http.breakers import Breakers, CircuitBreaker
from toolchat.http.client import OutboundHttp
from toolchat.http.environment import tls_context
from toolchat.models.base import ChatModel, ChatOptions, full_name
from toolchat.models.dashscope import DEFAULT_BASE_URL as DASHSCOPE_URL
from toolchat.models.fallbacks import FallbackChatModel
from toolchat.models.openai import DEFAULT_BASE_URL as OPENAI_URL
from toolchat.models.resilience import ResilientChatModel, RetryPolicy
from toolchat.service.settings.base import EnvironmentSettings, describe_faults, read_settings
from toolchat.service.settings.providers import DashScopeSettings, ModelOptions, OpenAISettings
from toolchat.service.settings.service_settings import Settings, Tuning
from toolchat.tool_calling.exception_processor import ToolExecutionExceptionProcessor, check_processor
from toolchat.tool_calling.limits import ToolCallLimits
from toolchat.tool_calling.manager import ToolCallingManager

_SettingsT = TypeVar("_SettingsT", bound=EnvironmentSettings)
PROVIDER_VARIABLES = "DASHSCOPE_API_KEY, OPENAI_API_KEY or OPENAI_BASE_URL"
"""The variables of which one is needed for a model other than the offline one."""
_MAX_CONNECTIONS = 2000
"""Connections to all upstreams together: one for each of as many questions as ``MAX_QUESTIONS`` allows by default."""
_DEFAULT = Tuning()
_NO_VARIABLE = "CHAT_FALLBACKS="
"""A prefix that no variable can have: a fallback must not inherit the primary model's settings, such as its key."""


@dataclass(frozen=True, slots=True)
class ChosenModel:
    """A provider with complete settings."""

    provider: str
    create: Callable[[OutboundHttp], ChatModel]
    urls: tuple[str, ...] = ("",)
    """The address of the model's server, and those of its fallbacks' servers; empty without one."""
    is_last_resort: bool = False
    """Whether it is the offline model because ``auto`` found no provider's key, instead of on purpose."""
    warnings: tuple[str, ...] = ()


def read_fallbacks(settings: Settings) -> list[ChosenModel]:
    """Read ``CHAT_FALLBACKS``: a JSON list of objects with ``provider`` and the fields of that provider's settings.

    Raises:
        ConfigurationError: it is not such a list, or an entry is invalid; the message shows no values.
    """
    if settings.chat_fallbacks is None:
        return []
    try:
        entries = from_json(settings.chat_fallbacks.get_secret_value())
    except ValueError:
        entries = None
    if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
        raise ConfigurationError("CHAT_FALLBACKS: must be a JSON list of objects")
    return [_read(number, each) for number, each in enumerate(entries, 1)]


def _read(number: int, entry: Mapping[str, Any]) -> ChosenModel:
    fields = {name: value for name, value in entry.items() if name != "provider"}
    provider = entry.get("provider")
    try:
        if provider == "openai_compatible":
            settings = _settings(OpenAISettings, fields, {"api_key", "base_url"})
            return openai_compatible(settings, f"CHAT_FALLBACKS: model {number}: client_cert")
        if provider == "dashscope":
            return dashscope(_settings(DashScopeSettings, fields, {"api_key"}))
    except ValueError as error:
        raise ConfigurationError(f"CHAT_FALLBACKS: model {number}: {error}") from None
    raise ConfigurationError(f"CHAT_FALLBACKS: model {number}: provider: must be openai_compatible or dashscope")


def _settings(kind: type[_SettingsT], fields: Mapping[str, Any], needed: Set[str]) -> _SettingsT:
    if unknown := fields.keys() - kind.model_fields.keys():
        raise ValueError(f"{min(unknown)[:64]!r} is not one of {', '.join(kind.model_fields)}")
    if not fields.get("model"):
        raise ValueError("model is missing")
    if needed.isdisjoint(fields):
        raise ValueError(f"{' or '.join(sorted(needed))} is missing")
    try:
        return kind(_env_prefix=_NO_VARIABLE, **fields)
    except ValidationError as error:
        fault = describe_faults(error)[0]
        raise ValueError(f"{fault.place}: {fault.message}") from None


def dashscope(settings: DashScopeSettings) -> ChosenModel:
    """DashScope's own API."""

    def create(http: OutboundHttp) -> ChatModel:
        from toolchat.models.dashscope.model import DashScopeChatModel, warm_up

        warm_up()
        api_key = settings.api_key.get_secret_value if settings.api_key else ""
        others = settings.model_dump(exclude={"api_key", "options"})
        return DashScopeChatModel(api_key=api_key, http=http, **others, **_options(settings.options))

    return ChosenModel("dashscope", create, (settings.base_url or DASHSCOPE_URL,))


def openai_compatible(settings: OpenAISettings, certificate: str = "OPENAI_CLIENT_CERT") -> ChosenModel:
    """Any server with OpenAI's chat completions API; an error calls the setting of its certificate by that name."""
    key = str(settings.client_key) if settings.client_key else None
    tls = tls_context(str(settings.client_cert), key, name=certificate) if settings.client_cert else None

    def create(http: OutboundHttp) -> ChatModel:
        from toolchat.models.openai.model import OpenAICompatibleChatModel

        api_key = settings.api_key.get_secret_value if settings.api_key else None
        others = settings.model_dump(exclude={"api_key", "options", "client_cert", "client_key", "images"})
        others |= _options(settings.options)
        if settings.images is not None:
            others["profile"] = {**others.get("profile", {}), "images": settings.images}
        return OpenAICompatibleChatModel(api_key=api_key, http=http, tls=tls, **others)

    return ChosenModel("openai_compatible", create, (settings.base_url or OPENAI_URL,))


def _options(options: ModelOptions | None) -> dict[str, Any]:
    """The arguments of a model for its options."""
    if options is None:
        return {}
    headers = {name: value.get_secret_value() for name, value in options.extra_headers.items()}
    chat_options = ChatOptions(**options.model_dump(exclude={"extra_body", "extra_headers", "profile"}))
    profile = options.profile.model_dump(exclude_unset=True) if options.profile else {}
    return {"options": chat_options, "extra_body": options.extra_body, "extra_headers": headers, "profile": profile}


def choose_chat_model(settings: Settings, tuning: Tuning = _DEFAULT) -> ChosenModel:
    """Choose the primary model and its fallbacks; only the code of their providers is imported.

    Raises:
        ConfigurationError: the settings of one are invalid, or the named provider lacks its key.
    """
    first, others = _first(settings), read_fallbacks(settings)
    if not others:
        return replace(first, create=lambda http: _resilient(first.create(http), settings, tuning))
    if first.provider == "offline" and settings.chat_provider != "offline":
        raise ConfigurationError(f"CHAT_FALLBACKS: requires a primary model: set {PROVIDER_VARIABLES}")

    def create(http: OutboundHttp) -> ChatModel:
        *before, last = (each.create(http) for each in (first, *others))
        # All but the last are tried once: the next model is the better second try.
        tried = [_resilient(each, settings, tuning, max_attempts=1) for each in before]
        return FallbackChatModel([*tried, _resilient(last, settings, tuning)])

    return replace(first, create=create, urls=tuple(url for each in (first, *others) for url in each.urls))


def _first(settings: Settings) -> ChosenModel:
    named = settings.chat_provider
    first: ChosenModel | None = None
    other: ChosenModel | None = None
    if named not in ("offline", "dashscope"):
        of_other = read_settings(OpenAISettings)
        has_server = of_other.api_key is not None or of_other.base_url is not None
        other = openai_compatible(of_other) if has_server else None
    if named not in ("offline", "openai_compatible"):
        of_first = read_settings(DashScopeSettings)
        first = dashscope(of_first) if of_first.api_key is not None else None
    if first and other:
        both = "CHAT_PROVIDER: two providers are configured, and dashscope answers"
        return replace(first, warnings=(f"{both}; set it to dashscope or openai_compatible",))
    if chosen := first or other:
        return chosen
    if named == "dashscope":
        raise ConfigurationError("DASHSCOPE_API_KEY: must be set because CHAT_PROVIDER is dashscope")
    if named == "openai_compatible":
        alternative = "or OPENAI_BASE_URL, for a server that takes no key"
        raise ConfigurationError(f"OPENAI_API_KEY: must be set because CHAT_PROVIDER is {named} ({alternative})")
    return ChosenModel("offline", _offline, is_last_resort=named == "auto")


def _resilient(model: ChatModel, settings: Settings, tuning: Tuning, *, max_attempts: int = 0) -> ChatModel:
    return ResilientChatModel(
        model,
        total_timeout=settings.request_timeout + 1,  # the question's own limit comes first, and says so
        idle_timeout=settings.model_timeout,
        retry=RetryPolicy(max_attempts or settings.model_max_attempts),
        log_provider_messages=settings.log_provider_messages,
        breaker=CircuitBreaker(
            full_name(model.provider, model.name), failures=settings.breaker_failures, pause=tuning.breaker_pause
        ),
    )


def _offline(_: OutboundHttp) -> ChatModel:
    from toolchat.service.offline.model import OfflineChatModel

    return OfflineChatModel()


@asynccontextmanager
async def open_client() -> AsyncGenerator[ChatClient, None]:
    """Open a client for the model that the environment and ``.env`` name, with the limits of the service.

    Its connections are closed with the block. It knows no tools of the service by name.

    Raises:
        ConfigurationError: a setting is invalid, or the named provider lacks its key.
    """
    settings = read_settings(Settings)
    chosen = choose_chat_model(settings)
    http = outbound_http(settings)
    try:
        processor = ToolExecutionExceptionProcessor(settings.tool_throw_exception_on_error)
        loop = tool_loop(settings, manager(settings, processor))
        yield ChatClient(chosen.create(http), advisors=(loop,), system_text=settings.system_prompt)
    finally:
        await http.aclose()


def outbound_http(settings: Settings, tuning: Tuning = _DEFAULT, *, public_only: bool = False) -> OutboundHttp:
    """The HTTP client for all upstreams; the caller closes it."""
    return OutboundHttp(
        max_connections=_MAX_CONNECTIONS,
        public_only=public_only,
        breakers=Breakers(settings.breaker_failures, tuning.breaker_pause),
    )


def manager(settings: Settings, processor: ToolExecutionExceptionProcessor) -> ToolCallingManager:
    """The executor of tool calls.

    Raises:
        ConfigurationError: a tool module provides a processor that is not valid.
    """
    try:
        check_processor(processor)
    except TypeError as error:
        raise ConfigurationError(f"ToolExecutionExceptionProcessor of a tool module: {error}") from error
    return ToolCallingManager(
        timeout=settings.tool_timeout,
        max_result_chars=settings.tool_result_max_chars,
        exception_processor=processor,
    )


def tool_loop(settings: Settings, manager: ToolCallingManager) -> ToolCallingAdvisor:
    """The loop of model calls and tool calls."""
    limits = ToolCallLimits(
        in_total=settings.tool_max_calls,
        rounds=settings.tool_max_rounds,
    )
    return ToolCallingAdvisor(manager, limits=limits)
