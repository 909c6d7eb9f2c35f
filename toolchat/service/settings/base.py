"""Configuration from environment variables: base class, field types, and pydantic's faults as text."""

import logging
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from stat import S_ISREG
from typing import Annotated, Any, NamedTuple, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, SecretStr, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from toolchat.errors import ConfigurationError
from toolchat.state.base import FOREVER

_log = logging.getLogger(__name__)


def _split_at_commas(value: Any) -> Any:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


Texts = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split_at_commas)]
"""Texts separated by commas."""

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
NEEDS_A_FILE = (
    "never needs a file or PostgreSQL as STATE_URL: memory is lost at a restart, and Redis has to hold all in memory"
)


def _seconds(value: Any) -> Any:
    if value == FOREVER or (isinstance(value, str) and value.strip().lower() == "never"):
        return FOREVER
    found = re.fullmatch(r"\s*([0-9.]+)\s*([smhd])\s*", value) if isinstance(value, str) else None
    try:
        seconds = float(found[1]) * _UNITS[found[2]] if found else float(value)
    except (TypeError, ValueError):
        raise ValueError("must be seconds, a time such as 12h or 30d, or never") from None
    if not 0 < seconds <= FOREVER / 8:
        raise ValueError("must be more than nothing and at most 25 years, or never")
    return seconds


Retention = Annotated[float, BeforeValidator(_seconds)]
"""Seconds after which a conversation expires, or :data:`FOREVER`."""


class _SecretFiles(PydanticBaseSettingsSource):
    """Reads each secret ``NAME`` from the file ``NAME_FILE``, as Docker, Kubernetes and systemd hand secrets over."""

    def __call__(self) -> dict[str, Any]:
        found = (self.get_field_value(info, name) for name, info in self.settings_cls.model_fields.items())
        return {key: value for value, key, _ in found if value is not None}

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[SecretStr | None, str, bool]:
        alias = field.validation_alias
        key = alias if isinstance(alias, str) else field_name
        if not is_secret(field.annotation) or f"{field_name}_file" in self.settings_cls.model_fields:
            return None, key, False
        text = _secret_in_file(environment_name(self.settings_cls, field_name))
        return None if text is None else _FileSecret(text), key, False


class _FileSecret(SecretStr):
    """A secret in a file, which may have changed when :func:`reload_secrets` reads it again."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.current = text

    def get_secret_value(self) -> str:
        return self.current


Fixed = AfterValidator(lambda secret: SecretStr(secret.get_secret_value()))
"""Marks a secret that is used at start only."""


def _secret_in_file(name: str) -> str | None:
    variable = file_variable(name)
    if not (path := os.environ.get(variable, "").strip()):
        return None
    if os.environ.get(name, "").strip():
        raise ConfigurationError(f"{variable}: {name} is set as well; set one of them")
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        fault = getattr(error, "strerror", None) or "is not UTF-8"
        raise ConfigurationError(f"{variable}: {path}: {fault}") from None
    if not text:
        raise ConfigurationError(f"{variable}: {path}: is empty")
    return text


def is_secret(annotation: object) -> bool:
    """Return whether a field's type is a secret."""
    return annotation is SecretStr or any(map(is_secret, get_args(annotation)))


def file_variable(name: str) -> str:
    """Return the name of the variable that names the file of a secret."""
    return f"{name}_FILE"


