"""``.env``: its variables, its broken lines, and variables that no setting reads."""

import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from toolchat.errors import ConfigurationError
from toolchat.service.settings.base import EnvironmentSettings, environment_name
from toolchat.service.settings.typos import TypoIndex, suggest

_NETWORK = frozenset({"HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY"}) | {
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
}
"""Variables that are no settings of ours: libraries read them."""


def load_env_file(path: Path = Path(".env")) -> list[str]:
    """Put the variables of ``.env`` into the environment, whose own take precedence; returns their names in order."""
    from dotenv import dotenv_values

    names = _names_in(path)
    exported = {name.upper() for name, value in os.environ.items() if value.strip()}
    values = dotenv_values(path, encoding="utf-8") if names else {}
    os.environ.update({name: value for name, value in values.items() if value and name.upper() not in exported})
    return names


def _names_in(path: Path) -> list[str]:
    """The variables of a file, all of whose lines can be read; python-dotenv would skip a broken line silently."""
    from dotenv.parser import parse_stream

    if not path.exists() and not path.is_symlink():
        return []
    if not path.is_file():
        raise ConfigurationError(".env: is not a file")
    try:
        with path.open(encoding="utf-8") as stream:
            bindings = list(parse_stream(stream))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f".env: cannot be read ({type(error).__name__})") from None
    if lines := [binding.original.line for binding in bindings if binding.error]:
        raise ConfigurationError("\n".join(f".env: line {line} cannot be read" for line in lines[:10]))
    return [binding.key for binding in bindings if binding.key]


def known_variables() -> set[str]:
    """Return every variable that the imported settings classes read, including those of the tool modules."""
    # A class with subclasses is the base of the tool modules' settings and reads no variable itself.
    classes = [each for each in _subclasses(EnvironmentSettings) if not each.__subclasses__()]
    return {environment_name(each, field) for each in classes for field in each.model_fields}


def unread_variables(in_file: Iterable[str], known: Collection[str]) -> list[str]:
    """Return a warning for each variable that no setting reads although it looks intended for us.

    Every variable in ``.env`` is, except those of Docker Compose. The environment is full of other programs'
    variables, so only those one typo away from a known name are reported.
    """
    written = {name.upper(): name for name in in_file if not name.upper().startswith("COMPOSE_")}
    exported = [name.upper() for name, value in os.environ.items() if value.strip()]
    known = _NETWORK.union(known)
    typos, lines = TypoIndex(known), []
    for name in dict.fromkeys([*written, *exported]):
        similar = None if name in known else typos.find(name) or (suggest(name, known) if name in written else None)
        if similar or (name in written and name not in known):
            hint = f"; did you mean {similar}?" if similar else ""
            lines.append(f"{written.get(name, name)}: no setting has this name{hint}")
    return lines


def _subclasses(kind: type[EnvironmentSettings]) -> Iterator[type[EnvironmentSettings]]:
    for each in kind.__subclasses__():
        yield each
        yield from _subclasses(each)
