"""Reading: what a question, or a part of it, asks of one tool; each word of it must be explained."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from toolchat.service.offline.text import Span, Text, masked
from toolchat.service.offline.tools import OfferedTool, Parameter
from toolchat.service.offline.values import Value
from toolchat.service.offline.words import ACTIONS, FUNCTION_WORDS, HAN_WORDS, terms_of

_ENOUGH = 2
_NO_WISH = re.compile(
    r"\b(?:who|how|why|when|i|did|was)\b(?!['’]d| want| need| would)|谁|怎么|如何|为什么|[了过](?:吗|没)"
)
_NEGATED = re.compile(
    r"(.)[不没]\1|(?P<no>\b(?:don['’]?t|not|never|without|cannot|can['’]?t|won['’]?t|stop|no|nothing)\b"
    r"|(?<![特告区分级性])别(?!人|的)|勿|没(?!错)|不(?!错|同))"
)
_CONDITION = re.compile(
    r"\b(?:if|unless|in case|once|except|maybe|perhaps|later|after(?! tomorrow)|before(?! yesterday)|until|while"
    r"|every(?:one|body|thing)?)\b"
    r"|如果|要是|假如|除非|除了|以[后前]|之[后前]|后$|一旦|只要|也许|可能|等到|直到"
)
_NO_NAME = re.compile(r"\b(?:was|were|did|had)\b|[,;、或]|[㐀-鿿]{2}(?:[和与跟及]|以及|还是)[㐀-鿿]{2}")
_CHANGES = {"#create", "#update", "#delete", "#send", "#book"}
_BEFORE = {
    "from": r"(?:\bfrom|从|由|自|[0-9])[ :=\"“'‘「]*$",
    "to": r"(?:\bto|\binto|\bin|\bin unit|\bhow many|多少|到|去|给|成|为|换|往|至)[ :=\"“'‘「]*$",
}
ROW = re.compile(
    r"\s*(?:[,、&;]|\b(?:and|or)\b|[和与跟及比]|还是|以及)(?:[\s,、]|\b(?:and|or|in|to|into|at|for|from|of|the)\b|[在从])*"
)
"""What stands between the values of a row."""
_PRONOUN = re.compile(
    r"(?:th[ie]s|that|it|these|those|them|my|your|last|previous)\b|这|那|它|[以上下]面|以[上下]|刚才|结果"
)
_LATIN = "|".join(sorted((each for each in FUNCTION_WORDS if each.isascii()), key=len, reverse=True))
_HAN = "|".join(sorted((each for each in FUNCTION_WORDS if not each.isascii()), key=len, reverse=True))
_AROUND = rf"(?:[\s\0,.:?!、。&\"“”;]|\b(?:{_LATIN}|for me)\b|{_HAN})*"
# A text to work on may begin with any word: only politeness and prepositions stand around it.
_AROUND_TEXT = (
    r"(?:[\s\0,.:?!、。&\"“”]|\b(?:and|please|pls|for me|about|of|is|to|into|in|from)\b|请问|请|帮我|一下|分别|这个词"
    r"|这句话|什么意思|是什么|什么|是|[把将给和与及跟吗呢的用成])*"
)
_LEAD = re.compile(r".*[把将]|(?:\s|\b(?:what|how|do|does|is|can|could|would|you|i|ok|okay|then|so|now)\b)*", re.DOTALL)


@dataclass(slots=True)
class Reading:
    """What a part of a question asks of one tool.

    Args:
        others: Further values for one of the arguments, each for a call of its own.
        used, topic: The positions that arguments explain, and those of words that name the tool.
        score: How strongly its words name the tool.
        leftover: Words that neither the tool nor its arguments explain.
        places: What its recognizer has found, as it is written.
    """

    tool: OfferedTool
    text: Text
    found: Sequence[Value]
    arguments: dict[str, Any] = field(default_factory=dict)
    others: list[tuple[str, Any]] = field(default_factory=list)
    used: list[Span] = field(default_factory=list)
    topic: list[Span] = field(default_factory=list)
    score: int = 0
    leftover: list[str] = field(default_factory=list)
    places: Sequence[str] = ()

    @property
    def missing(self) -> list[Parameter]:
        """The required parameters without a value."""
        return [each for each in self.tool.parameters if each.required and each.name not in self.arguments]

    @property
    def is_complete(self) -> bool:
        """Whether every required argument is there and nothing of the question is ignored."""
        return not (self.missing or self.leftover)

    @property
    def rank(self) -> tuple[float, ...]:
        """The order in which readings are preferred."""
        score = self.score - 3 * len(self.leftover)
        return self.is_complete, not self.tool.changes_something, score, -len(self.missing)

    def fill(self, *, with_defaults: bool = True) -> None:
        """Find the arguments: beside their names first, then by their kind, the rest of the question last."""
        parameters = sorted(self.tool.parameters, key=lambda each: not each.required)
        candidates = {each.name: each.values_in(self.text, self.found) for each in parameters}
        recognized = next((candidates[each.name] for each in parameters if each.recognizer), [])
        self.places = [self.text.raw[each.start : each.end] for each in recognized]
        for each in parameters:
            self._take(each, [one for one in candidates[each.name] if self._is_beside(each, one)])
        for each in parameters:
            if each.required or each.role not in ("text", "word", "pattern", "number"):
                self._take(each, self._on_side(each, candidates[each.name]))
        self._find_topic()
        lacking = [each for each in self.missing if each.fixed is None]
        if len(lacking) == 1 and lacking[0].role == "text" and self.score:
            self._take_rest(lacking[0])
        for each in self.missing if with_defaults else ():
            self.arguments |= {} if each.fixed is None else {each.name: each.fixed}
        self.arguments = {
            each.name: self.arguments[each.name] for each in self.tool.parameters if each.name in self.arguments
        }
        is_calendar = "#date" in self.tool.vocabulary and not self.tool.parameters
        days = [(each.start, each.end) for each in self.found if each.kind == "day" and is_calendar]
        explained = [*self.topic, *self.used, *days]
        self.leftover = [
            piece
            for piece, start, _ in _pieces(self.tool, self.text)
            if piece not in FUNCTION_WORDS and not any(one <= start < end for one, end in explained)
        ]
        # A second choice is no word of the tool.
        chosen = [one for each in parameters if each.role == "choice" for one in candidates[each.name]]
        self.leftover += [str(one.value) for one in chosen if not any(a <= one.start < b for a, b in self.used)]

    def _take(self, parameter: Parameter, found: Sequence[Value]) -> None:
        """Hold the first value, and those of a row with it for calls of their own."""
        free = [each for each in found if not any(one < each.end and each.start < end for one, end in self.used)]
        if not free or parameter.name in self.arguments:
            return
        self.arguments[parameter.name] = free[0].value
        self.used.append((free[0].start, free[0].end))
        if parameter.role == "days":
            self.used += [(each.start, each.end) for each in free]
            self.arguments[parameter.name] = max(each.value for each in free)
        elif not any(each.kind == parameter.kind and each.fixed is None for each in self.missing):
            self._take_row(parameter, free)

    def _take_row(self, parameter: Parameter, free: Sequence[Value]) -> None:
        for last, each in pairwise(free):
            between = self.text.command[last.end : each.start]
            is_open = self.tool.changes_something or not parameter.recognizer
            if not ROW.fullmatch(between) or (is_open and re.search(r"\bor\b|还是", between)):
                break
            self.used.append((each.start, each.end))
            if each.value not in (self.arguments[parameter.name], *(value for _, value in self.others)):
                self.others.append((parameter.name, each.value))

    def _is_beside(self, parameter: Parameter, value: Value) -> bool:
        """Whether a value stands behind its parameter's name; a number also behind its words, or before a unit."""
        name = parameter.names
        lead = rf"(?<![\w-])(?:{name})s?[\W_]{{0,3}}(?:(?:\b(?:is|to|of|at|as|for)|[为是])\W{{0,3}})?$"
        before = self.text.command[max(value.start - 60, 0) : value.start]
        behind = parameter.role == "number" and re.match(rf"[ -]?(?:{name})s?(?![a-z])", self.text.command[value.end :])
        return bool(behind or re.search(lead, before))

    def _on_side(self, parameter: Parameter, found: Sequence[Value]) -> Sequence[Value]:
        """The values on the parameter's side of from and to, else those that are on no side."""
        if not parameter.side:
            return found
        other = "to" if parameter.side == "from" else "from"
        before = [(each, self.text.command[: each.start][-60:]) for each in found]
        sided = [each for each, lead in before if re.search(_BEFORE[parameter.side], lead)]
        for last, each in pairwise(found):
            if last in sided and ROW.fullmatch(self.text.command, last.end, each.start):
                sided.append(each)
        # A text may be in any language: only "from French" says so. Nor is any text a receiver.
        if (parameter.side == "from" and "default" in parameter.schema) or parameter.role == "text":
            return sided
        return sided or [each for each, lead in before if not re.search(_BEFORE[other], lead)]

    @property
    def is_example(self) -> bool:
        """Whether the question is one that the tool declares to answer."""
        return self.text.raw.strip() in self.tool.metadata.examples

    def _find_topic(self) -> None:
        weights: dict[str, int] = {}
        filled = [each for each in self.tool.parameters if each.required and each.name in self.arguments]
        # Ids and choices, such as two units to convert between, tell what is meant as words do.
        is_hinted = any(each.role in ("pattern", "choice") for each in filled)
        is_action = len(self.tool.name_words) > 1 and not is_hinted
        for piece, start, term in _pieces(self.tool, self.text):
            if term and not any(one <= start < end for one, end in self.used):
                weights[term] = self.tool.vocabulary.get(term, len(piece))
                self.topic.append((start, start + len(piece)))
                is_action &= not ACTIONS.isdisjoint(terms_of(piece))
        self.score = 100 if self.is_example else 0 if is_action else sum(weights.values())

    def _take_rest(self, parameter: Parameter) -> None:
        """Take the one part of the question that nothing else explains."""
        # With a language or a place beside it, the text is what the tool works on, and may have any words.
        is_text = any(each.recognizer and each.name in self.arguments for each in self.tool.parameters)
        gaps = (gap.span() for gap in re.finditer(r"[^\0]+", masked(self.text.flat, [*self.topic, *self.used])))
        spans = [span for gap in gaps if (span := self._trimmed(*gap, is_text)) and span[0] < span[1]]
        start, end = spans[0] if len(spans) == 1 else (0, 0)
        words = self.text.flat[start:end].split()
        if not words or _PRONOUN.match(self.text.flat, start) or not (is_text or self._is_name(parameter, start, end)):
            start, end = self._whole_question(len(spans))
        written = self.text.raw[start:end]
        # A number is a text only where nothing is changed.
        if (
            re.search(r"[^\W\d]" if self.tool.changes_something or is_text else r"\w", written)
            and parameter.fit(written) is not None
        ):
            self.arguments[parameter.name] = written
            self.used.append((start, end))

    def _is_name(self, parameter: Parameter, start: int, end: int) -> bool:
        """Whether a part may be a name, or a few words to search for."""
        part, before = self.text.flat[start:end], self.text.flat[:start]
        words = part.split()
        is_verb = self.tool.changes_something and not any(ACTIONS.isdisjoint(terms_of(each)) for each in words)
        is_more = any(form.search(part) for form in (_NEGATED, _CONDITION, _NO_NAME))
        if len(words) > 4 or is_verb or is_more or not FUNCTION_WORDS.isdisjoint(words):
            return False
        if any(each.kind in ("day", "days", "date", "time") and start <= each.start < end for each in self.found):
            return False
        # "Your goods are terrible", "which goods sell best": it says something of the tool's words.
        is_said = re.search(r"\b(?:is|are|was|were)\W*(?:an?\W*|the\W*)?$", before)
        is_given = re.search(rf"\b{re.escape(parameter.words)} \w+\W*$", before)
        if is_said and not is_given and min(self.topic, default=(0, 0))[0] < start:
            return False
        is_led = re.search(r"\b(?:for|with|about|of|use|called) $", before)
        return len(words) == 1 or bool(is_led) or not re.match(r"\W*(?:which|who|how|why|when)\b", before)

    def _trimmed(self, start: int, end: int, is_text: bool) -> Span | None:
        """A part without what stands around it."""
        around = _AROUND_TEXT if is_text else _AROUND
        lead = (
            _LEAD.match(self.text.flat, start, end) if is_text and start <= min(self.topic, default=(0, 0))[0] else None
        )
        part = re.compile(rf"{around}(.*?){around}", re.DOTALL).fullmatch(
            self.text.flat, lead.end() if lead else start, end
        )
        return part.span(1) if part else None

    def _whole_question(self, parts: int) -> Span:
        """All of a question, for a tool that searches by a text."""
        is_search = self.tool.metadata.is_read_only and "#search" in self.tool.vocabulary
        is_question = re.search(r"[?？]\s*$|吗|什么|怎么|如何|多少|哪", self.text.flat)
        is_meant = is_search and is_question and parts and not _NEGATED.search(self.text.command)
        if not is_meant and not self.is_example:
            return 0, 0
        return len(self.text.raw) - len(self.text.raw.lstrip()), len(self.text.raw.rstrip())


