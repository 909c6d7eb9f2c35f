"""Arguments: fills the parameters of a tool from the literals of a question, and invents none."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

from toolchat.service.gazetteer.gazetteer import Place
from toolchat.service.offline.literals import ROW, Literal
from toolchat.service.offline.text import Span, Text, masked
from toolchat.service.offline.tools import OfferedTool, Parameter
from toolchat.service.offline.vocabulary import FUNCTION_WORDS, SYNONYMS

_ACCEPTED = {
    "id": ("word", "number", "quoted"),
    "word": ("word", "quoted"),
    "currency": ("word", "quoted"),
    "other": ("quoted", "word", "name", "number"),
    "pattern": ("word", "number", "quoted", "date", "time"),
    "place": ("place", "name", "quoted"),
    "zone": ("zone", "place"),
    "date": ("date", "quoted"),
    "days": ("day", "days", "number"),
    "date_time": ("duration", "quoted"),
    "text": ("quoted",),
}
_VAGUE = ("other", "word", "id", "pattern", "number")
_BEFORE = {
    "source": r"(?:\bfrom|从|由|自|[0-9])[ :=\"“'‘「]*$",
    "target": r"(?:\bto|\binto|\bin|\bhow many|多少|到|去|给|成|为|换|往|至)[ :=\"“'‘「]*$",
}
# What stands around a text, or around a name, and is no part of it; what stands in its place.
_POLITE = "and|please|pls|for me|called|named|about|for|of|is"
_AROUND, _AROUND_NAME = (
    rf"(?:[\s\0,.:?!、。&\"“”]|\b(?:{words})\b|请问|请|帮我|麻烦|一下|分别|这个词|这句话|什么意思|[叫把将给和与及跟吗呢的是])*"
    for words in (_POLITE, f"{_POLITE}|the|an?|to|with|from|in|on")
)
_LEAD = re.compile(r".*[把将]|(?:\s|\b(?:what|how|do|does|is|can|could|would|you|i|ok|okay|then|so|now)\b)*", re.DOTALL)
_PRONOUN = re.compile(
    r"(?:the |an? )?(?:th[ie]s|that|it|these|those|them|my|your|last|following|above|previous|text|sentence|question"
    r"|answer|message|note|result)\b|这|那|它|[以上下]面|以[上下]|刚才|结果|回答|内容|最后"
)
_GREETING = re.compile(r"(?:[你您]好|谢谢|hello|hi|thanks|thank you)\s*(?=[\0a-z㐀-鿿])")  # a text, if more follows
_PLAIN = FUNCTION_WORDS | {"not", "without"}  # no name holds one of these
_TO_LANGUAGE = re.compile(r"(?:\b(?:from|into|to|in)\s+(?:the )?|[译翻]?[成为到作]\s*|[用从]\s*)$")


@dataclass
class Arguments:
    """The arguments of a tool's calls.

    Args:
        literals: The values of the question, in their order; each is used once.
        topic: The positions of the words that name the tool.
        used, unfit: The positions that arguments explain, and the literals that none holds.
        others: Further values for one of the arguments, each for a call of its own.
        is_loose: Whether a value was recognised by its position alone.
    """

    tool: OfferedTool
    text: Text
    literals: Sequence[Literal]
    topic: Sequence[Span]
    values: dict[str, Any] = field(default_factory=dict)
    used: list[Span] = field(default_factory=list)
    others: list[tuple[str, Any]] = field(default_factory=list)
    is_loose: bool = False

    @property
    def missing(self) -> list[Parameter]:
        """The required parameters without a value."""
        return [each for each in self.tool.parameters if each.required and each.name not in self.values]

    @cached_property
    def unfit(self) -> list[str]:
        """The values of the question that no parameter holds, but for today, and a day that a calendar tells."""
        is_calendar = "#date" in self.tool.vocabulary and not self.tool.parameters
        filled = [each for each in self.tool.parameters if each.role == "choice" and each.name in self.values]
        choices = [choice for each in filled for choice in find_choices(each, self.text)]
        free = [each for each in (*self.literals, *choices) if self._is_free(each)]
        return [each.text for each in free if each.kind != "day" or (each.value > 1 and not is_calendar)]

    def fill(self) -> "Arguments":
        """Fill every parameter that the question has a value for."""
        parameters = sorted(self.tool.parameters, key=lambda each: (each.role != "text", not each.required))
        for each in parameters:
            self._take(each, list(self._beside(each)))
        texts = [each for each in self.missing if each.role in ("text", "other")]
        for each in parameters:
            self._take(each, self._free(each))
        for each in self.missing:
            rest = self._rest(each) if each.role in ("text", "other") else None
            fixed = each.schema.get("const", each.schema.get("default")) if rest is None else rest
            self.values |= {} if fixed is None else {each.name: fixed}
        # Which of two texts is which is a guess.
        self.is_loose |= sum(each.name in self.values for each in texts) > 1
        self.values = {each.name: self.values[each.name] for each in self.tool.parameters if each.name in self.values}
        return self

    def _free(self, parameter: Parameter) -> Sequence[Literal]:
        """The values for a parameter; if any word or number may be one, only if it is required."""
        rivals = [each for each in self.missing if each.role == "number" and each is not parameter]
        is_only = parameter.required and not (rivals and parameter.role == "number")
        return self._on_side(parameter, self._candidates(parameter)) if is_only or parameter.role not in _VAGUE else []

    def _take(self, parameter: Parameter, free: Sequence[Literal]) -> None:
        """Hold the first value, and those of a row with it for calls of their own."""
        if not free or parameter.name in self.values:
            return
        if parameter.role == "days":
            self.values[parameter.name] = max([self._use(each) for each in free])
            return
        self.values[parameter.name] = self._use(free[0])
        if any(each.role == parameter.role and "default" not in each.schema for each in self.missing):
            return
        for last, each in pairwise([free[0], *(one for one in self._candidates(parameter) if one.start > free[0].end)]):
            is_same = last.kind == each.kind or {last.kind, each.kind} == {"place", "name"}
            is_either = self.tool.changes_something and re.search("or|还是", self.text.command[last.end : each.start])
            if not is_same or is_either or not ROW.fullmatch(self.text.command, last.end, each.start):
                break
            if self._use(each) not in (self.values[parameter.name], *(value for _, value in self.others)):
                self.others.append((parameter.name, each.value))

    def _use(self, literal: Literal) -> Any:
        self.used.append((literal.start, literal.end))
        # "change the newsletter" does not say how
        self.is_loose |= literal.kind == "name" or (literal.value is True and self.tool.changes_something)
        return literal.value

    def _is_free(self, literal: Literal) -> bool:
        return not any(start < literal.end and literal.start < end for start, end in self.used)

    def _candidates(self, parameter: Parameter) -> list[Literal]:
        """What a parameter can take, with its values in the form of its schema."""
        if parameter.role in ("choice", "boolean"):
            found = sorted(find_choices(parameter, self.text), key=lambda each: (each.start, -each.end))
        else:
            kinds = _ACCEPTED.get(parameter.role, (parameter.role,))
            # A number that stands alone may be a text, but nothing is changed on such a guess.
            is_alone = sum(each.kind == "number" for each in self.literals) == 1
            kinds = kinds if parameter.role != "other" or (is_alone and not self.tool.changes_something) else kinds[:-1]
            found = [_become(parameter, each) for each in self.literals if each.kind in kinds]
        return [each for each in found if each.value is not None and self._is_free(each)]

    def _on_side(self, parameter: Parameter, free: Sequence[Literal]) -> Sequence[Literal]:
        """The values on the parameter's side of from and to, else those that are on no side."""
        if parameter.side not in _BEFORE:
            return free
        own, other = _BEFORE[parameter.side], _BEFORE["target" if parameter.side == "source" else "source"]
        # A text may be in any language: only "from French" says so.
        rest = [] if (parameter.role, parameter.side) == ("language", "source") else free
        sided = [each for each in free if re.search(own, each.before)]
        return sided or [each for each in rest if not re.search(other, each.before)]

    def _beside(self, parameter: Parameter) -> Iterator[Literal]:
        """The values directly behind the name of a parameter; numbers also behind its words, or before a unit."""
        words, is_number = {parameter.name.lower(), parameter.words}, parameter.role == "number"
        if is_number:
            words |= {*parameter.words.split(), *re.findall("[a-z]{4,}|[㐀-鿿]{2,4}", parameter.about)}
        name = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
        lead = rf"(?<![\w-])(?:{name})[\W_]{{0,3}}(?:(?:\b(?:is|to|of|at|as|for|than)|[为是])\W{{0,3}})?$"
        lead += f"|{_BEFORE[parameter.side]}" if parameter.side and parameter.role == "other" else ""
        unit = re.compile(rf"[ -]?(?:{name})s?(?![a-z])" if is_number else "(?!)")
        for each in self._candidates(parameter):
            measured = unit.match(self.text.command, each.end)
            if measured or re.search(lead, each.before):
                yield replace(each, end=measured.end() if measured else each.end)

    def _rest(self, parameter: Parameter) -> str | None:
        """The one part of the question that nothing else explains: a text, or a name of one or two words."""
        spans = [*self.topic, *self.used]
        for each in (each for each in self.literals if each.kind in ("language", "quoted")):
            lead = _TO_LANGUAGE.search(self.text.command[: each.start])
            spans.append((lead.start() if lead else each.start, each.end))
        gaps = (gap.span() for gap in re.finditer(r"[^\0]+", masked(self.text.flat, spans)))
        first = min(self.topic, default=(0, 0))[0]
        is_text = parameter.role == "text" and any(each.role == "language" for each in self.tool.parameters)
        around = _AROUND if is_text else _AROUND_NAME
        found = [span for gap in gaps if (span := _trimmed(self.text, *gap, around, is_led=first < gap[0]))]
        start, end = found[0] if len(found) == 1 and not _PRONOUN.match(self.text.flat, *found[0]) else (0, 0)
        written = self.text.raw[start:end]
        words = written.lower().split()
        is_whole = len(words) < 4 and not re.match("[㐀-鿿]", self.text.flat[end:])
        is_name = is_whole and _PLAIN.isdisjoint(words) and first < start and not self.text.is_question
        if not re.search(r"[^\W\d]", written) or not (is_text or is_name) or parameter.fit(written) is None:
            return None
        self.used.append((start, end))
        self.is_loose = True
        return written


