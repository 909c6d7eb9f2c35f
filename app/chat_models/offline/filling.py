"""A tool's arguments out of a question, by the tool's schema."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from app.chat_models.offline import strings
from app.chat_models.offline.enumerations import chosen_values, is_wanted
from app.chat_models.offline.measures import measured_number
from app.chat_models.offline.numbers import horizon, numbers
from app.chat_models.offline.roles import Role, role_of
from app.chat_models.offline.schemas import Parameter, Parameters
from app.chat_models.offline.sources import Sources
from app.chat_models.offline.texts import matched

__all__ = ["filled"]

_MOST_ITEMS = 20
_AHEAD = re.compile(r"\b(?:ahead|later|offset|from now|after)\b|之后|以后|后第")
_ASSIGNABLE = (Role.NUMBER, Role.DAYS, Role.OTHER, Role.IDENTIFIER, Role.NAME)

_Fill = Callable[[Sources, Parameter], Any]


def filled(parameters: Parameters, sources: Sources) -> dict[str, Any]:
    """Find a value for every parameter that the question speaks of.

    A required one without goes to ``sources.missing``, unless it has a default.
    """
    found: dict[str, Any] = {}
    for parameter in sorted(parameters, key=lambda each: not each.required):
        value = _value(sources, parameter)
        if value is None and parameter.required:
            value = parameter.schema.get("default")
            if value is None:
                sources.missing.append(parameter)
        if value is not None:
            found[parameter.name] = value
    return found


def _value(sources: Sources, parameter: Parameter) -> Any:
    role = role_of(parameter)
    assigned = _assigned(sources, parameter, role)
    return _BY_ROLE[role](sources, parameter) if assigned is None else assigned


def _assigned(sources: Sources, parameter: Parameter, role: Role) -> Any:
    """A value that the question gives as ``name=value``, for numbers and plain words."""
    if len(parameter.words) < 2 or role not in _ASSIGNABLE:
        return None
    name = re.escape(parameter.name.lower())
    pattern = re.compile(rf"(?<![a-z0-9]){name} ?(?:=|:|为|是|is\b) ?([\w.+-]{{1,100}})")
    text = matched(pattern, sources.question)
    if text is None or parameter.type == "string":
        return text
    return next((_typed(each.value, parameter) for each in numbers(text)), None)


def _choice(sources: Sources, parameter: Parameter) -> Any:
    if "const" in parameter.schema:
        return parameter.schema["const"]
    values = _choices(sources, parameter)
    only = parameter.choices[0] if parameter.required and len(parameter.choices) == 1 else None
    return values[0] if values else only


def _choices(sources: Sources, parameter: Parameter) -> list[Any]:
    return chosen_values(parameter, sources.question, strings.spoken_language(sources, parameter))


def _boolean(sources: Sources, parameter: Parameter) -> bool | None:
    """Yes or no; a required switch that nobody mentions is off."""
    wanted = is_wanted(parameter, sources.question)
    return False if wanted is None and parameter.required and "default" not in parameter.schema else wanted


def _array(sources: Sources, parameter: Parameter) -> list[Any] | None:
    item = parameter.items
    if role_of(item) is Role.CHOICE:
        return _choices(sources, item)[:_MOST_ITEMS] or None
    items: list[Any] = []
    while len(items) < _MOST_ITEMS:
        value = _value(sources.within(), item)
        if value is None or value in items:
            break
        items.append(value)
    return items or None


def _object(sources: Sources, parameter: Parameter) -> dict[str, Any] | None:
    inner = sources.within()
    value = filled(parameter.properties, inner)
    if parameter.required:
        sources.missing += inner.missing
    return value if parameter.required or (value and not inner.missing) else None


def _days(sources: Sources, parameter: Parameter) -> float | None:
    """A number of days, within the schema's bounds; without a word about it the smallest."""
    wanted = horizon(sources.question.command) or horizon(sources.whole.command)
    if wanted is None:
        return _clamped(1, parameter) if parameter.required and "default" not in parameter.schema else None
    ahead = wanted.offset is not None and _AHEAD.search(parameter.about)
    return _clamped(wanted.offset or 0 if ahead else wanted.count, parameter)


def _clamped(value: float, parameter: Parameter) -> float:
    low, high = parameter.number("minimum"), parameter.number("maximum")
    value = value if low is None else max(value, low)
    return value if high is None else min(value, high)


def _number(sources: Sources, parameter: Parameter) -> float | None:
    found = measured_number(parameter, sources.question, sources.taken)
    if found is None:
        return None
    sources.taken.add(("number", found.start))
    return _typed(found.value, parameter)


def _typed(value: float, parameter: Parameter) -> float | None:
    whole = int(value) == value
    return None if parameter.type == "integer" and not whole else int(value) if whole else value


_BY_ROLE: Mapping[Role, _Fill] = {
    Role.CHOICE: _choice,
    Role.BOOLEAN: _boolean,
    Role.ARRAY: _array,
    Role.OBJECT: _object,
    Role.DAYS: _days,
    Role.NUMBER: _number,
    **strings.BY_ROLE,
}
