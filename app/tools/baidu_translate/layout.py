"""A text taken apart into what is translated and what surrounds it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

__all__ = ["Layout"]


@dataclass(frozen=True, slots=True)
class Layout:
    """The lines of a text without their indents, and the blanks and line breaks around them.

    Baidu translates line by line and says nothing about blank lines, so only lines with something in them are
    sent, and their translations are put back between the blanks of the original.
    """

    lines: tuple[str, ...]
    """What is translated: no line is invisible, starts or ends with a blank, or holds a line break."""
    gaps: tuple[str, ...]
    """What stands before, between and after the lines; one more than there are lines."""

    @classmethod
    def of(cls, text: str) -> Self:
        """Take a text apart."""
        lines: list[str] = []
        gaps = [""]
        for row in text.splitlines(keepends=True):
            line = row.strip()
            if not any(char.isprintable() and not char.isspace() for char in line):
                gaps[-1] += row
                continue
            before, after = row.split(line, 1)
            gaps[-1] += before
            lines.append(line)
            gaps.append(after)
        return cls(tuple(lines), tuple(gaps))

    def filled_with(self, lines: Sequence[str]) -> str:
        """Put translated lines, as many as there were, in the places of the original ones."""
        pairs = zip(self.gaps, (*lines, ""), strict=True)
        return "".join(gap + line for gap, line in pairs)