def find_choices(parameter: Parameter, text: Text) -> Iterator[Literal]:
    """The values of an enumeration or a switch that a question names, as whole words."""
    for choice, name in _names_of(parameter):
        form = re.escape(name)
        if name.isascii():
            form = rf"(?<![a-z0-9]){form.removesuffix('s') + 's?' if len(name) > 2 else form}(?![a-z0-9])"
        # A single letter may be any word: "a".
        for match in () if re.fullmatch("[a-z]", name) else re.finditer(form, text.command):
            yield Literal(f"={parameter.name}", choice, *match.span(), match[0], text.flat[: match.start()][-60:])


def _names_of(parameter: Parameter) -> Iterator[tuple[Any, str]]:
    """The values of an enumeration or a switch, each with a name for it."""
    for choice in parameter.choices:
        written = str(choice).lower()[:60]
        described = re.findall(rf"\b{re.escape(written)}\W{{1,2}}([㐀-鿿]{{1,8}})", parameter.about)
        names = {written, written.replace("_", " "), *SYNONYMS.get(written, ()), *described}
        yield from ((choice, name) for name in names if name)
    if parameter.role == "boolean" and re.search(r"\b(?:on|enabled?|power|state)\b|开关", parameter.words):
        yield from ((True, "on"), (True, "开"), (False, "off"), (False, "关"))
    elif parameter.role == "boolean":
        for name in (parameter.words, *re.findall(r"[a-z]{4,}|[㐀-鿿]{2,}", parameter.words)):
            yield True, name
            yield from ((False, f"{no}{name}") for no in ("without ", "no ", "不要", "不用", "不", "无", "没有"))


