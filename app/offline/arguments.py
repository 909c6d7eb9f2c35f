"""Arguments: fills the parameters of a tool from the literals of a question, and invents none."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.gazetteer.gazetteer import find_place
from app.gazetteer.languages import Language
from app.offline.literals import Literal, NamedPlace
from app.offline.text import Span, Text
from app.offline.tools import OfferedTool, Parameter
from app.offline.vocabulary import FUNCTION_WORDS, SYNONYMS, UNITS, stem

__all__ = ["Arguments", "named_arguments"]

_ACCEPTED = {
    "id": ("word", "number", "quoted"),
    "word": ("word", "quoted"),
    "other": ("quoted", "word", "number"),
    "pattern": ("currency", "word", "number", "quoted", "date", "time"),
    "place": ("place", "quoted"),
    "zone": ("place", "quoted"),
    "date": ("date", "quoted"),
    "moment": ("duration", "quoted"),
    "text": ("quoted",),
}
_STEPS = ("beside", "quoted", "others", "pieces")
_BEFORE = {"source": r"(?:\bfrom|从|由|自) ?$", "target": r"(?:\bto|\binto|\bin|到|去|成|为|换|往|至) ?$"}
_NEGATED = re.compile(r"(?:\bwithout|\bno|\bnot|不要|不用|不|无|没有)\s*(?:an? |any |the )?$")
_ON_OFF = re.compile(r"(?P<off>\boff\b|关)|\bon\b|开")
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

    Attributes:
        missing: The required parameters that have no value.
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
    missing: list[Parameter] = field(default_factory=list)
    used: list[Span] = field(default_factory=list)
    unfit: list[str] = field(default_factory=list)
    others: list[tuple[str, Any]] = field(default_factory=list)
    is_loose: bool = False
    _held: dict[int, str] = field(default_factory=dict)
    """The names of the parameters that hold the literals, by the literals' numbers."""

    def fill(self) -> "Arguments":
        """Fill every parameter that the question has a value for."""
        self.used += [span for _, span in self.named.values()]
        inside = [n for n, each in enumerate(self.literals) if any(a <= each.start < b for a, b in self.used)]
        self._held = dict.fromkeys(inside, "")
        found: dict[str, Any] = {name: value for name, (value, _) in self.named.items()}
        # In steps, so that a number with its unit is no other parameter's, and a text is what all others leave.
        for step in _STEPS:
            for each in sorted(self.tool.parameters, key=lambda each: not each.required):
                if each.name not in found and (value := self._value(each, step, found)) is not None:
                    found[each.name] = value
        for each in (each for each in self.tool.parameters if each.required and each.name not in found):
            if "default" in each.schema and self.defaults:
                found[each.name] = each.schema["default"]
            else:
                self.missing.append(each)
        self.values = {each.name: found[each.name] for each in self.tool.parameters if each.name in found}
        self._read_rest()
        return self

    def _value(self, parameter: Parameter, step: str, found: Mapping[str, Any]) -> Any:
        """The value of a parameter, if it is found in this step."""
        role = parameter.role
        if role == "number":
            return self._number(parameter, step, found)
        if step == "pieces":
            return self._piece(parameter) if role in ("text", "other") else None
        if role == "object" or step != ("quoted" if role == "text" else "others"):
            return None
        special = {"choice": self._choice, "boolean": self._boolean, "array": self._array}
        special |= {"days": self._days, "date_time": self._moment, "moment": self._moment}
        return special.get(role, self._take)(parameter)

    def _free(self, parameter: Parameter, *kinds: str) -> list[tuple[int, Literal, Any]]:
        """The literals that are left for a parameter, with the values that they become."""
        left = [(n, each) for n, each in enumerate(self.literals) if n not in self._held and each.kind in kinds]
        return [(n, each, value) for n, each in left if (value := _become(parameter, each)) is not None]

    def _take(self, parameter: Parameter) -> Any:
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
            is_number = parameter.role == "other" and "number"
            free = beside or [each for each in free if parameter.required and each[1].kind != is_number]
        if not free:
            return None
        number, literal, value = free[0]
        self.is_loose |= literal.kind == "place" and literal.value.zone is None
        return self._hold(number, parameter, value)

    def _hold(self, number: int, parameter: Parameter, value: Any) -> Any:
        self._held[number] = parameter.name
        self.used.append((self.literals[number].start, self.literals[number].end))
        return value

    def _is_beside(self, parameter: Parameter, literal: Literal) -> bool:
        """Whether the words of a parameter stand directly before a literal, or the unit that it counts in behind it."""
        words = [*parameter.words.split(), *re.findall("[㐀-鿿]{2,4}", parameter.about)]
        before = re.sub(r"[\s:=#]*(?:\b(?:is|to|of|at|as|for|than)|[为是])?[\s:=#]*$", "", literal.before)
        return before.endswith(tuple(words)) or self._unit(parameter, literal) is not None

    def _unit(self, parameter: Parameter, literal: Literal) -> re.Match[str] | None:
        """Find the unit of a parameter behind a literal."""
        units = [unit for word in parameter.words.split() for unit in (word, *UNITS.get(stem(word), ()))]
        units += [word for word in re.findall("[a-z]+", parameter.about) if stem(word) in UNITS]
        form = "|".join(map(re.escape, sorted(units, key=len, reverse=True))) or "(?!)"
        return re.compile(rf"[ -]?(?:{form})s?(?![a-z])").match(self.text.command, literal.end)

    def _number(self, parameter: Parameter, step: str, found: Mapping[str, Any]) -> Any:
        """The number beside its name or unit; else the first one, if no other parameter can mean it."""
        free = self._free(parameter, "number")
        if step == "beside":
            free = [each for each in free if self._is_beside(parameter, each[1])]
        rivals = [each for each in self.tool.parameters if each.required and each.role == "number"]
        is_only = parameter.required and all(each is parameter or each.name in found for each in rivals)
        if not free or (step != "beside" and not (step == "others" and is_only)):
            return None
        number, literal, value = free[0]
        if unit := self._unit(parameter, literal):
            self.used.append((literal.end, unit.end()))
        return self._hold(number, parameter, value)

    def _choice(self, parameter: Parameter) -> Any:
        """The value of an enumeration that the question has, if it has just one."""
        found = self._mentioned(parameter)
        self.unfit += [self.text.raw[slice(*span)] for span, value in found if value != found[0][1]]
        return found[0][1] if found else parameter.schema.get("const")

    def _mentioned(self, parameter: Parameter) -> list[tuple[Span, Any]]:
        """The values of an enumeration in the command, as whole words, and by their other names."""
        found: list[tuple[Span, Any]] = []
        for choice in parameter.choices:
            written = str(choice).lower()[:60]
            for name in filter(None, {written, written.replace("_", " "), *SYNONYMS.get(written, ())}):
                # A single letter is one only as a capital: "C", and not "a".
                is_letter = len(name) == 1 and name.isascii()
                text, form = (self.text.readable, name.upper()) if is_letter else (self.text.command, name)
                edge = "[A-Za-z0-9]" if name.isascii() else "(?!)"
                found += [(one.span(), choice) for one in re.finditer(rf"(?<!{edge}){re.escape(form)}(?!{edge})", text)]
        found.sort(key=lambda each: (each[0][0], -each[0][1]))
        found = [each for n, each in enumerate(found) if all(each[0][0] >= one[0][1] for one in found[:n])]
        self.used += [span for span, _ in found]
        return found

    def _boolean(self, parameter: Parameter) -> bool | None:
        """Whether its name is wanted or not; a switch is on or off."""
        is_switch = re.search(r"\b(?:on|enabled?|power|state)\b|开关", parameter.words)
        if is_switch and (match := _ON_OFF.search(self.text.command)):
            self.used.append(match.span())
            return match["off"] is None
        words = set(re.findall(r"[a-z]{4,}|[㐀-鿿]{2,}", parameter.about)) - {"with", "whether"}
        form = "|".join(map(re.escape, sorted(words))) or "(?!)"
        if match := re.search(rf"(?<![a-z])(?:{form})", self.text.command):
            negated = _NEGATED.search(self.text.command, max(match.start() - 16, 0), match.start())
            self.used.append((negated.start() if negated else match.start(), match.end()))
            return negated is None
        return None

    def _array(self, parameter: Parameter) -> list[Any] | None:
        """Everything of the item's kind; objects and lists are not read from a sentence."""
        item = parameter.item or parameter
        if item.role == "choice":
            return list(dict.fromkeys(value for _, value in self._mentioned(item))) or None
        free = self._free(item, *_ACCEPTED.get(item.role, (item.role,)))
        if not parameter.required and item.role in ("other", "id", "word", "number"):
            free = [each for each in free if self._is_beside(parameter, each[1])]
        return [self._hold(number, parameter, value) for number, _, value in free] or None

    def _days(self, parameter: Parameter) -> Any:
        """As many days, counted from today, as hold all that are named."""
        free = self._free(parameter, "days", "number")
        return max((self._hold(number, parameter, value) for number, _, value in free), default=None)

    def _moment(self, parameter: Parameter) -> Any:
        """A date and a time of day, or a span from now."""
        dates, times = self._free(parameter, "date"), self._free(parameter, "time")
        if dates and times:
            return "T".join(self._hold(number, parameter, value) for number, _, value in (dates[0], times[0])) + ":00"
        return self._take(parameter)

    def _piece(self, parameter: Parameter) -> str | None:
        """The one part of the question that nothing else explains: a text, or a name of a few words."""
        start, end = self.pieces[0] if len(self.pieces) == 1 and parameter.required else (0, 0)
        written = self.text.raw[start:end]
        if parameter.role == "other":
            written = re.sub(r"(?i)^(?:(?:of|the|an?|to|for)\s+)+", "", written)
        most = len(written) if parameter.role == "text" else 4 if written.istitle() else 2
        says_nothing = parameter.role == "other" and FUNCTION_WORDS.issuperset(written.lower().split())
        if start == end or says_nothing or len(written.split()) > most or parameter.fit(written) is None:
            return None
        if any(a < end and start < b for a, b in self.used):
            return None
        self.used.append((start, end))
        self._held |= {n: "" for n, each in enumerate(self.literals) if start <= each.start < end}
        self.is_loose = True
        return written

    def _read_rest(self) -> None:
        """What no argument holds: further values in a row with that of an argument, or literals that nothing takes."""
        parameters = {each.name: each for each in self.tool.parameters if each.role not in ("array", "days")}
        last: int | None = None
        for number, each in enumerate(self.literals):
            is_used = any(start <= each.start < end for start, end in self.used) or each.start == each.end
            if number not in self._held and not is_used and not self._is_harmless(each):
                parameter = parameters.get(self._held[last]) if last is not None else None
                before = self.literals[last or 0]
                is_row = before.kind == each.kind and _ROW.fullmatch(self.text.command, before.end, each.start)
                value = _become(parameter, each) if parameter and is_row else None
                if parameter is None or value is None or len(self.others) > 3:
                    self.unfit.append(each.text)
                    continue
                self._hold(number, parameter, value)
                if value not in (self.values.get(parameter.name), *(one for _, one in self.others)):
                    self.others.append((parameter.name, value))
            last = number if self._held.get(number) in parameters else last

    def _is_harmless(self, literal: Literal) -> bool:
        """Whether a literal needs no parameter: today, or a day that the result of a calendar tells."""
        if literal.kind == "days":
            is_calendar = "#date" in self.tool.vocabulary and not self.tool.parameters
            return literal.value.first == literal.value.last and (is_calendar or literal.value.last == 0)
        return literal.kind in ("word", "currency") and stem(literal.text.lower()) in self.tool.vocabulary


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
