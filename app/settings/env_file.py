"""The file ``.env`` and the names in it: what cannot be understood, and what nothing reads."""

import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from app.settings.base import EnvironmentSettings, environment_name
from toolchat.errors import ConfigurationError

__all__ = ["Slips", "check_env_file", "known_variables", "nearest", "unread_variables"]


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that looks most like another one; ``None`` where none does."""
    from difflib import get_close_matches  # two milliseconds that hardly any start needs

    return next(iter(get_close_matches(name, list(known), n=1)), None)


class Slips:
    """Names, found again by what a slip of the finger makes of them."""

    def __init__(self, known: Iterable[str]) -> None:
        self._known = {slip: name for name in known for slip in _slips(name)}

    def meant_by(self, name: str) -> str | None:
        """The known name that differs from another one by underscores and one slip at most; ``None`` without one."""
        return next((self._known[slip] for slip in _slips(name) if slip in self._known), None)


def _slips(name: str) -> list[str]:
    """A name without its underscores, and the same with any letter left out.

    Two names that share one of these differ by a letter that is missing, too many, another one, or that has changed
    its place.
    """
    plain = name.replace("_", "")
    return [plain, *(plain[:place] + plain[place + 1 :] for place in range(len(plain)))]


def check_env_file(path: Path) -> list[str]:
    """Make sure that every line of ``.env`` is understood; what is not would be left out without a word.

    Returns:
        The names of the variables that it sets, in their order.

    Raises:
        ConfigurationError: a line cannot be read, or the file is none.
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
    """Every variable that the imported settings classes read, those of the tool folders with their prefixes."""
    # A class from which others derive is the base of the tool folders' and reads nothing itself.
    classes = [each for each in _below(EnvironmentSettings) if not each.__subclasses__()]
    return {environment_name(each, field) for each in classes for field in each.model_fields}


def unread_variables(in_file: Iterable[str], known: Collection[str]) -> list[str]:
    """A line for each variable that looks as if it was meant for the service, and that nothing reads.

    Everything in ``.env`` was meant for it, but for what Docker Compose reads there; of the environment, which is full
    of other programs' variables, only what is one slip of the finger away from a known name.
    """
    written = {name.upper(): name for name in in_file if not name.upper().startswith("COMPOSE_")}
    slips = Slips(known)
    lines: list[str] = []
    for name in dict.fromkeys([*written, *map(str.upper, os.environ)]):
        near = None if name in known else slips.meant_by(name) or (nearest(name, known) if name in written else None)
        if near or (name in written and name not in known):
            meant = f"; is {near} meant?" if near else ""
            lines.append(f"{written.get(name, name)}: no setting has this name{meant}")
    return lines


def _below(kind: type[EnvironmentSettings]) -> Iterator[type[EnvironmentSettings]]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)
