"""Arguments: fills the parameters of a tool from the literals of a question, and invents none."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from app.gazetteer.gazetteer import find_place
from app.gazetteer.languages import Language
from app.offline.literals import Literal, NamedPlace
from app.offline.text import Span, Text
from app.offline.tools import OfferedTool, Parameter
from app.offline.vocabulary import FUNCTION_WORDS, SYNONYMS, UNITS, stem

__all__ = ["Arguments", "Candidate", "named_arguments"]

_ACCEPTED = {
    "id": ("word", "number", "quoted"),
    "word": ("word", "quoted"),
    "other": ("quoted", "word", "number"),
    "pattern": ("currency", "word", "number", "quoted", "date", "time"),
    "place": ("place", "quoted"),
    "zone": ("place", "quoted"),
    "date": ("date", "quoted"),
    "days": ("days", "number"),
    "date_time": ("date", "time", "duration", "quoted"),
    "text": ("quoted",),
}
_VAGUE = ("other", "word", "id", "pattern", "number")
Candidate = tuple[Span, Any, Literal]
"""A value for a parameter, its position and what it was made from."""
_BEFORE = {
    "source": r"(?:\bfrom|从|由|自|[0-9]) ?$",
    "target": r"(?:\bto|\binto|\bin|\bhow many|多少|到|去|成|为|换|往|至) ?$",
}
_ROW = re.compile(
    r"\s*(?:[,、&;]|\b(?:and|or)\b|[和与跟及比]|还是|以及)(?:[\s,、]|\b(?:and|or|in|to|into|at|for|from)\b|[在从])*"
)


def named_arguments(tool: OfferedTool, text: Text) -> dict[str, tuple[Any, Span]]:
    """The arguments that a question writes as ``name: value`` or ``the name is value``, each with its position.

    A value ends at the next name; one that is no list and no longer text also at a comma.
    """
    by_name = {each.name.lower(): each for each in tool.parameters if each.name and each.type != "object"}
    names = "|".join(map(re.escape, sorted(by_name, key=len, reverse=True))) or r"(?!)"
    form = rf"(?<![\w-])(?P<name>{names})(?![\w-])\s*(?:[:=]|(?P<is>\bis\b|[是为]))\s*"
    spoken = ("other", "id", "word", "choice", "number")
    starts = [each for each in re.finditer(form, text.flat) if not each["is"] or by_name[each["name"]].role in spoken]
    found: dict[str, tuple[Any, Span]] = {}
    for match, end in zip(starts, [*(each.start() for each in starts[1:]), len(text.raw)], strict=False):
        parameter, start = by_name[match["name"]], match.end()
        quoted = next((span for span in text.quotes if 0 <= span[0] - start <= 1), None)
        written = text.raw[slice(*quoted)] if quoted else text.raw[start:end]
        if not quoted and parameter.type != "array" and parameter.role != "text":
            written = re.split(r"[,;，；\n。?？!]|\.(?=\s|$)| and ", written, maxsplit=1)[0]
        if (value := parameter.read(written)) is not None and parameter.name not in found:
            stop = quoted[1] if quoted else start + len(written.rstrip(" ,;，；\n"))
            found[parameter.name] = value, (match.start(), stop)
    return found


@dataclass(slots=True)
class Arguments:
    """The arguments of a tool's calls.

    Args:
        literals: The values of the question, in their order; each is used once.
        pieces: The unexplained parts of the question, of which one can be a text.
        named: The arguments that are written with their names.
        defaults: Whether a required parameter takes the default of its schema.
        used, unfit: The positions that arguments explain, and the literals that none holds.
        others: Further values for one of the arguments, each for a call of its own.
        is_loose: Whether a value was recognised by its position alone.
    """

    tool: OfferedTool
    text: Text
    literals: Sequence[Literal]
    pieces: Sequence[Span] = ()
    named: Mapping[str, tuple[Any, Span]] = field(default_factory=dict)
    defaults: bool = True
    values: dict[str, Any] = field(default_factory=dict)
    missing: list[Parameter] = field(default_factory=list)
    used: list[Span] = field(default_factory=list)
    unfit: list[str] = field(default_factory=list)
    others: list[tuple[str, Any]] = field(default_factory=list)
    is_loose: bool = False
    _held: list[Literal] = field(default_factory=list)

    def fill(self) -> "Arguments":
        """Fill every parameter that the question has a value for."""
        found: dict[str, Any] = {name: value for name, (value, _) in self.named.items()}
        self.used += [span for _, span in self.named.values()]
        # In steps, so that a number with its unit is no other parameter's, and a text is what all others leave.
        for step in ("beside", "quoted", "others", "pieces"):
            for each in sorted(self.tool.parameters, key=lambda each: not each.required):
                if each.name not in found and (value := self._value(each, step, found)) is not None:
                    found[each.name] = value
        for each in (each for each in self.tool.parameters if each.required and each.name not in found):
            if "default" in each.schema and self.defaults:
                found[each.name] = each.schema["default"]
            else:
                self.missing.append(each)
        self.values = {each.name: found[each.name] for each in self.tool.parameters if each.name in found}
        self.unfit = [each.text for each in self.literals if not self._is_held(each) and not self._is_harmless(each)]
        return self

    def _value(self, parameter: Parameter, step: str, found: Mapping[str, Any]) -> Any:
        """The value of a parameter, if it is found in this step."""
        role, is_vague = parameter.role, parameter.role in _VAGUE
        if step == "pieces":
            return self._piece(parameter) if role in ("text", "other") else None
        if step != ("quoted" if role == "text" else "others") and (role, step) != ("number", "beside"):
            return None
        every = self._free(parameter.item or parameter)
        free = self._on_side(parameter, every)
        if is_vague or (role == "array" and parameter.item and parameter.item.role in _VAGUE):
            beside = [each for each in free if self._is_beside(parameter, each)]
            rivals = [each for each in self.tool.parameters if each.required and each.role == role == "number"]
            is_sure = parameter.required and all(each is parameter or each.name in found for each in rivals)
            if not beside and not parameter.required and role == "pattern" and self._is_alone(parameter, free, found):
                is_sure = self.is_loose = True
            free = beside or (free if is_sure and step == "others" else [])
        if role in ("array", "days"):
            values = [self._hold(each) for each in free]
            return (max(values) if role == "days" else values) if values else None
        rivals = [each for each in self.tool.parameters if each.role == role and "default" not in each.schema]
        is_row = all(each is parameter or each.name in found for each in rivals)
        return self._one(parameter, [*free[:1], *(each for each in every if is_row and free and each[0] > free[0][0])])

    def _is_alone(self, parameter: Parameter, free: Sequence[Candidate], found: Mapping[str, Any]) -> bool:
        """Whether one value is left that fits the pattern of a parameter, and no other parameter takes it."""
        others = [each for each in self.tool.parameters if each is not parameter and each.name not in found]
        taken = [literal for each in others for _, _, literal in self._free(each)]
        return len(free) == 1 and not any(each is free[0][2] for each in taken)

    def _one(self, parameter: Parameter, free: Sequence[Candidate]) -> Any:
        """The first of the values, and those in a row with it for calls of their own."""
        if parameter.role == "date_time" and {each.kind for _, _, each in free} >= {"date", "time"}:
            pair = [next(each for each in free if each[2].kind == kind) for kind in ("date", "time")]
            return "T".join(map(self._hold, pair)) + ":00"
        free = [each for each in free if parameter.role != "date_time" or each[2].kind not in ("date", "time")]
        if not free:
            return const if (const := parameter.schema.get("const")) is not None else None
        value = self._hold(free[0])
        for (last, _, one), (span, further, other) in pairwise(free):
            if one.kind != other.kind or not _ROW.fullmatch(self.text.command, last[1], span[0]):
                break
            if self._hold((span, further, other)) not in (value, *(each for _, each in self.others)):
                self.others.append((parameter.name, further))
        return value

    def _hold(self, candidate: Candidate) -> Any:
        span, value, literal = candidate
        self.used.append(span)
        self._held.append(literal)
        self.is_loose |= literal.kind == "place" and literal.value.zone is None
        self.is_loose |= literal.value is True and self.tool.changes_something  # "change the newsletter"
        return value

    def _is_held(self, literal: Literal) -> bool:
        return any(each is literal for each in self._held) or any(a <= literal.start < b for a, b in self.used)

    def _free(self, parameter: Parameter) -> list[Candidate]:
        """The values that are left for a parameter, each with its position."""
        if parameter.role == "choice":
            return self._mentioned(parameter)
        if parameter.role == "boolean":
            return self._switched(parameter)
        kinds = _ACCEPTED.get(parameter.role, (parameter.role,))
        left = [each for each in self.literals if each.kind in kinds and not self._is_held(each)]
        found = [(self._span(parameter, each), _become(parameter, each), each) for each in left]
        return [each for each in found if each[1] is not None]

    def _span(self, parameter: Parameter, literal: Literal) -> Span:
        unit = self._unit(parameter, literal) if parameter.role == "number" else None
        return literal.start, unit.end() if unit else literal.end

    def _on_side(self, parameter: Parameter, free: Sequence[Candidate]) -> Sequence[Candidate]:
        """The values on the parameter's side of from and to, else those that are on no side."""
        if parameter.side not in _BEFORE:
            return free
        own, other = _BEFORE[parameter.side], _BEFORE["target" if parameter.side == "source" else "source"]
        # A text may be in any language: only "from French" says so.
        rest = [] if (parameter.role, parameter.side) == ("language", "source") else free
        sided = [each for each in free if re.search(own, each[2].before)]
        return sided or [each for each in rest if not re.search(other, each[2].before)]

    def _is_beside(self, parameter: Parameter, candidate: Candidate) -> bool:
        """Whether the words of a parameter stand directly before a value, or the unit that it counts in behind it."""
        words = [*parameter.words.split(), *re.findall("[㐀-鿿]{2,4}", parameter.about)]
        before = re.sub(r"[\s:=#]*(?:\b(?:is|to|of|at|as|for|than)|[为是])?[\s:=#]*$", "", candidate[2].before)
        return before.endswith(tuple(words)) or self._unit(parameter, candidate[2]) is not None

    def _unit(self, parameter: Parameter, literal: Literal) -> re.Match[str] | None:
        """Find the unit of a parameter behind a literal."""
        units = [unit for word in parameter.words.split() for unit in (word, *UNITS.get(stem(word), ()))]
        units += [word for word in re.findall("[a-z]+", parameter.about) if stem(word) in UNITS]
        form = "|".join(map(re.escape, sorted(units, key=len, reverse=True))) or "(?!)"
        return re.compile(rf"[ -]?(?:{form})s?(?![a-z])").match(self.text.command, literal.end)

    def _mentioned(self, parameter: Parameter) -> list[Candidate]:
        """The values of an enumeration in the command, as whole words, and by their other names."""
        found: list[Candidate] = []
        for choice in parameter.choices:
            written = str(choice).lower()[:60]
            for name in filter(None, {written, written.replace("_", " "), *SYNONYMS.get(written, ())}):
                # A single letter is one only as a capital: "C", and not "a".
                is_letter = len(name) == 1 and name.isascii()
                text, form = (self.text.readable, name.upper()) if is_letter else (self.text.command, name)
                edge = "[A-Za-z0-9]" if name.isascii() else "(?!)"
                plural = "s?" if name.isascii() and len(name) > 2 else ""
                matches = re.finditer(rf"(?<!{edge}){re.escape(form)}{plural}(?!{edge})", text)
                found += [self._candidate(choice, each) for each in matches]
        free = [each for each in found if not any(start < each[0][1] and each[0][0] < end for start, end in self.used)]
        return sorted(free, key=lambda each: (each[0][0], -each[0][1]))

    def _switched(self, parameter: Parameter) -> list[Candidate]:
        """Whether the name of a boolean is wanted or not; a switch is on or off."""
        is_switch = re.search(r"\b(?:on|enabled?|power|state)\b|开关", parameter.words)
        own = re.findall(r"[a-z]{4,}|[㐀-鿿]{2,}", parameter.words)
        # What the whole tool is about switches nothing on.
        described = re.findall(r"[a-z]{4,}|[㐀-鿿]{2,}", parameter.about)
        described = [each for each in described if each not in FUNCTION_WORDS and not self.tool.is_about(each)]
        words = {parameter.words, *own, *described}
        names = r"\bo(?:n|ff)\b|[开关]" if is_switch else "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
        found = re.search(
            rf"(?P<no>(?:\bwithout|\bno|不要|不用|不|无|没有)\s*)?(?<![a-z])(?P<is>{names})", self.text.command
        )
        if found is None:
            return []
        value = not found["no"] and (not is_switch or found["is"] not in ("off", "关"))
        return [self._candidate(value, found)]

    def _candidate(self, value: Any, match: re.Match[str]) -> Candidate:
        start, end = match.span()
        return (start, end), value, Literal("choice", value, start, end, match[0], self.text.flat[:start][-12:])

    def _piece(self, parameter: Parameter) -> str | None:
        """The one part of the question that nothing else explains: a text, or a name of a few words."""
        start, end = self.pieces[0] if len(self.pieces) == 1 and parameter.required else (0, 0)
        for first, last in self.used:  # what other arguments hold at an end is no part of it
            start = max(start, last) if first <= start else start
            end = min(end, first) if last >= end else end
        written = self.text.raw[start:end].strip()
        if parameter.role == "other":
            written = re.sub(r"(?i)^(?:(?:of|the|an?|to|for)\s+)+", "", written)
        most = len(written) if parameter.role == "text" else 4 if written.istitle() else 2
        says_nothing = parameter.role == "other" and FUNCTION_WORDS.issuperset(written.lower().split())
        if not written or says_nothing or len(written.split()) > most or parameter.fit(written) is None:
            return None
        if any(a < end and start < b for a, b in self.used):
            return None
        self.used.append((start, end))
        self.is_loose = True
        return written

    def _is_harmless(self, literal: Literal) -> bool:
        """Whether a literal needs no parameter: today, or a day that the result of a calendar tells."""
        if literal.kind == "days":
            is_calendar = "#date" in self.tool.vocabulary and not self.tool.parameters
            return literal.value.first == literal.value.last and (is_calendar or literal.value.last == 0)
        is_word = literal.kind in ("word", "currency") and stem(literal.text.lower()) in self.tool.vocabulary
        return is_word or literal.start == literal.end


