"""A question as the offline model reads it: its language, its parts, and the text that it only quotes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from app.folding import folded
from app.places.gazetteer import mentions

__all__ = ["QUOTED", "Question", "Span", "blanked", "is_chinese", "question_of"]

Span = tuple[int, int]

LONGEST = 4000
"""Characters that are read; what comes after is left alone."""
_MOST_CLAUSES = 40
_MOST_PAYLOADS = 20

# What stands before a text that is only quoted: a colon that is not part of a time or an address, or a line break.
_SEPARATOR = re.compile(r"(?<![0-9]):(?!//)|:(?![0-9/])|\n")
QUOTED = re.compile(
    r"「[^」]+」|『[^』]+』|“[^”]+”|‘[^’]+’|《[^》]+》|\"[^\"]+\"|«[^»]+»|(?<![a-z0-9])'[^']+'(?![a-z0-9])"
)
# Where a question goes on to something else.
_BREAK = re.compile(
    r"[,;。!?、\n]+|\.(?=\s|$)|\b(?:and|also|then|plus|as well as)\b|以及|还有|並且|并且|并|然后|另外|同时"
    r"|和|与|跟|及|再|最后"
)
_HAN = re.compile(r"[一-鿿㐀-䶿]")
_WORD = re.compile(r"[a-z]+(?:['’][a-z]+)?")


@dataclass(frozen=True, slots=True)
class Question:
    """A question, or the part of one that a tool is to answer."""

    raw: str
    """As it was written."""
    flat: str
    """Folded; every position is the same as in ``raw``. Outside the part it is blank."""
    payloads: tuple[Span, ...]
    """Text that is quoted, or stands behind a colon or a line break: it is spoken about, not meant."""
    chinese: bool
    """Whether to answer in Chinese; else in English."""

    @property
    def command(self) -> str:
        """What is said about the payload: ``flat`` with the payloads blank."""
        return blanked(self.flat, self.payloads)

    @property
    def readable(self) -> str:
        """The command as it was written, capitals and accents included."""
        return "".join(raw if flat != " " else " " for raw, flat in zip(self.raw, self.command, strict=True))

    @property
    def payload(self) -> str | None:
        """The first payload, as written."""
        return next((self.raw[start:end] for start, end in self.payloads), None)

    def with_payloads_meant(self) -> "Question":
        """The same question, read as if nothing in it were only quoted."""
        return replace(self, payloads=())

    def part(self, spans: list[Span]) -> "Question":
        """The same question with everything outside the spans blank."""
        bounds = [0, *(edge for span in spans for edge in span), len(self.flat)]
        outside = tuple(zip(bounds[::2], bounds[1::2], strict=True))
        inside = tuple((a, b) for a, b in self.payloads if not any(start <= a < end for start, end in outside))
        return replace(self, flat=blanked(self.flat, outside), payloads=inside)

    def clauses(self) -> list[Span]:
        """Cut the question where it goes on to something else; a payload or a place's name is never cut."""
        kept = (*self.payloads, *((found.start, found.end) for found in mentions(self.raw)))
        cuts = [match.span() for match in _BREAK.finditer(blanked(self.flat, kept, "\N{OBJECT REPLACEMENT CHARACTER}"))]
        starts = [0, *(end for _, end in cuts)]
        spans = zip(starts, [*starts[1:], len(self.flat)], strict=True)
        return [(start, end) for start, end in spans if self.flat[start:end].strip()][:_MOST_CLAUSES]


def question_of(text: str) -> Question:
    """Read a question; characters that cannot be encoded are replaced."""
    raw = text[:LONGEST].encode("utf-8", "replace").decode()
    flat = folded(raw)
    payloads = tuple(islice(_payloads(raw, flat), _MOST_PAYLOADS))
    return Question(raw, flat, payloads, is_chinese(flat, payloads))


def blanked(text: str, spans: tuple[Span, ...], by: str = " ") -> str:
    """Replace parts of a text by as many blanks."""
    for start, end in spans:
        text = text[:start] + by * (end - start) + text[end:]
    return text


def is_chinese(flat: str, payloads: tuple[Span, ...], otherwise: bool = True) -> bool:
    """Whether a folded text is Chinese rather than English, by what is not payload; ``otherwise`` without a word."""
    for text in (blanked(flat, payloads), flat):
        han, words = len(_HAN.findall(text)), len(_WORD.findall(text))
        if han or words:
            return han > 0 and han >= words
    return otherwise


def _payloads(raw: str, flat: str) -> Iterator[Span]:
    """What is quoted before the first separator; else what stands behind it, without quotes around all of it."""
    separator = next((m.end() for m in _SEPARATOR.finditer(flat) if flat[: m.start()].strip()), len(flat))
    quoted = [(m.start() + 1, m.end() - 1) for m in QUOTED.finditer(flat)]
    before = [span for span in quoted if span[1] < separator]
    text = raw[separator:]
    behind = separator + len(text) - len(text.lstrip()), separator + len(text.rstrip())
    if before or not text.strip():
        yield from before
    elif quoted and (quoted[0][0] - 1, quoted[0][1] + 1) == behind:
        yield quoted[0]
    else:
        yield behind
