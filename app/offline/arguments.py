"""Arguments: fills the parameters of a tool from the literals of a question, and invents none."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from app.gazetteer.gazetteer import find_place
from app.gazetteer.languages import Language
from app.offline.days import Days
from app.offline.literals import Literal, NamedPlace
from app.offline.text import Span, Text
from app.offline.tools import OfferedTool, Parameter
from app.offline.vocabulary import FUNCTION_WORDS, SYNONYMS, UNITS, concepts_of, stem

__all__ = ["Arguments", "named_arguments"]

_ACCEPTED = {
    "id": ("word", "number", "quoted"),
    "word": ("word", "quoted"),
    "other": ("quoted", "word"),
    "pattern": ("currency", "word", "number", "quoted", "date", "time"),
    "place": ("place", "quoted"),
    "zone": ("place", "quoted"),
    "date": ("date", "quoted"),
    "moment": ("duration", "days"),
    "duration": ("duration", "days"),
    "text": ("quoted",),
}
_STEPS = ("beside", "quoted", "others", "pieces")
_BEFORE = {"source": r"(?:\bfrom|从|由|自) ?$", "target": r"(?:\bto|\binto|\bin|到|去|成|为|换|往|至) ?$"}
_NEGATED = re.compile(r"(?:\bwithout|\bno|\bnot|\bdon't|不要|不|别|无|没有)\s*(?:an? |any |the )?$")
_ON_OFF = re.compile(r"(?P<off>\boff\b|\bdisable\b|关)|\bon\b|\benable\b|开|启用")
_ROW = re.compile(
    r"(?:[\s,、&#;/]|\b(?:and|or|in|to|into|at|for|of|versus|vs|[a-z]{3,8}er than|than|orders?|which|is)\b"
    r"|[和与跟及在比更的]|还是|以及|还有)*"
)


def named_arguments(tool: OfferedTool, text: Text) -> dict[str, tuple[Any, Span]]:
    """The arguments that a question writes as ``name: value`` or ``the name is value``, each with its position.

    A value ends at the next name; one that is no list and no longer text also at a comma.
    """
    by_name: dict[str, Parameter] = {}
    for each in tool.all_parameters():
        if each.name and each.type != "object":
            by_name.setdefault(each.name.lower(), each)
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
            found[parameter.name] = (
                value,
                (match.start(), quoted[1] if quoted else start + len(written.rstrip(" ,;，；\n"))),
            )
    return found


@dataclass(slots=True)
class Arguments:
    """The arguments of a tool's calls.

    Args:
        literals: The values of the question, in their order; each is used once.
        pieces: The unexplained parts of the question, of which one can be a text.
        named: The arguments that are written with their names.
        defaults: Whether a required parameter takes the default of its schema.

    Attributes:
        missing: The required parameters that have no value, by their path, with the dots of those in objects.
        used: The positions that arguments explain.
        unfit: Literals that no argument holds, as written.
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
    missing: list[tuple[str, Parameter]] = field(default_factory=list)
    used: list[Span] = field(default_factory=list)
    unfit: list[str] = field(default_factory=list)
    others: list[tuple[str, Any]] = field(default_factory=list)
    is_loose: bool = False
    _held: dict[int, str] = field(default_factory=dict)
    """The paths of the parameters that hold the literals, by the literals' numbers."""

    def fill(self) -> "Arguments":
        """Fill every parameter that the question has a value for."""
        self.used += [span for _, span in self.named.values()]
        inside = [n for n, each in enumerate(self.literals) if any(a <= each.start < b for a, b in self.used)]
        self._held = dict.fromkeys(inside, "")
        self.values = self._object(self.tool.parameters, "", required=True)
        self._read_rest()
        return self

    def _object(self, parameters: Sequence[Parameter], path: str, *, required: bool) -> dict[str, Any]:
        found: dict[str, Any] = {}
        # In steps, so that a number with its unit is no other parameter's, and a text is what all others leave.
        for step in _STEPS:
            for each in sorted(parameters, key=lambda each: not each.required):
                if each.name not in found and (value := self._value(each, f"{path}{each.name}", step)) is not None:
                    found[each.name] = value
        for each in parameters:
            if each.required and each.name not in found:
                if "default" in each.schema and self.defaults:
                    found[each.name] = each.schema["default"]
                elif required and not any(name.startswith(f"{path}{each.name}.") for name, _ in self.missing):
                    self.missing.append((f"{path}{each.name}", each))
        return {each.name: found[each.name] for each in parameters if each.name in found}

    def _value(self, parameter: Parameter, path: str, step: str) -> Any:
        """The value of a parameter, if it is found in this step."""
        if parameter.name in self.named:
            return self.named[parameter.name][0]
        role = parameter.role
        if role == "number":
            return self._number(parameter, path, beside=step == "beside") if step in ("beside", "others") else None
        if role == "text" and step in ("quoted", "pieces"):
            return self._take(parameter, path) if step == "quoted" else self._piece(parameter, path)
        if role == "other" and step == "pieces":
            return self._name(parameter, path)
        if step != "others" or role == "text":
            return None
        special = {"choice": self._choice, "boolean": self._boolean, "array": self._array, "object": self._inner}
        special |= {"days": self._days, "date_time": self._date_time, "moment": self._moment}
        return special.get(role, self._take)(parameter, path)

    def _inner(self, parameter: Parameter, path: str) -> dict[str, Any] | None:
        """An object; an optional one only if all that it requires is there."""
        held, used, lacking = dict(self._held), list(self.used), list(self.missing)
        value = self._object(parameter.inner, f"{path}.", required=parameter.required)
        if any(each.required and each.name not in value for each in parameter.inner) and not parameter.required:
            self._held, self.used, self.missing, value = held, used, lacking, {}
        return value or None

    def _free(self, parameter: Parameter, *kinds: str) -> list[tuple[int, Literal, Any]]:
        """The literals that are left for a parameter, with the values that they become."""
        left = [(n, each) for n, each in enumerate(self.literals) if n not in self._held and each.kind in kinds]
        return [(n, each, value) for n, each in left if (value := _become(parameter, each)) is not None]

    def _take(self, parameter: Parameter, path: str) -> Any:
        """The first literal of the right kind: beside the parameter's name, else on its side of from and to."""
        free = self._free(parameter, *_ACCEPTED.get(parameter.role, (parameter.role,)))
        if own := _BEFORE.get(parameter.side):
            sided = [each for each in free if re.search(own, each[1].before)]
            other = _BEFORE["target" if parameter.side == "source" else "source"]
            # A text may be in any language: only "from French" says so.
            rest = [] if (parameter.role, parameter.side) == ("language", "source") else free
            free = sided or [each for each in rest if not re.search(other, each[1].before)]
        if parameter.role in ("other", "word", "id", "pattern"):
            beside = [each for each in free if self._is_beside(parameter, each[1])]
            free = beside or (free if parameter.required and parameter.type != "boolean" else [])
        if not free:
            return None
        number, literal, value = free[0]
        self.is_loose |= literal.kind == "place" and literal.value.zone is None
        return self._hold(number, path, value)

    def _hold(self, number: int, path: str, value: Any) -> Any:
        self._held[number] = path
        self.used.append((self.literals[number].start, self.literals[number].end))
        return value

    def _is_beside(self, parameter: Parameter, literal: Literal) -> bool:
        """Whether the words of a parameter, or the unit that it counts in, stand directly beside a literal."""
        words = parameter.words.split()
        spoken = [*(each for each in words if len(each) > 1), *re.findall("[㐀-鿿]{2,4}", parameter.about)]
        before = re.sub(r"[\s:=#]*(?:\b(?:is|to|of|at|as|for|than)|[为是])?[\s:=#]*$", "", literal.before)
        meant = frozenset(f"#{each}" for each in words)
        is_named = before.endswith(tuple(spoken)) or any(
            not meant.isdisjoint(concepts_of(before[-n:])) for n in (2, 3, 4, 6)
        )
        return is_named or self._unit(parameter, literal) is not None

    def _unit(self, parameter: Parameter, literal: Literal) -> re.Match[str] | None:
        """Find the unit of a parameter behind a literal."""
        words = re.findall("[a-z]+", parameter.about if parameter.role == "number" else parameter.words)
        units = [
            unit
            for word in words
            for unit in (*UNITS.get(stem(word), ()), word)
            if word in parameter.words or word in UNITS
        ]
        form = "|".join(map(re.escape, sorted(units, key=len, reverse=True))) or "(?!)"
        return re.compile(rf"[ -]?(?:{form})s?(?![a-z])").match(self.text.command, literal.end)

    def _number(self, parameter: Parameter, path: str, *, beside: bool) -> Any:
        """The number beside its name or unit; else the first one, if no other parameter can mean it."""
        free = [each for each in self._free(parameter, "number") if not beside or self._is_beside(parameter, each[1])]
        rivals = [
            each
            for each in self.tool.all_parameters()
            if each.role == "number" and each.required and each is not parameter
        ]
        has_unit = any(stem(word) in UNITS for word in parameter.words.split())
        if not free or (not beside and (not parameter.required or (has_unit and rivals))):
            return None
        number, literal, value = free[0]
        if unit := self._unit(parameter, literal):
            self.used.append((literal.end, unit.end()))
        return self._hold(number, path, value)

    def _choice(self, parameter: Parameter, path: str) -> Any:
        """The value of an enumeration that the question has; a row of them makes several calls."""
        found = self._mentioned(parameter)
        self.used += [span for span, _ in found]
        for (one, _), (span, value) in pairwise(found):
            if _ROW.fullmatch(self.text.command, one[1], span[0]):
                self.others.append((path, value))
            else:
                self.unfit.append(self.text.raw[slice(*span)])
        return found[0][1] if found else parameter.schema.get("const")

    def _mentioned(self, parameter: Parameter) -> list[tuple[Span, Any]]:
        """The values of an enumeration in the command, as whole words, and by their other names."""
        found: list[tuple[Span, Any]] = []
        for choice in parameter.choices:
            written = str(choice).lower()[:60]
            for name in filter(None, {written, written.replace("_", " "), *SYNONYMS.get(written, ())}):
                edge = "[a-z0-9]" if name.isascii() else "(?!)"
                # A single letter is one only as a capital: "C", and not "a".
                is_letter = len(name) == 1 and "a" <= name <= "z"
                text = self.text.readable if is_letter else self.text.command
                form = re.escape(name.upper() if is_letter else name)
                found += [(each.span(), choice) for each in re.finditer(rf"(?<!{edge}){form}(?!{edge})", text)]
        found.sort(key=lambda each: (each[0][0], -each[0][1]))
        return [each for n, each in enumerate(found) if all(each[0][0] >= one[0][1] for one in found[:n])]

    def _boolean(self, parameter: Parameter, _: str) -> bool | None:
        """Whether its name is wanted or not; a switch is on or off."""
        if re.search(r"\b(?:on|enabled?|power|state)\b|开关", parameter.words) and (
            match := _ON_OFF.search(self.text.command)
        ):
            self.used.append(match.span())
            return match["off"] is None
        words = [
            each for each in re.findall(r"[a-z]{4,}|[㐀-鿿]{2,}", parameter.about) if each not in ("with", "whether")
        ]
        found = (re.search(rf"(?<![a-z]){re.escape(word)}", self.text.command) for word in words)
        if match := next(filter(None, found), None):
            negated = _NEGATED.search(self.text.command, max(match.start() - 16, 0), match.start())
            self.used.append((negated.start() if negated else match.start(), match.end()))
            return negated is None
        return None

    def _array(self, parameter: Parameter, path: str) -> list[Any] | None:
        """Everything of the item's kind; objects and lists are not read from a sentence."""
        item = parameter.inner[0] if parameter.inner else parameter
        if item.role == "choice":
            found = self._mentioned(item)
            self.used += [span for span, _ in found]
            return list(dict.fromkeys(value for _, value in found)) or None
        if item.role in ("object", "array", "boolean"):
            return None
        free = self._free(item, *_ACCEPTED.get(item.role, (item.role,)))
        if not parameter.required and item.role in ("other", "id", "word", "number"):
            free = [each for each in free if self._is_beside(parameter, each[1])]
        return [self._hold(number, path, value) for number, _, value in free] or None

    def _days(self, parameter: Parameter, path: str) -> Any:
        """As many days, counted from today, as hold all that are named; for dates and weekdays all that there are."""
        most, needed = int(parameter.limit("maximum", 14)), []
        for number, each in enumerate(self.literals):
            is_open = each.kind == "date" or (each.kind == "days" and each.value.weekdays)
            days = min(most, 14 if each.kind == "date" else each.value.last + 1) if is_open else 0
            days = days or (each.value.last + 1 if each.kind == "days" else 0)
            if number not in self._held and days > 0 and parameter.number(days) is not None:
                ahead = not is_open and each.value.first if re.search(r"\bahead\b|offset|以后", parameter.about) else 0
                needed.append(self._hold(number, path, ahead or days))
        return max(needed, default=None)

    def _date_time(self, parameter: Parameter, path: str) -> str | None:
        dates = [each for each in self._free(parameter, "date") if len(each[2]) == 10]
        if not dates or not (times := self._free(parameter, "time")):
            return None
        return f"{self._hold(dates[0][0], path, dates[0][2])}T{self._hold(times[0][0], path, times[0][2])}:00"

    def _moment(self, parameter: Parameter, path: str) -> Any:
        return self._date_time(parameter, path) or self._take(parameter, path)

    def _piece(self, parameter: Parameter, path: str) -> str | None:
        """The one part of the question that nothing else explains."""
        if (
            len(self.pieces) != 1
            or not parameter.required
            or any(a < self.pieces[0][1] and self.pieces[0][0] < b for a, b in self.used)
        ):
            return None
        start, end = self.pieces[0]
        lead = re.search(r"(?:\bthe )?\b(?:word|phrase|sentence)s?(?: for)? $", self.text.flat[:start])
        self.used.append((lead.start() if lead else start, end))
        self._held |= {n: path for n, each in enumerate(self.literals) if start <= each.start < end}
        self.is_loose = True
        return self.text.raw[start:end]

    def _name(self, parameter: Parameter, path: str) -> str | None:
        """A name that is all that the question has besides the words of the tool: "find customer Ann"."""
        written = self.text.raw[slice(*self.pieces[0])] if len(self.pieces) == 1 else ""
        is_loose, words = self.is_loose, written.split()
        says_nothing = FUNCTION_WORDS.issuperset(written.lower().split())
        if says_nothing or len(words) > (4 if written.istitle() else 2) or not parameter.allows(written):
            return None
        value = self._piece(parameter, path)
        self.is_loose = is_loose
        return re.sub(r"(?i)^(?:(?:of|the|an?|to|for|from|by|with)\s+)+", "", value or "") or None

    def _read_rest(self) -> None:
        """What no argument holds: further values in a row with that of an argument, or literals that nothing takes."""
        parameters = {each.name: each for each in self.tool.parameters if each.type != "array"}
        last: int | None = None
        for number, each in enumerate(self.literals):
            is_used = any(start <= each.start < end for start, end in self.used) or each.start == each.end
            if number not in self._held and not is_used and not self._is_harmless(each):
                before = self.literals[last] if last is not None else None
                path = self._held[last] if last is not None else ""
                is_row = (
                    before and before.kind == each.kind and _ROW.fullmatch(self.text.command, before.end, each.start)
                )
                value = _become(parameters[path], each) if is_row and path in parameters else None
                if value is None or each.kind in ("days", "time_of_day") or len(self.others) > 3:
                    self.unfit.append(each.text)
                    continue
                self._hold(number, path, value)
                if value not in (self.values.get(path), *(one for _, one in self.others)):
                    self.others.append((path, value))
            last = number if self._held.get(number) in parameters else last

    def _is_harmless(self, literal: Literal) -> bool:
        """Whether a literal needs no parameter: today, or a day that the result of a calendar tells."""
        if literal.kind == "days":
            is_calendar = "#date" in self.tool.vocabulary and not any(
                each.role in ("date", "days") for each in self.tool.parameters
            )
            return (literal.value.last == 0 and not literal.value.weekdays) or (literal.value.last >= 0 and is_calendar)
        return literal.kind in ("word", "currency") and stem(literal.text.lower()) in self.tool.vocabulary


def _become(parameter: Parameter, literal: Literal) -> Any:
    """The value that a literal becomes for a parameter; ``None`` if it does not fit."""
    value, role = literal.value, parameter.role
    if role in ("number", "days"):
        return parameter.number(value) if literal.kind == "number" else None
    if role in ("place", "zone"):
        return _place(parameter, literal)
    if isinstance(value, Days):
        return f"PT{24 * value.last}H" if value.first == value.last > 0 else None
    if isinstance(value, Language):
        return value.code if role == "language" else None
    if role == "pattern":
        written = (str(value), literal.text, literal.text.upper())
        return next((each for each in written if parameter.allows(each)), None)
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
