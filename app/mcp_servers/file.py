"""The file that names other servers: read once at start, every fault one line with the key where it is."""

import codecs
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dotenv import dotenv_values
from pydantic import ValidationError
from pydantic_core import from_json

from app.errors import ConfigurationError
from app.mcp_servers.entry import ServerEntry
from app.spelling import nearest

__all__ = ["ServerFile", "read_file"]

_MAX_BYTES = 1024 * 1024
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_KEY = "mcpServers"


@dataclass(frozen=True, slots=True)
class ServerFile:
    """What the file says."""

    servers: Mapping[str, ServerEntry]
    """By name, in the order of the file, without those that are disabled."""
    variables: frozenset[str] = frozenset()
    """The variables that it takes values from."""


def read_file(path: Path) -> ServerFile:
    """Read the file; ``${VAR}`` and ``${VAR:-default}`` in its texts are variables of the environment or ``.env``.

    Raises:
        ConfigurationError: it cannot be used; one line for each fault, with the key, and never a value.
    """
    values = _values(path)
    environment = _Environment()
    entries, faults = {}, []
    for name, value in values.items():
        try:
            entries[name] = _entry(name, value, environment)
        except _FaultError as fault:
            faults += [f"MCP_SERVERS_FILE: {path}: {_KEY}.{name[:64]}{line}" for line in fault.lines]
    if faults:
        raise ConfigurationError("\n".join(faults))
    servers = {name: entry for name, entry in entries.items() if not entry.disabled}
    if servers and find_spec("mcp") is None:
        raise ConfigurationError("MCP_SERVERS_FILE: needs the extra mcp: pip install '.[mcp]'")
    return ServerFile(servers, frozenset(environment.asked))


class _FaultError(Exception):
    def __init__(self, *lines: str) -> None:
        super().__init__(*lines)
        self.lines = lines


class _Environment:
    """The variables that a text may name; the environment wins over ``.env``, as everywhere."""

    def __init__(self) -> None:
        in_file = dotenv_values(".env") if Path(".env").is_file() else {}
        self._values = {name: value for name, value in in_file.items() if value is not None} | os.environ
        self.asked: set[str] = set()

    def filled_in(self, value: Any, key: str) -> Any:
        """A value with its variables, in the texts of lists and objects, too."""
        if isinstance(value, str):
            return _VARIABLE.sub(lambda found: self._value(found, key), value)
        if isinstance(value, list):
            return [self.filled_in(each, f"{key}.{place}") for place, each in enumerate(value)]
        if isinstance(value, dict):
            return {name: self.filled_in(each, f"{key}.{name}") for name, each in value.items()}
        return value

    def _value(self, found: re.Match[str], key: str) -> str:
        name, default = found.groups()
        self.asked.add(name)
        value = self._values.get(name) or default
        if value is None:
            raise _FaultError(f"{key}: the variable {name} is not set")
        return value


def _values(path: Path) -> Mapping[str, Any]:
    def refused(reason: str) -> ConfigurationError:
        return ConfigurationError(f"MCP_SERVERS_FILE: {path}: {reason}")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if twice := [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]:
            raise refused(f"{twice[0][:64]}: this key stands twice in one object")
        return found

    content = _content(path, refused).removeprefix(codecs.BOM_UTF8)
    try:
        from_json(content)  # its errors say where
        document = json.loads(content, object_pairs_hook=unique)
    except ValueError as error:
        raise refused(f"is no JSON: {error}") from None
    servers = document.get(_KEY) if isinstance(document, dict) else None
    if not isinstance(servers, dict):
        raise refused(f'must be an object with "{_KEY}", an object of servers by name')
    for key in document:
        if key != _KEY:
            raise refused(f"{key[:64]}: there is no such key; is {_KEY} meant?")
    return servers


def _content(path: Path, refused: Callable[[str], ConfigurationError]) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise refused(f"cannot be read: {error.strerror}") from None
    if len(content) > _MAX_BYTES:
        raise refused(f"is longer than {_MAX_BYTES} bytes")
    return content


def _entry(name: str, value: Any, environment: _Environment) -> ServerEntry:
    if not _NAME.fullmatch(name):
        raise _FaultError(": a name has 1 to 32 letters, digits, _ or -, the first a letter or a digit")
    if isinstance(value, dict) and value.get("disabled") is True:  # its variables need not be set
        return ServerEntry(command="none", disabled=True)
    try:
        return ServerEntry.model_validate(environment.filled_in(value, ""))
    except ValidationError as error:
        raise _FaultError(*_lines(error)) from None


def _lines(error: ValidationError) -> Iterator[str]:
    for fault in error.errors(include_url=False, include_context=False, include_input=False):
        key = "".join(f".{each}" for each in fault["loc"] if each not in ("bool", "tuple[str, ...]"))[:200]
        message = fault["msg"].removeprefix("Value error, ")
        if fault["type"] == "extra_forbidden":
            near = nearest(str(fault["loc"][0]), ServerEntry.model_fields)
            message = "there is no such key" + (f"; is {near} meant?" if near else "")
        yield f"{key}: {message}"
