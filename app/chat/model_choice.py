"""Which chat model the settings ask for."""

from app.breakers import CircuitBreaker
from app.chat.fallbacks import ChosenModel, dashscope, openai_compatible, read_fallbacks
from app.chat_models.base import ChatModel, full_name
from app.chat_models.fallback import FallbackChatModel
from app.chat_models.resilient import ResilientChatModel, RetryPolicy
from app.errors import ConfigurationError
from app.http import OutboundHttp
from app.settings import Settings, read_settings

__all__ = ["ChosenModel", "choose_chat_model", "import_providers"]


def choose_chat_model(settings: Settings) -> ChosenModel:
    """Choose the provider, and those that stand by; only their code is imported.

    Raises:
        ConfigurationError: the settings of one cannot be used, or the provider that is named lacks its key.
    """
    first, others = _first(settings), read_fallbacks()
    if not others:
        return ChosenModel(first.provider, lambda http: _resilient(first.create(http), settings))
    if first.provider == "offline" and settings.chat_provider == "auto":
        raise ConfigurationError("CHAT_FALLBACKS: stands by for a model that is not set: set OPENAI_API_KEY, say")

    def create(http: OutboundHttp) -> ChatModel:
        *before, last = (each.create(http) for each in (first, *others))
        # Who has another behind him is tried once: the next one is the better second try.
        tried = [_resilient(each, settings, max_attempts=1) for each in before]
        return FallbackChatModel([*tried, _resilient(last, settings)])

    return ChosenModel(first.provider, create)


def _first(settings: Settings) -> ChosenModel:
    named = settings.chat_provider
    chosen = _dashscope(named == "dashscope") if named in ("auto", "dashscope") else None
    if chosen is None and named in ("auto", "openai_compatible"):
        chosen = _openai_compatible(named == "openai_compatible")
    return chosen or ChosenModel("offline", _offline)


def import_providers() -> None:
    """Import every provider's code, also of those that were not chosen, so that their settings are known."""
    import app.chat_models.dashscope.model
    import app.chat_models.openai_compatible.model  # noqa: F401


def _resilient(model: ChatModel, settings: Settings, *, max_attempts: int = 0) -> ChatModel:
    return ResilientChatModel(
        model,
        total_timeout=settings.model_timeout,
        idle_timeout=settings.model_idle_timeout,
        retry=RetryPolicy(max_attempts or settings.model_max_attempts),
        breaker=CircuitBreaker(
            full_name(model.provider, model.name), failures=settings.breaker_failures, pause=settings.breaker_pause
        ),
    )


def _dashscope(required: bool) -> ChosenModel | None:
    from app.chat_models.dashscope.model import DashScopeSettings

    settings = read_settings(DashScopeSettings)
    if settings.api_key is not None:
        return dashscope(settings)
    if required:
        raise ConfigurationError("DASHSCOPE_API_KEY: must be set because CHAT_PROVIDER is dashscope")
    return None


def _openai_compatible(required: bool) -> ChosenModel | None:
    from app.chat_models.openai_compatible.model import OpenAISettings

    settings = read_settings(OpenAISettings)
    if settings.api_key is not None or settings.base_url is not None:
        return openai_compatible(settings)
    if required:
        alternative = "or OPENAI_BASE_URL, for a server that takes no key"
        raise ConfigurationError(
            f"OPENAI_API_KEY: must be set because CHAT_PROVIDER is openai_compatible ({alternative})"
        )
    return None


def _offline(_: OutboundHttp) -> ChatModel:
    from app.offline.model import OfflineChatModel

    return OfflineChatModel()