def read(tool: OfferedTool, text: Text, found: Sequence[Value]) -> Reading | None:
    """Read a part of a question as a call of one tool; ``None`` if it does not name it, or forbids it."""
    reading = Reading(tool, text, found)
    reading.fill()
    named = [each for each in tool.parameters if each.required and each.name in reading.arguments]
    # An id, or two units to convert between, name a tool without words.
    hints = sum(2 if each.role == "pattern" else each.role == "choice" and each.side != "" for each in named)
    if reading.score + hints < _ENOUGH or (tool.changes_something and _NO_WISH.search(text.command)):
        return None
    # One value does not tell that something is to be changed: its verb does.
    verbs = ACTIONS & {term for term, weight in tool.vocabulary.items() if weight > 1}
    said = (*(word for word, _ in text.words()), *(each for each in HAN_WORDS if each in text.command))
    is_guess = tool.changes_something and verbs & _CHANGES and len(named) < 2 and reading.score < 100
    if is_guess and all(verbs.isdisjoint(terms_of(word)) for word in said):
        return None
    rest = masked(text.command, [*reading.topic, *reading.used])
    if _CONDITION.search(rest) or any(
        each["no"] and rest[each.start()] != "\0" for each in _NEGATED.finditer(text.command)
    ):
        return None
    return reading


def _pieces(tool: OfferedTool, text: Text) -> Iterator[tuple[str, int, str]]:
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
            known = (each for each in pieces if each in FUNCTION_WORDS or len(terms_of(each)) > 1 or each in tool.han)
            piece = next(known, word[position])
            term = _term(tool, piece) or (piece if len(piece) > 1 and piece in tool.han else "")
            yield piece, start + position, "" if piece in FUNCTION_WORDS and len(terms_of(piece)) < 2 else term
            position += len(piece)


def _term(tool: OfferedTool, word: str) -> str:
    matched = [each for each in terms_of(word) if each in tool.vocabulary and (each[0] == "#" or word.isascii())]
    return max(matched, key=lambda each: (each not in ACTIONS, tool.vocabulary[each], each), default="")
