"""Which chat model the settings ask for."""

from collections.abc import Callable
from dataclasses import dataclass

from app.chat_models.base import ChatModel
from app.chat_models.resilient import ResilientChatModel, RetryPolicy
from app.errors import ConfigurationError
from app.http import OutboundHttp
from app.settings import Settings, read_settings

__all__ = ["ChosenModel", "choose_chat_model", "import_providers"]


@dataclass(frozen=True, slots=True)
class ChosenModel:
    """A provider whose settings were read and found complete."""

    provider: str
    create: Callable[[OutboundHttp], ChatModel]


def choose_chat_model(settings: Settings) -> ChosenModel:
    """Choose the provider; only its code is imported.

    Raises:
        ConfigurationError: its settings cannot be used, or the provider that is named lacks its key.
    """
    named = settings.chat_provider
    chosen = _dashscope(named == "dashscope") if named in ("auto", "dashscope") else None
    if chosen is None and named in ("auto", "openai_compatible"):
        chosen = _openai_compatible(named == "openai_compatible")
    if chosen is None:
        chosen = ChosenModel("offline", _offline)
    create = chosen.create
    return ChosenModel(chosen.provider, lambda http: _resilient(create(http), settings))


def import_providers() -> None:
    """Import every provider's code, also of those that were not chosen, so that their settings are known."""
    import app.chat_models.dashscope.model
    import app.chat_models.openai_compatible.model  # noqa: F401


def _resilient(model: ChatModel, settings: Settings) -> ChatModel:
    return ResilientChatModel(
        model,
        total_timeout=settings.model_timeout,
        idle_timeout=settings.model_idle_timeout,
        retry=RetryPolicy(settings.model_max_attempts),
    )


def _dashscope(required: bool) -> ChosenModel | None:
    from app.chat_models.dashscope.model import DashScopeChatModel, DashScopeSettings, warm_up

    settings = read_settings(DashScopeSettings)

    def create(http: OutboundHttp) -> ChatModel:
        warm_up()
        return DashScopeChatModel(settings, http)

    if settings.api_key is not None:
        return ChosenModel("dashscope", create)
    if required:
        raise ConfigurationError("DASHSCOPE_API_KEY: must be set because CHAT_PROVIDER is dashscope")
    return None


def _openai_compatible(required: bool) -> ChosenModel | None:
    from app.chat_models.openai_compatible.model import OpenAICompatibleChatModel, OpenAISettings

    settings = read_settings(OpenAISettings)
    if settings.api_key is not None or settings.base_url is not None:
        return ChosenModel("openai_compatible", lambda http: OpenAICompatibleChatModel(settings, http))
    if required:
        alternative = "or OPENAI_BASE_URL, for a server that takes no key"
        raise ConfigurationError(
            f"OPENAI_API_KEY: must be set because CHAT_PROVIDER is openai_compatible ({alternative})"
        )
    return None


def _offline(_: OutboundHttp) -> ChatModel:
    from app.offline.model import OfflineChatModel

    return OfflineChatModel()