def _become(parameter: Parameter, literal: Literal) -> Any:
    """The value that a literal becomes for a parameter; ``None`` if it does not fit."""
    value, role = literal.value, parameter.role
    if role in ("number", "days"):
        count = value.last + 1 if literal.kind == "days" and role == "days" else value
        return parameter.fit(count) if literal.kind in ("number", "days") else None
    if role in ("place", "zone"):
        return _place(parameter, literal)
    if isinstance(value, Language):
        return value.code if role == "language" else None
    if role == "pattern":
        written = (str(value), literal.text, literal.text.upper())
        return next((each for each in written if parameter.fit(each)), None)
    if role == "date" and not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", str(value)):
        return None
    return str(value) if isinstance(value, str | int | float) and parameter.type == "string" else None


def _place(parameter: Parameter, literal: Literal) -> str | None:
    known = find_place(literal.text) if literal.kind == "quoted" else None
    place = NamedPlace(literal.text, known.zone, known.english) if known else literal.value
    if not isinstance(place, NamedPlace) or parameter.role == "zone":
        return place.zone if isinstance(place, NamedPlace) else None
    if place.zone and place.english is None:
        return None
    in_english = re.search(r"\bin english\b|english name|英文名", parameter.about)
    return place.english if place.english and in_english else place.name
