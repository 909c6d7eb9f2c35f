"""Which name somebody meant who wrote another one."""

from collections.abc import Iterable

__all__ = ["Slips", "nearest"]


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
