"""A question as text: folded, with its quotations set apart, and cut in two."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from toolchat.tool_calling.text_normalization import normalize_name

Span = tuple[int, int]
LONGEST = 32_000
"""Characters of a question; what is behind them is not read."""
_TOKEN = re.compile(r"[0-9]+|[a-z][a-z0-9]*(?:['’][a-z]+)?|[㐀-鿿]+|[^\W\d_]+")
# No quotation holds its own opening mark, so that a row of these is not read again and again.
_QUOTED = re.compile(
    r"「[^「」]+」|『[^『』]+』|“[^“”]+”|‘[^‘’]+’|《[^《》]+》|\"[^\"]+\"|`[^`]+`"
    r"|(?<![A-Za-z0-9])'(?:[^']|(?<=[A-Za-z])'(?=[A-Za-z]))+'(?![A-Za-z0-9])"
)
_SEPARATOR = re.compile(r"(?:(?<![0-9]):(?!//)|:(?![0-9/])|\n)\s*")
_BREAK = re.compile(r"[;!?。、\n]+|,(?!\d)|\.(?!\S)|\b(?:and|also|then)\b|以及|还有|并且|然后|另外|同时|[和与跟及并再]")


@dataclass(frozen=True, eq=False)
class Text:
    """A question or half of one; every position is the same in ``raw`` and ``flat``."""

    raw: str
    flat: str
    """Lower case, plain width, accents removed."""
    quotes: tuple[Span, ...]
    """The inside of quotations: data for a tool, and no part of the request."""
    chinese: bool

    @classmethod
    def of(cls, written: str) -> "Text":
        """Read a question; characters that cannot be encoded are replaced."""
        raw = written[:LONGEST].encode("utf-8", "replace").decode()
        flat = normalize_name(raw)
        quotes = tuple((match.start() + 1, match.end() - 1) for match in _QUOTED.finditer(flat))[:20]
        return cls(raw, flat, quotes, is_chinese(masked(flat, quotes), otherwise=is_chinese(flat)))

    @cached_property
    def command(self) -> str:
        """The request itself: ``flat`` with the quotations masked."""
        return masked(self.flat, self.quotes)

    @cached_property
    def readable(self) -> str:
        """The command as it was written, capitals and accents included."""
        return masked(self.raw, self.quotes)

    def words(self) -> list[tuple[str, int]]:
        """The words of the command with their positions; Chinese characters in a row are one."""
        return [(match[0], match.start()) for match in _TOKEN.finditer(self.command)]

    def with_payload(self) -> "Text | None":
        """Copy in which all behind the first colon or line break is one quotation; ``None`` if it is none."""
        match = _SEPARATOR.search(self.command, len(self.flat) - len(self.flat.lstrip()) + 1)
        tail = self.command[match.end() :] if match else ""
        # Not a quotation, which is one value already, and no second "name: value".
        if match is None or not tail or tail[1:2] == "\0" or re.search(r"[,;，；]\s*\w+\s*[:=]", tail):
            return None
        before = (each for each in self.quotes if each[1] < match.start())
        return replace(self, quotes=(*before, (match.end(), len(self.raw.rstrip()))))

    def halves(self, kept: Iterable[Span]) -> Iterator[tuple["Text", "Text"]]:
        """Cut the request where it may go on to something else, but within none of the spans that are kept."""
        for match in list(_BREAK.finditer(masked(self.command, kept)))[:10]:
            yield Text.of(self.raw[: match.start()]), Text.of(self.raw[match.end() :])


def is_chinese(flat: str, *, otherwise: bool = False) -> bool:
    """Whether a text has rather Chinese characters than Latin words; ``otherwise`` if it has neither."""
    han, words = len(re.findall("[㐀-鿿]", flat)), len(re.findall("[a-z]+", flat.lower()))
    return han >= words if han or words else otherwise


def masked(text: str, spans: Iterable[Span]) -> str:
    """A text of the same length, with zeros within some spans."""
    pieces, position = [], 0
    for start, end in sorted(spans):
        if end > position:
            start = max(start, position)
            pieces += [text[position:start], "\0" * (end - start)]
            position = end
    return "".join((*pieces, text[position:]))
