"""Variables that no setting reads: broken lines of ``.env``, and mistyped names."""

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
"""Variables that are read from the environment only, as other programs read them."""


def check_env_file(path: Path) -> list[str]:
    """Check that every line of ``.env`` can be parsed; python-dotenv would skip a broken line silently.

    Returns:
        The names of the variables that it sets, in their order.

    Raises:
        ConfigurationError: a line cannot be parsed, or the path is not a file.
    """
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
    typos, lines = TypoIndex(known), []
    for name in [each for each in written if each in _NETWORK]:
        read = written.pop(name)
        if name not in exported:
            lines.append(f"{read}: has no effect in .env; set it in the environment")
    names = dict.fromkeys([*written, *exported])
    for name in names:
        similar = None if name in known else typos.find(name) or (suggest(name, known) if name in written else None)
        if similar or (name in written and name not in known):
            hint = f"; did you mean {similar}?" if similar else ""
            lines.append(f"{written.get(name, name)}: no setting has this name{hint}")
    return lines


def _subclasses(kind: type[EnvironmentSettings]) -> Iterator[type[EnvironmentSettings]]:
    for each in kind.__subclasses__():
        yield each
        yield from _subclasses(each)
