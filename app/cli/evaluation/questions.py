"""The file of questions."""

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import from_json

from toolchat.errors import ConfigurationError

__all__ = ["Entry", "read_questions"]


class Entry(BaseModel):
    """One question of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ask: str = Field(min_length=1)
    calls: list[dict[str, Any]] = []
    """Each call as ``{tool: value}``, ``{tool: [values in order]}`` or ``{tool: {name: value}}``; none: no call."""
    tools: str | list[str] = "all"
    """What is offered: ``all``, ``none``, or names."""
    before: list[str] = []
    """What was said before: questions and answers in turns, beginning with a question."""
    has: list[str] = []
    """What stands in the answer."""
    lacks: list[str] = []
    """What does not."""
    results: dict[str, Any] = {}
    """What tools answer instead of being run, by their names."""


_ENTRIES = TypeAdapter(list[Entry])


def read_questions(file: Path) -> list[Entry]:
    """Read a file: JSON where it is named so, else YAML.

    Raises:
        ConfigurationError: it cannot be read, or is in another form; one line for each fault.
    """
    try:
        text = file.read_text(encoding="utf-8-sig")
        given = from_json(text) if file.suffix == ".json" else _from_yaml(text, file)
        return _ENTRIES.validate_python(given or [])
    except OSError as error:
        raise ConfigurationError(f"{file}: cannot be read: {error.strerror}") from None
    except ValidationError as error:
        raise ConfigurationError("\n".join(f"{file}: {_told(fault)}" for fault in error.errors()[:10])) from None
    except ValueError as error:
        raise ConfigurationError(f"{file}: cannot be read: {' '.join(str(error).split())}") from None


def _from_yaml(text: str, file: Path) -> Any:
    try:
        import yaml
    except ModuleNotFoundError:
        raise ConfigurationError(
            f"{file}: to read YAML takes the package pyyaml (pip install pyyaml); a .json file takes none"
        ) from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


def _told(fault: Any) -> str:
    place = fault["loc"]
    entry = f"entry {place[0] + 1}: " if place and isinstance(place[0], int) else ""
    return entry + (f"{'.'.join(map(str, place[1:]))}: " if place[1:] else "") + str(fault["msg"])
