"""The file ``.env``, and variables that have no effect or not the intended one."""

import io
import os
import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

from toolchat.errors import ConfigurationError
from toolchat.service.settings.base import EnvironmentSettings, environment_name, file_variable, is_secret
from toolchat.service.settings.typos import suggest, variants

_OTHERS = frozenset({"HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY", "TZ", "TOOLCHAT_API_KEY"}) | {
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
}
"""Variables that are read from the environment without a setting, as other programs read them."""
_EXPANDED = re.compile(r"\$\{([^}:]+)\}")


class EnvFile(NamedTuple):
    """What ``.env`` holds: the names of its variables, in their order, and warnings about its lines."""

    names: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def load_env_file(path: Path = Path(".env")) -> EnvFile:
    """Put the variables of ``.env`` into the environment, whose own take precedence; called at start.

    Raises:
        ConfigurationError: a line cannot be parsed, which python-dotenv would skip silently, or the file not be read.
    """
    from dotenv import dotenv_values
    from dotenv.parser import parse_stream

    if not path.exists() and not path.is_symlink():
        return EnvFile()
    text = _decoded(path)
    bindings = list(parse_stream(io.StringIO(text)))
    if lines := [binding.original.line for binding in bindings if binding.error]:
        raise ConfigurationError("\n".join(f".env: line {line} cannot be read" for line in lines[:10]))
    warnings, names = list[str](), list[str]()
    for binding in bindings:
        for name in _EXPANDED.findall(binding.value or ""):
            if name not in os.environ and name not in names:
                place = f".env: line {binding.original.line}: {binding.key}"
                warnings.append(f"{place}: ${{{name}}} is not set and counts as empty; a secret with ${{ needs a file")
        names += [binding.key] if binding.key else []
    _export(dotenv_values(stream=io.StringIO(text)))
    return EnvFile(tuple(names), tuple(warnings))


def _decoded(path: Path) -> str:
    if not path.is_file():
        raise ConfigurationError(".env: is not a file")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f".env: cannot be read: {error.strerror}") from None
    if b"\0" in data:
        raise ConfigurationError(".env: is UTF-16; save the file as UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before, line = data[: error.start].count(b"\n"), data.splitlines()[data[: error.start].count(b"\n")]
        name = line.partition(b"=")[0].decode("ascii", "replace").strip()
        raise ConfigurationError(f".env: line {before + 1}: {name}: is not UTF-8; save the file as UTF-8") from None


def _export(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value and not any(os.environ.get(each, "").strip() for each in (name, name.upper())):
            os.environ[name] = value
    if "TZ" in values and hasattr(time, "tzset"):
        time.tzset()


def known_variables() -> set[str]:
    """Return every variable that the imported settings classes read, including those of the tool modules."""
    # A class with subclasses is the base of the tool modules' settings and reads no variable itself.
    classes = [each for each in _subclasses(EnvironmentSettings) if not each.__subclasses__()]
    named = [(environment_name(each, name), info) for each in classes for name, info in each.model_fields.items()]
    return {name for name, _ in named} | {file_variable(name) for name, info in named if is_secret(info.annotation)}


def unread_variables(in_file: Iterable[str], known: Collection[str]) -> list[str]:
    """Return a warning for each variable that no setting reads although it looks intended for us.

    Every variable in ``.env`` is, except those of Docker Compose. The environment is full of other programs'
    variables, so only those one typo away from a known name are reported.
    """
    others = (*_OTHERS, *known)
    written = {name.upper(): name for name in in_file if not name.upper().startswith("COMPOSE_")}
    exported = [name.upper() for name, value in os.environ.items() if value.strip()]
    typos, lines = {variant: name for name in known for variant in variants(name)}, []
    for name in [each for each in dict.fromkeys([*written, *exported]) if each not in others]:
        similar = next((typos[each] for each in variants(name) if each in typos), None)
        similar = similar or (suggest(name, known) if name in written else None)
        if similar or name in written:
            hint = f"; did you mean {similar}?" if similar else ""
            lines.append(f"{written.get(name, name)}: no setting has this name{hint}")
    return lines


def doubtful_values(known: Iterable[str]) -> list[str]:
    """Return a warning for each value that is probably another one than was meant."""
    values = {name: os.environ.get(name, "") for name in sorted(known)}
    text = "the quotes around it belong to the value, as docker run --env-file keeps them; leave them out"
    lines = [f"{name}: {text}" for name, value in values.items() if re.fullmatch(r"(['\"]).*\1", value, re.DOTALL)]
    zone = os.environ.get("TZ", "").lstrip(":")
    return lines + ([] if _is_zone(zone) else [f"TZ: there is no time zone {zone[:64]}, so UTC is used"])


def _is_zone(name: str) -> bool:
    try:
        # With digits, such as CET-1CEST, it is a rule of POSIX and no name.
        return not name or name.startswith("/") or bool(re.search(r"\d", name)) or bool(ZoneInfo(name))
    except (LookupError, ValueError, OSError):
        return False


def _subclasses(kind: type[EnvironmentSettings]) -> Iterator[type[EnvironmentSettings]]:
    for each in kind.__subclasses__():
        yield each
        yield from _subclasses(each)