def _trimmed(text: Text, start: int, end: int, around: str, *, is_led: bool) -> Span | None:
    """A part without politeness around it; ``None`` if nothing is left that can be a text."""
    lead = None if is_led else _LEAD.match(text.flat, start, end)
    part = re.compile(rf"{around}(.*?){around}", re.DOTALL).fullmatch(text.flat, lead.end() if lead else start, end)
    span = part.span(1) if part else (end, end)
    words = [word for word, _ in text.words([(0, span[0]), (span[1], len(text.flat))])]
    says = is_led or not FUNCTION_WORDS.issuperset(words) or _GREETING.match(text.flat, span[0])
    return span if words and says else None


def _become(parameter: Parameter, literal: Literal) -> Literal:
    """The literal with the value that it has for a parameter: ``None`` if it does not fit."""
    value, role = literal.value, parameter.role
    if isinstance(value, Place):
        in_english = re.search(r"\bin english\b|english name|英文名", parameter.about)
        value = value.zone if role == "zone" else value.english if in_english else literal.text
    elif literal.kind == "name":
        is_lost = role == "place" and not re.search(r"\b(?:in|at|for|to|from|near|about) $", literal.before)
        value = None if is_lost else literal.text
    is_long = role in ("id", "word") and len(literal.text.split()) > 1
    if value is None or is_long or (role == "date" and not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", str(value))):
        return replace(literal, value=None)
    # The digits of an id are taken as they are written: 007.
    written = [literal.text if literal.kind == "number" else str(value), literal.text, literal.text.upper()]
    fitting = map(parameter.fit, written if parameter.type == "string" else [value])
    return replace(literal, value=next((each for each in fitting if each is not None), None))
