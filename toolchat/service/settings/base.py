"""Configuration from environment variables: base class, field types, and pydantic's faults as text."""

import re
from collections.abc import Iterable
from functools import cache
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import BaseModel, BeforeValidator, ValidationError, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from toolchat.errors import ConfigurationError


def _split_at_commas(value: Any) -> Any:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


Texts = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split_at_commas)]
"""Texts separated by commas."""


class EnvironmentSettings(BaseSettings):
    """Base of every settings class: an empty or blank variable counts as not set, unknown ones are ignored."""

    model_config = SettingsConfigDict(env_ignore_empty=True, extra="ignore", frozen=True)

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
    try:
        return settings()
    except ValidationError as error:
        lines = [f"{_variable(settings, place)}: {message}" for place, message, _ in describe_faults(error)]
        raise ConfigurationError("\n".join(lines)) from None


def _variable(settings: type[EnvironmentSettings], place: str) -> str:
    field = re.split(r"[.[]", place)[0]
    return environment_name(settings, field) if field in settings.model_fields else field.upper()


class Fault(NamedTuple):
    """One invalid part of some input."""

    place: str
    """Where it is, such as ``messages[0].content``; empty for the whole."""
    message: str
    kind: str
    """Pydantic's name of the fault, such as ``extra_forbidden``."""


def describe_faults(error: ValidationError) -> list[Fault]:
    """List what is invalid, in the words of pydantic; no fault contains a value."""
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    return [Fault(_place(each["loc"]), each["msg"].removeprefix("Value error, "), each["type"]) for each in faults]


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