class EnvironmentSettings(BaseSettings):
    """Base of every settings class: an empty or blank variable counts as not set, unknown ones are ignored."""

    model_config = SettingsConfigDict(env_ignore_empty=True, extra="ignore", frozen=True)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - a folder, which nothing sets
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read files of secrets as well, unless the values come from elsewhere, as those of a fallback model do."""
        own = settings_cls.model_config.get("env_prefix", "")
        is_own = isinstance(env_settings, EnvSettingsSource) and env_settings.env_prefix == own
        files = [_SecretFiles(settings_cls)] if is_own else []
        return init_settings, env_settings, dotenv_settings, *files

    @model_validator(mode="before")
    @classmethod
    def _drop_blanks(cls, values: dict[str, Any]) -> dict[str, Any]:
        # Docker Compose passes an unset variable as an empty text.
        return {name: value for name, value in values.items() if not (isinstance(value, str) and not value.strip())}


_SettingsT = TypeVar("_SettingsT", bound=EnvironmentSettings)


@cache
def environment_class(declared: type[BaseModel], prefix: str) -> type[EnvironmentSettings]:
    """Return a subclass of a plain model whose fields are read from variables with a prefix."""
    described = {"__module__": declared.__module__, "__doc__": declared.__doc__}
    config = SettingsConfigDict(env_prefix=prefix)
    return type(declared.__name__, (declared, EnvironmentSettings), {"model_config": config, **described})


def environment_name(settings: type[BaseModel], field: str) -> str:
    """Return the name of the environment variable that a settings field is read from."""
    alias, prefix = settings.model_fields[field].validation_alias, dict(settings.model_config).get("env_prefix", "")
    return alias if isinstance(alias, str) else f"{prefix}{field}".upper()


def read_settings(settings: type[_SettingsT]) -> _SettingsT:
    """Read a settings class from the environment; errors name no value."""
    read = _last_read[settings] = _read(settings)
    return read


def _read(settings: type[_SettingsT]) -> _SettingsT:
    try:
        return settings()
    except ValidationError as error:
        lines = [_line(_variable(settings, place), message) for place, message, _ in describe_faults(error)]
        raise ConfigurationError("\n".join(lines)) from None


_last_read: dict[type[EnvironmentSettings], EnvironmentSettings] = {}


def reload_secrets() -> None:
    """Read the files of secrets again; what uses a secret at each time has the new value, else the log says so."""
    for settings, known in list(_last_read.items()):
        names = {field: file_variable(environment_name(settings, field)) for field in settings.model_fields}
        in_files = {field: name for field, name in names.items() if os.environ.get(name, "").strip()}
        try:
            for field, variable in in_files.items():
                if isinstance(getattr(known, field), SecretStr) and f"{field}_file" not in settings.model_fields:
                    _require_regular_file(variable)
            found = _read(settings) if in_files else known
        except ConfigurationError as error:
            _log.warning("secrets stay as they are: %s", error)
            continue
        for field, variable in in_files.items():
            old, new = getattr(known, field), getattr(found, field)
            if isinstance(old, _FileSecret) and old != new:
                old.current = new.get_secret_value()
                _log.info("%s was read again", variable)
            elif old != new:
                _log.warning("%s has changed: restart the service to use the new value", variable)


def _require_regular_file(variable: str) -> None:
    """Refuse a pipe, for example: reading one would block the event loop."""
    path = Path(os.environ[variable].strip())
    with suppress(OSError):  # reading it names the fault
        if not S_ISREG(path.stat().st_mode):
            raise ConfigurationError(f"{variable}: {path}: is not a regular file")


_SERVICE_LINK = re.compile(r"(tcp|udp|sctp)://[^/]+")
"""What Kubernetes sets ``NAME_PORT`` to, for each Service of the namespace."""


def source_of(variable: str) -> str:
    """Return the variable itself, or the one that names the file from which its value came."""
    is_in_file = not os.environ.get(variable, "").strip() and os.environ.get(file_variable(variable), "").strip()
    return file_variable(variable) if is_in_file else variable


def _line(variable: str, message: str) -> str:
    if _SERVICE_LINK.fullmatch(os.environ.get(variable, "")):
        service = variable.removesuffix("_PORT").lower().replace("_", "-")
        message = f"Kubernetes sets it for the Service {service}; rename that, or set enableServiceLinks: false"
    return f"{source_of(variable)}: {message}"


def _variable(settings: type[EnvironmentSettings], place: str) -> str:
    field = re.split(r"[.[]", place)[0]
    return environment_name(settings, field) if field in settings.model_fields else field.upper()


class Invalid(NamedTuple):
    """One invalid part of some input."""

    place: str
    """Where it is, such as ``messages[0].content``; empty for the whole."""
    message: str
    kind: str
    """Pydantic's name of the fault, such as ``extra_forbidden``."""


def describe_faults(error: ValidationError) -> list[Invalid]:
    """List what is invalid, in the words of pydantic; no fault contains a value."""
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    return [Invalid(_place(each["loc"]), each["msg"].removeprefix("Value error, "), each["type"]) for each in faults]


def _place(location: Iterable[int | str]) -> str:
    place = ""
    for part in location:
        if isinstance(part, int):
            place += f"[{part}]"
        elif part not in _BASIC_TYPES and not part.endswith("]"):
            place += f".{part}"
    return place.removeprefix(".")


_BASIC_TYPES = ("bool", "float", "int", "str")
"""With ``list[...]`` and the like, what pydantic puts into a location for the members of a union."""
