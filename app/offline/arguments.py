"""Arguments: fills the parameters of a tool from the literals of a question, and invents none."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from app.gazetteer.gazetteer import Place
from app.gazetteer.languages import Language
from app.offline.literals import ROW, Days, Literal
from app.offline.text import Span, Text, masked
from app.offline.tools import OfferedTool, Parameter
from app.offline.vocabulary import FUNCTION_WORDS, SYNONYMS, UNITS, stem

__all__ = ["Arguments"]

_ACCEPTED = {
    "id": ("word", "number", "quoted"),
    "word": ("word", "quoted"),
    "other": ("quoted", "word", "number"),
    "pattern": ("currency", "word", "number", "quoted", "date", "time"),
    "place": ("place", "name", "quoted"),
    "zone": ("zone", "place"),
    "date": ("date", "quoted"),
    "days": ("days", "number"),
    "date_time": ("duration", "quoted"),
    "text": ("quoted",),
}
_SPOKEN = ("other", "id", "word", "choice", "number")
_VAGUE = ("other", "word", "id", "pattern", "number")
_BEFORE = {
    "source": r"(?:\bfrom|从|由|自|[0-9]) ?$",
    "target": r"(?:\bto|\binto|\bin|\bhow many|多少|到|去|成|为|换|往|至) ?$",
}
# What stands around a text and is no part of it; what stands in its place.
_AROUND = (
    r"(?:[\s\0,.:?!、。&\"“”]|\b(?:and|please|pls|for me|called|named|about|for|is)\b"
    r"|请问|请|帮我|麻烦|一下|分别|这个词|这句话|什么意思|[把将给和与及跟吗呢的是])*"
)
_ASKED = r"(?:\s|\b(?:what|how|do|does|is|can|could|would|you|i|ok|okay|then|so|now)\b)*"
_PRONOUN = re.compile(
    r"(?:the )?(?:th[ie]s|that|it|these|those|them|my|your|last|following|above|previous|text|sentence|question|answer"
    r"|result)\b|这|那|它|[以上下]面|以[上下]|刚才|结果|回答|内容|最后"
    r"|(?:(?:the|an?|some|in|to|into|of|i|me|name)\b\W*)+$"
)
_NOTHING = re.compile(f"(?:{'|'.join(each for each in FUNCTION_WORDS if not each.isascii())})+")
_TO_LANGUAGE = re.compile(r"(?:\b(?:from|into|to|in)\s+(?:the )?|[译翻]?[成为到作]\s*|[用从]\s*)$")


@dataclass(slots=True)
class Arguments:
    """The arguments of a tool's calls.

    Args:
        literals: The values of the question, in their order; each is used once.
        topic: The positions of the words that name the tool.
        named: The positions of the arguments that are written with their names.
        used, unfit: The positions that arguments explain, and the literals that none holds.
        others: Further values for one of the arguments, each for a call of its own.
        is_loose: Whether a value was recognised by its position alone.
    """

    tool: OfferedTool
    text: Text
    literals: Sequence[Literal]
    topic: Sequence[Span]
    named: list[Span] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    missing: list[Parameter] = field(default_factory=list)
    used: list[Span] = field(default_factory=list)
    unfit: list[str] = field(default_factory=list)
    others: list[tuple[str, Any]] = field(default_factory=list)
    is_loose: bool = False

    def fill(self) -> "Arguments":
        """Fill every parameter that the question has a value for."""
        found = self._named()
        self.used += self.named
        parameters = sorted(self.tool.parameters, key=lambda each: (each.role != "text", not each.required))
        # A number with its unit is no other parameter's, and a text is what all others leave.
        for each in (each for each in parameters if each.role == "number"):
            self._take(each, self._beside(each, self._candidates(each)), found)
        for each in parameters:
            self._take(each, self._free(each, found), found)
        for each in (each for each in parameters if each.required and each.role in ("text", "other")):
            if each.name not in found and (text := self._piece(each)) is not None:
                found[each.name] = text
        for each in (each for each in self.tool.parameters if each.required and each.name not in found):
            fixed = each.schema.get("const", each.schema.get("default"))
            if fixed is None:
                self.missing.append(each)
            else:
                found[each.name] = fixed
        self.values = {each.name: found[each.name] for each in self.tool.parameters if each.name in found}
        self.unfit = [each.text for each in self.literals if self._is_free(each) and not self._is_harmless(each)]
        return self

    def _named(self) -> dict[str, Any]:
        """The arguments that are written as ``name: value`` or ``the name is value``.

        A value ends at the next name; one that is no list and no longer text also at a comma.
        """
        text = self.text
        by_name = {each.name.lower(): each for each in self.tool.parameters if each.name and each.type != "object"}
        names = "|".join(map(re.escape, sorted(by_name, key=len, reverse=True))) or r"(?!)"
        form = rf"(?<![\w-])(?P<name>{names})(?![\w-])\s*(?:[:=]|(?P<is>\bis\b|[是为]))\s*"
        every = re.finditer(form, text.flat)
        starts = [each for each in every if not each["is"] or by_name[each["name"]].role in _SPOKEN]
        found: dict[str, Any] = {}
        for match, end in zip(starts, [*(each.start() for each in starts[1:]), len(text.raw)], strict=False):
            parameter, start = by_name[match["name"]], match.end()
            quoted = next((span for span in text.quotes if 0 <= span[0] - start <= 1), None)
            written = text.raw[slice(*quoted)] if quoted else text.raw[start:end]
            if not quoted and parameter.type != "array" and parameter.role != "text":
                written = re.split(r"[,;，；\n。?？!]|\.(?=\s|$)| and ", written, maxsplit=1)[0]
            if (value := parameter.read(written)) is not None and parameter.name not in found:
                found[parameter.name] = value
                self.named.append((match.start(), quoted[1] if quoted else start + len(written.rstrip(" ,;，；\n"))))
        return found

    def _free(self, parameter: Parameter, found: Mapping[str, Any]) -> Sequence[Literal]:
        """The values for a parameter; if any word or number may be one, those beside its name, or if it is required."""
        kind = parameter.item or parameter
        free = self._on_side(parameter, self._candidates(kind))
        if kind.role not in _VAGUE:
            return free
        numbers = [each for each in self.tool.parameters if each.required and each.role == "number"]
        rivals = [each for each in numbers if each is not parameter and each.name not in found]
        return self._beside(parameter, free) or (
            free if parameter.required and not (rivals and kind.role == "number") else []
        )

    def _take(self, parameter: Parameter, free: Sequence[Literal], found: dict[str, Any]) -> None:
        """Hold the first value, and those of a row with it for calls of their own; a list holds all."""
        if not free or parameter.name in found:
            return
        if parameter.role in ("array", "days"):
            values = [self._use(each) for each in free]
            found[parameter.name] = max(values) if parameter.role == "days" else values
            return
        found[parameter.name] = self._use(free[0])
        every = [free[0], *(each for each in self._candidates(parameter) if each.start > free[0].start)]
        rivals = [each for each in self.tool.parameters if each.role == parameter.role and "default" not in each.schema]
        for last, each in pairwise(every if all(each.name in found for each in rivals) else ()):
            is_same = last.kind == each.kind or {last.kind, each.kind} == {"place", "name"}
            if not is_same or not ROW.fullmatch(self.text.command, last.end, each.start):
                break
            if self._use(each) not in (found[parameter.name], *(value for _, value in self.others)):
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
        if parameter.role == "choice":
            found = self._choices(parameter)
        elif parameter.role == "boolean":
            found = self._switches(parameter)
        else:
            kinds = _ACCEPTED.get(parameter.role, (parameter.role,))
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

    def _beside(self, parameter: Parameter, free: Sequence[Literal]) -> list[Literal]:
        """The values directly behind the words of a parameter, or before a unit that it counts in."""
        words = [*parameter.words.split(), *re.findall("[㐀-鿿]{2,4}", parameter.about)]
        units = [unit for word in parameter.words.split() for unit in (word, *UNITS.get(stem(word), ()))]
        units += [word for word in re.findall("[a-z]+", parameter.about) if stem(word) in UNITS]
        unit = "|".join(map(re.escape, sorted(units, key=len, reverse=True))) or "(?!)"
        name = "|".join(map(re.escape, words)) or "(?!)"
        lead = re.compile(rf"(?:{name})[\s:=#]*(?:(?:\b(?:is|to|of|at|as|for|than)|[为是])[\s:=#]*)?$")
        measure = re.compile(rf"(?:[ -]?(?:{unit})s?(?![a-z]))?")
        ends = [(each, match.end()) for each in free if (match := measure.match(self.text.command, each.end))]
        return [replace(each, end=end) for each, end in ends if end > each.end or lead.search(each.before)]

    def _choices(self, parameter: Parameter) -> list[Literal]:
        """The values of an enumeration in the command, as whole words, and by their other names; the longest first."""
        found: list[Literal] = []
        for choice in parameter.choices:
            written = str(choice).lower()[:60]
            for name in filter(None, {written, written.replace("_", " "), *SYNONYMS.get(written, ())}):
                form = re.escape(name)
                if name.isascii():
                    form = rf"(?<![a-z0-9]){form}{'s?' if len(name) > 2 else ''}(?![a-z0-9])"
                # A single letter may be any word: "a".
                matches = () if re.fullmatch("[a-z]", name) else re.finditer(form, self.text.command)
                found += [self._literal(choice, each) for each in matches]
        return sorted(found, key=lambda each: (each.start, -each.end))

    def _switches(self, parameter: Parameter) -> list[Literal]:
        """Whether the name of a boolean is wanted or not; a switch is on or off."""
        is_switch = re.search(r"\b(?:on|enabled?|power|state)\b|开关", parameter.words)
        names = [parameter.words, *re.findall(r"[a-z]{4,}|[㐀-鿿]{2,}", parameter.words)]
        form = r"\bo(?:n|ff)\b|[开关]" if is_switch else "|".join(map(re.escape, names))
        found = re.search(
            rf"(?P<no>(?:\bwithout|\bno|不要|不用|不|无|没有)\s*)?(?<![a-z])(?:{form})", self.text.command
        )
        is_wanted = found is not None and not found["no"] and not (is_switch and found[0] in ("off", "关"))
        return [self._literal(is_wanted, found)] if found and found[0] else []

    def _literal(self, value: Any, match: re.Match[str]) -> Literal:
        return Literal("choice", value, *match.span(), match[0], self.text.flat[: match.start()][-12:])

    def _piece(self, parameter: Parameter) -> str | None:
        """The one part of the question that nothing else explains: a text, or a name of a few words."""
        pieces = _pieces(self.text, self.topic, self.literals, self.named)
        start, end = pieces[0] if len(pieces) == 1 else (0, 0)
        for first, last in self.used:  # what other arguments hold at an end is no part of it
            start = max(start, last) if first <= start else start
            end = min(end, first) if last >= end else end
        written = self.text.raw[start:end].strip()
        if parameter.role == "other":
            written = re.sub(r"(?i)^(?:(?:of|the|an?|to|for)\s+)+", "", written)
            says_nothing = FUNCTION_WORDS.issuperset(written.lower().split())
            if says_nothing or len(written.split()) > (4 if written.istitle() else 2):
                return None
        if not written or parameter.fit(written) is None or any(a < end and start < b for a, b in self.used):
            return None
        self.used.append((start, end))
        self.is_loose = True
        return written

    def _is_harmless(self, literal: Literal) -> bool:
        """Whether a literal needs no parameter: today, or a day that the result of a calendar tells."""
        is_calendar = "#date" in self.tool.vocabulary and not self.tool.parameters
        is_day = literal.kind == "days" and literal.value.first == literal.value.last
        return is_day and (is_calendar or literal.value.last == 0)


def _pieces(text: Text, spans: Sequence[Span], literals: Sequence[Literal], named: Sequence[Span]) -> list[Span]:
    """The parts of a question between what names the tool, the languages and the quotations: one can be a text."""
    topic = min(spans)[0] if spans else 0
    spans = [*spans, *named]
    for each in (each for each in literals if each.kind in ("language", "quoted")):
        lead = _TO_LANGUAGE.search(text.command[: each.start])
        spans.append((lead.start() if lead else each.start, each.end))
    gaps = re.finditer(r"[^\0]+", masked(text.flat, spans))
    return [span for gap in gaps if (span := _trimmed(text, *gap.span(), is_led=topic < gap.start()))]


def _trimmed(text: Text, start: int, end: int, *, is_led: bool) -> Span | None:
    """A part without politeness around it; ``None`` if nothing is left, or only words that stand for a text.

    Words that say nothing may be meant where the tool's verb leads to them: "translate plan".
    """
    asked = "" if is_led else _ASKED
    part = re.compile(rf"{_AROUND}{asked}(.*?){_AROUND}", re.DOTALL).fullmatch(text.flat, start, end)
    span = part.span(1) if part else (end, end)
    words = [word for word, _ in text.words([(0, span[0]), (span[1], len(text.flat))])]
    says = is_led or any(word not in FUNCTION_WORDS and not _NOTHING.fullmatch(word) for word in words)
    return span if words and says and not _PRONOUN.match(text.flat, *span) else None


def _become(parameter: Parameter, literal: Literal) -> Literal:
    """The literal with the value that it has for a parameter: ``None`` if it does not fit."""
    value, role = literal.value, parameter.role
    if isinstance(value, Place):
        in_english = re.search(r"\bin english\b|english name|英文名", parameter.about)
        value = value.zone if role == "zone" else value.english if in_english else literal.text
    elif literal.kind == "name":
        value = literal.text
    elif isinstance(value, Language):
        value = value.code
    elif isinstance(value, Days):
        value = value.last + 1
    if role == "date" and not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", str(value)):
        return replace(literal, value=None)
    # The digits of an id are taken as they are written: 007.
    written = [literal.text if literal.kind == "number" else str(value), literal.text, literal.text.upper()]
    fitting = map(parameter.fit, written if parameter.type == "string" else [value])
    return replace(literal, value=next((each for each in fitting if each is not None), None))
