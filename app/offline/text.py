"""A question as text: folded, with its quotations set apart, and cut into clauses."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from toolchat.tool_calling.text_normalization import normalize_name

__all__ = ["LONGEST", "Span", "Text", "is_chinese", "masked"]

Span = tuple[int, int]
LONGEST = 32_000
"""Characters of a question; what is behind them is not read."""
_TOKEN = re.compile(r"[a-z0-9]+(?:['’][a-z]+)?|[㐀-鿿]+|[^\W\d_]+")
# No quotation holds its own opening mark, so that a row of these is not read again and again.
_QUOTED = re.compile(
    r"「[^「」]+」|『[^『』]+』|“[^“”]+”|‘[^‘’]+’|《[^《》]+》|\"[^\"]+\"|«[^«»]+»|`[^`]+`|(?<![A-Za-z0-9])'(?:[^']|(?<=[A-Za-z])'(?=[A-Za-z]))+'(?![A-Za-z0-9])"
)
_SEPARATOR = re.compile(r"(?<![0-9]):(?!//)|:(?![0-9/])|\n")
# The numbers of a list.
_MARKER = re.compile(r"(?<![\w.])[0-9]{1,2}[.)、](?=\s*[^\s\d])")
_BREAK = re.compile(
    r"[,;!?、\n]+|。|\.(?=\s|$)|\b(?:and|also|then|plus|as well as)\b|以及|还有|并且"
    r"|然后|另外|同时|顺便|[和与跟及并再]"
)


@dataclass(frozen=True, eq=False)
class Text:
    """A question or a part of one; every position is the same in ``raw`` and ``flat``."""

    raw: str
    """As it was written."""
    flat: str
    """Lower case, plain width, accents removed."""
    quotes: tuple[Span, ...]
    """The inside of quotations, or all that stands behind a colon: data for a tool, and no part of the request."""
    chinese: bool

    @classmethod
    def of(cls, written: str) -> "Text":
        """Read a question; characters that cannot be encoded are replaced."""
        raw = written[:LONGEST].encode("utf-8", "replace").decode()
        flat = normalize_name(raw)
        if len(_MARKER.findall(flat)) > 1:
            flat = _MARKER.sub(lambda match: ";" * len(match[0]), flat)
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

    def words(self, without: Iterable[Span] = ()) -> list[tuple[str, int]]:
        """The words of the command outside some spans, with their positions; Chinese characters in a row are one."""
        return [(match[0], match.start()) for match in _TOKEN.finditer(masked(self.command, without))]

    def within(self, parts: Sequence[Span]) -> "Text":
        """Copy that is blank outside some parts, whose positions stay the same."""
        bounds = [0, *(position for part in parts for position in part), len(self.raw)]
        outside = list(zip(bounds[::2], bounds[1::2], strict=True))
        return replace(self, raw=masked(self.raw, outside, " "), flat=masked(self.flat, outside, " "))

    def with_payload(self) -> "Text | None":
        """Copy in which all behind the first colon or line break is one quotation; ``None`` if there is nothing."""
        match = _SEPARATOR.search(self.command, len(self.flat) - len(self.flat.lstrip()) + 1)
        tail = self.raw[match.end() :] if match else ""
        if match is None or not tail.strip():
            return None
        span = match.end() + len(tail) - len(tail.lstrip()), match.end() + len(tail.rstrip())
        # Quotation marks around all of it are no part of it.
        span = next((each for each in self.quotes if (each[0] - 1, each[1] + 1) == span), span)
        return replace(self, quotes=(*(each for each in self.quotes if each[1] < match.start()), span))

    def clauses(self, kept: Sequence[Span]) -> list[Span]:
        """Cut the request where it may go on to something else, but within none of the spans that are kept."""
        cuts = [match.span() for match in _BREAK.finditer(masked(self.command, kept))][:40]
        spans = zip([0, *(end for _, end in cuts)], [*(start for start, _ in cuts), len(self.flat)], strict=True)
        return [(start, end) for start, end in spans if self.flat[start:end].strip()]


def is_chinese(flat: str, *, otherwise: bool = False) -> bool:
    """Whether a text has rather Chinese characters than Latin words; ``otherwise`` if it has neither."""
    han, words = len(re.findall("[㐀-鿿]", flat)), len(re.findall("[a-z]+", flat.lower()))
    return han >= words if han or words else otherwise


def masked(text: str, spans: Iterable[Span], by: str = "\0") -> str:
    """A text of the same length, with zeros within some spans."""
    characters = list(text)
    for start, end in spans:
        characters[start:end] = by * (end - start)
    return "".join(characters)
