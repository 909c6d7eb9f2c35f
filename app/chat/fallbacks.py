"""Models that stand by: each with its own provider, key, address and name, from one variable."""

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import Field, SecretStr, ValidationError
from pydantic_core import from_json
from pydantic_settings import SettingsConfigDict

from app.chat_models.base import ChatModel
from app.errors import ConfigurationError
from app.http import OutboundHttp
from app.settings import EnvironmentSettings, read_settings

if TYPE_CHECKING:
    from app.chat_models.dashscope.model import DashScopeSettings
    from app.chat_models.openai_compatible.model import OpenAISettings

__all__ = ["ChosenModel", "dashscope", "openai_compatible", "read_fallbacks"]

_SettingsT = TypeVar("_SettingsT", bound=EnvironmentSettings)
_NO_VARIABLE = "CHAT_FALLBACKS="
"""No variable's name can begin so: an entry takes nothing from those of the first model, least of all its key."""


class FallbackSettings(EnvironmentSettings):
    """Which models stand by for the first one."""

    model_config = SettingsConfigDict(env_prefix="CHAT_")

    fallbacks: SecretStr | None = Field(
        None,
        description="Models asked in this order when those before cannot answer, as JSON: "
        '[{"provider": "openai_compatible", "base_url": "https://...", "api_key": "...", "model": "..."}]; '
        "but for the last, each is tried once",
    )


@dataclass(frozen=True, slots=True)
class ChosenModel:
    """A provider whose settings were read and found complete."""

    provider: str
    create: Callable[[OutboundHttp], ChatModel]


def read_fallbacks() -> list[ChosenModel]:
    """Read ``CHAT_FALLBACKS``: a JSON list of objects with ``provider`` and the fields of that provider's settings.

    Raises:
        ConfigurationError: it is none, or an entry cannot be used; no value is shown.
    """
    settings = read_settings(FallbackSettings)
    if settings.fallbacks is None:
        return []
    try:
        entries = from_json(settings.fallbacks.get_secret_value())
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
            from app.chat_models.openai_compatible.model import OpenAISettings

            return openai_compatible(_settings(OpenAISettings, fields, {"api_key", "base_url"}))
        if provider == "dashscope":
            from app.chat_models.dashscope.model import DashScopeSettings

            return dashscope(_settings(DashScopeSettings, fields, {"api_key"}))
    except ValueError as error:
        raise ConfigurationError(f"CHAT_FALLBACKS: model {number}: {error}") from None
    raise ConfigurationError(f"CHAT_FALLBACKS: model {number}: provider: must be openai_compatible or dashscope")


def _settings(kind: type[_SettingsT], fields: Mapping[str, Any], needed: Set[str]) -> _SettingsT:
    if unknown := fields.keys() - kind.model_fields.keys():
        raise ValueError(f"{min(unknown)[:64]!r} is none of {', '.join(kind.model_fields)}")
    if not fields.get("model"):
        raise ValueError("model must be there")
    if needed.isdisjoint(fields):
        raise ValueError(f"{' or '.join(sorted(needed))} must be there")
    try:
        return kind(_env_file=None, _env_prefix=_NO_VARIABLE, **fields)
    except ValidationError as error:
        fault = error.errors()[0]
        raise ValueError(f"{fault['loc'][0]}: {fault['msg'].removeprefix('Value error, ')}") from None


def dashscope(settings: "DashScopeSettings") -> ChosenModel:
    """DashScope's own API."""

    def create(http: OutboundHttp) -> ChatModel:
        from app.chat_models.dashscope.model import DashScopeChatModel, warm_up

        warm_up()
        return DashScopeChatModel(settings, http)

    return ChosenModel("dashscope", create)


def openai_compatible(settings: "OpenAISettings") -> ChosenModel:
    """Any server that speaks OpenAI's chat completions."""

    def create(http: OutboundHttp) -> ChatModel:
        from app.chat_models.openai_compatible.model import OpenAICompatibleChatModel

        return OpenAICompatibleChatModel(settings, http)

    return ChosenModel("openai_compatible", create)
