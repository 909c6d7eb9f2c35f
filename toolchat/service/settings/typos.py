"""Suggestions for mistyped names: commands, variables, fields."""

from collections.abc import Iterable


def suggest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar to ``name``, or ``None`` if none is similar."""
    from difflib import get_close_matches  # deferred: importing it takes 2 ms, and almost no start needs it

    return next(iter(get_close_matches(name, list(known), n=1)), None)


def variants(name: str) -> list[str]:
    """Return a name without its underscores, and all versions of that with one letter removed.

    Two names share a variant if they differ by one missing, additional, replaced or moved letter. That is stricter than
    :func:`suggest`: for names that may belong to somebody else, such as those of the environment.
    """
    plain = name.replace("_", "")
    return [plain, *(plain[:index] + plain[index + 1 :] for index in range(len(plain)))]
