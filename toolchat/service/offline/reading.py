"""Reading: what a question, or a part of it, asks of one tool, and which of its words nothing explains."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from toolchat.service.offline.arguments import Arguments
from toolchat.service.offline.literals import Literal
from toolchat.service.offline.text import Span, Text, masked
from toolchat.service.offline.tools import OfferedTool, terms_of
from toolchat.service.offline.vocabulary import ACTIONS, FUNCTION_WORDS, concepts_of

_Words = Sequence[tuple[str, int, str]]
_ENOUGH = 3
_NAMING = ("word", "name")  # kinds of literals that may also name the tool
_NO_WISH = re.compile(r"\b(?:who|how|why)\b|谁|怎么|如何|为什么")
_NEGATED = re.compile(
    r"(.)[不没]\1|(?P<no>\b(?:don['’]?t|(?:do|does|did) not|not|never|without|cannot|can['’]?t|won['’]?t|stop|no)\b"
    r"|(?<![特告区分级性])别(?!人|的)|勿|没(?!错)|不(?!错|同))"
)


@dataclass(slots=True)
class Reading:
    """What a part of a question asks of one tool.

    Args:
        score: How strongly its words name the tool.
        leftover: Words that neither the tool nor its arguments explain.
        is_order: Whether the part orders just this call: otherwise a tool that changes something waits for a yes.
    """

    arguments: Arguments
    score: int
    leftover: Sequence[str]
    is_order: bool

    @property
    def is_complete(self) -> bool:
        """Whether every required argument is there and nothing of the question is ignored."""
        return not (self.arguments.missing or self.arguments.unfit or self.leftover)

    @property
    def rank(self) -> tuple[bool | int, ...]:
        """The order in which readings are preferred."""
        given = self.arguments
        score = self.score - 3 * len(self.leftover) - 2 * len(given.unfit)
        is_sure = self.is_complete and not given.is_loose
        is_asked = given.tool.metadata.is_read_only or self.is_order  # reading precedes writing that nobody ordered
        return self.is_complete, is_sure, is_asked, score, -len(given.missing), len(given.used)


def read(tool: OfferedTool, text: Text, literals: Sequence[Literal]) -> Reading | None:
    """Read a part of a question as a call of one tool; ``None`` if it does not name it, or forbids it."""
    words = list(_words(tool, text))
    score, spans = _score(tool, text, words, literals)
    units = [each.name for each in tool.parameters if each.role == "choice" and each.side]
    if not score and not units:
        return None
    rest = masked(text.command, spans)
    own = [each for each in literals if each.kind not in _NAMING or rest[each.start] != "\0"]
    arguments = Arguments(tool, text, own, spans).fill()
    # An id, or two units to convert between, tell what is meant as well.
    has_units = len(units) > 1 and arguments.values.keys() >= set(units)
    has_id = any(each.role in ("id", "pattern") and each.name in arguments.values for each in tool.parameters)
    if score + 3 * has_units + has_id < _ENOUGH or (tool.changes_something and _NO_WISH.search(text.command)):
        return None
    rest = masked(text.command, [*spans, *arguments.used])
    if any(each["no"] and rest[each.start()] != "\0" for each in _NEGATED.finditer(text.command)):
        return None
    known = [(start, start + len(piece)) for piece, start, _ in words if piece in FUNCTION_WORDS]
    # Literals are judged with the arguments.
    explained = [*known, *spans, *arguments.used, *((each.start, each.end) for each in own)]
    leftover = [word for word, _ in text.words(explained)]
    is_guess = arguments.is_loose or arguments.others or text.has_payload
    is_order = not is_guess and _is_order(tool, text, words, spans)
    return Reading(arguments, score, leftover, is_order)


def _score(tool: OfferedTool, text: Text, words: _Words, literals: Sequence[Literal]) -> tuple[int, list[Span]]:
    """How many words of a part name the tool, and where they stand."""
    weights: dict[str, int] = {}
    spans: list[Span] = []
    rest = masked(text.flat, [(each.start, each.end) for each in literals if each.kind not in _NAMING])
    for piece, start, term in words:
        if term and rest[start] != "\0":
            weights[term] = tool.vocabulary.get(term, len(piece))
            spans.append((start, start + len(piece)))
    is_action = ACTIONS.issuperset(weights) and len(tool.name_words) > 1
    return 0 if is_action else sum(weights.values()), spans


def _words(tool: OfferedTool, text: Text) -> Iterator[tuple[str, int, str]]:
    """The words of a part with their positions and, if the tool uses them, the strongest term that they match.

    Rows of Chinese characters are cut into the longest pieces that are known.
    """
    for word, start in text.words():
        if not "㐀" <= word[0] <= "鿿":
            is_common = word in FUNCTION_WORDS and word not in tool.name_words
            yield word, start, "" if is_common else _term(tool, word)
            continue
        position = 0
        while position < len(word):
            pieces = (word[position : position + size] for size in range(8, 1, -1))
            known = (each for each in pieces if each in FUNCTION_WORDS or concepts_of(each) or each in tool.han)
            piece = next(known, word[position])
            is_common = piece in FUNCTION_WORDS and not concepts_of(piece)
            term = _term(tool, piece) or (piece if len(piece) > 1 and piece in tool.han else "")
            yield piece, start + position, "" if is_common else term
            position += len(piece)


def _term(tool: OfferedTool, word: str) -> str:
    matched = [each for each in terms_of(word) if each in tool.vocabulary and (each[0] == "#" or word.isascii())]
    return max(matched, key=lambda each: (each not in ACTIONS, tool.vocabulary[each], each), default="")


def _is_order(tool: OfferedTool, text: Text, words: _Words, spans: Sequence[Span]) -> bool:
    """Whether a part begins with the tool's words, has all of its name, and is no question or supposition."""
    said = {term for piece, _, _ in words for term in terms_of(piece)}
    has_name = terms_of(tool.name.lower()) <= said or all(said & terms_of(word) for word in tool.name_words)
    first = next((start for word, start in text.words() if word not in FUNCTION_WORDS), 0)
    begins = text.chinese or any(start <= first < end for start, end in spans)
    return has_name and begins and not text.is_question
