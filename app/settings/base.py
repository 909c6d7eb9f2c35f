"""Configuration from environment variables and ``.env``: the base class, shared field types, and validation errors."""

from typing import Annotated, Any, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from toolchat.errors import ConfigurationError

__all__ = [
    "BaseUrl",
    "EnvironmentSettings",
    "Secret",
    "Texts",
    "Url",
    "environment_name",
    "read_settings",
    "strip_text",
]


def strip_text(value: Any) -> Any:
    """Strip surrounding whitespace from a text; any other value is returned unchanged."""
    return value.strip() if isinstance(value, str) else value


def _split_at_commas(value: Any) -> Any:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def _require_header_safe(value: SecretStr) -> SecretStr:
    text = value.get_secret_value()
    if not (text.isascii() and text.isprintable()):
        raise ValueError("must be printable ASCII without line breaks")
    return value


def _require_url(value: str) -> str:
    if not value.startswith(("http://", "https://")) or not value.isascii() or " " in value:
        raise ValueError("must be a URL that starts with http:// or https://")
    try:
        parts = urlsplit(value)
        # Credentials in a URL would compete with the API key, and error messages that show the URL would leak them.
        is_usable = bool(parts.hostname) and (parts.port is None or parts.port > 0) and "@" not in parts.netloc
    except ValueError:
        is_usable = False
    if not is_usable:
        raise ValueError("must be a URL with a host, a port between 1 and 65535 if any, and no user name or password")
    return value.rstrip("/")


def _refuse_query(value: str) -> str:
    if "?" in value or "#" in value:
        raise ValueError("must be a URL without ? and #, because paths are appended to it")
    return value


Secret = Annotated[SecretStr, BeforeValidator(strip_text), AfterValidator(_require_header_safe)]
"""A secret: surrounding whitespace is stripped, and it is never printed."""

Texts = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split_at_commas)]
"""Texts separated by commas."""

Url = Annotated[str, BeforeValidator(strip_text), AfterValidator(_require_url)]
"""A URL without a trailing slash."""

BaseUrl = Annotated[Url, AfterValidator(_refuse_query)]
"""A URL to which paths are appended."""


class EnvironmentSettings(BaseSettings):
    """Base of every settings class: an empty or blank variable counts as not set, unknown ones are ignored."""

    model_config = SettingsConfigDict(
        env_file=".env", env_file_encoding="utf-8", env_ignore_empty=True, extra="ignore", frozen=True
    )

    @model_validator(mode="before")
    @classmethod
    def _drop_blanks(cls, values: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in values.items() if not (isinstance(value, str) and not value.strip())}


_SettingsT = TypeVar("_SettingsT", bound=EnvironmentSettings)


def environment_name(settings: type[EnvironmentSettings], field: str) -> str:
    """Return the name of the environment variable that a settings field is read from."""
    alias = settings.model_fields[field].validation_alias
    return alias if isinstance(alias, str) else f"{settings.model_config.get('env_prefix', '')}{field}".upper()


def read_settings(settings: type[_SettingsT]) -> _SettingsT:
    """Read a settings class from the environment and ``.env``.

    Raises:
        ConfigurationError: a value is invalid; one line for each variable, which never shows the value.
    """
    try:
        return settings()
    except ValidationError as error:
        raise ConfigurationError("\n".join(_describe(settings, fault) for fault in error.errors())) from None


def _describe(settings: type[EnvironmentSettings], fault: Any) -> str:
    field = str(fault["loc"][0]) if fault["loc"] else ""
    name = environment_name(settings, field) if field in settings.model_fields else field.upper()
    return f"{name}: {fault['msg'].removeprefix('Value error, ')}"
