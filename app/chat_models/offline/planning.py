"""From a question and the tools on offer to the calls to make."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from app.chat_models.offline import remarks
from app.chat_models.offline.choosing import KnownTool, chosen
from app.chat_models.offline.filling import filled
from app.chat_models.offline.languages import Targets, targets
from app.chat_models.offline.question import Question
from app.chat_models.offline.roles import Role, is_source, role_of
from app.chat_models.offline.schemas import Parameter, Parameters, parameters_of
from app.chat_models.offline.sources import Sources
from app.chat_models.offline.texts import NamedPlace, places
from app.chat_models.offline.vocabulary import TRANSLATE_VERB
from app.tool_calling.definition import ToolDefinition

__all__ = ["FORBIDDEN", "Incomplete", "Plan", "PlannedCall", "plan"]

_MOST = 5
"""Calls of one tool for the places, or the languages, that a question lists."""
_TAKES_TEXT = {Role.TEXT, Role.SUBJECT, Role.NAME, Role.OTHER, Role.OBJECT, Role.ARRAY}


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A tool, and all the arguments that it requires."""

    tool: ToolDefinition
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Incomplete:
    """A tool that fits the question, but required arguments are not in it."""

    tool: ToolDefinition
    missing: tuple[Parameter, ...]
    places: tuple[NamedPlace, ...]
    """The places that were found, as those without a known time zone."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do about a question; empty when no tool fits."""

    calls: tuple[PlannedCall, ...] = ()
    incomplete: tuple[Incomplete, ...] = ()
    remarks: tuple[str, ...] = ()
    """What the calls leave out or cannot do, in sentences."""


FORBIDDEN = re.compile(r"\s*(?:please\s+)?(?:do\s*n['o’]?t|never)\b|\s*请?(?:不要|不用|别|勿)", re.IGNORECASE)
"""How a question begins that says what not to do."""

_UNDONE = re.compile(r"\s*(?:please\s+)?(?:delete|cancel|remove)\b|\s*请?(?:帮我)?(?:取消|删除|删掉)", re.IGNORECASE)
_UNDOES = ("delete", "cancel", "remove", "取消", "删")


def plan(question: Question, tools: tuple[KnownTool, ...]) -> Plan:
    """Plan the calls: one per tool that the question is about, or one per place where it names several."""
    if FORBIDDEN.match(question.raw):
        return Plan()
    if _UNDONE.match(question.raw):
        tools = tuple(each for each in tools if _undoes(each.definition))
    choices = chosen(question, tools)
    if not choices:
        question = question.with_payloads_meant()
        choices = chosen(question, tools)
    planned = [each for choice in choices for each in _planned(choice.tool, choice.part, question)]
    if choices and not TRANSLATE_VERB.search(question.command):
        weights = [each.weights for each in tools if any(each.definition is one.tool for one in choices)]
        planned += remarks.unanswered(question, lambda concept: any(f"concept:{concept}" in one for one in weights))
    calls = tuple(each for each in planned if isinstance(each, PlannedCall))
    incomplete = tuple(each for each in planned if isinstance(each, Incomplete))
    return Plan(calls, incomplete, tuple(dict.fromkeys(each for each in planned if isinstance(each, str))))


def _planned(tool: ToolDefinition, part: Question, whole: Question) -> Iterator[PlannedCall | Incomplete | str]:
    parameters = parameters_of(tool.input_schema)
    if _TAKES_TEXT.isdisjoint(map(role_of, parameters)):
        part, whole = part.with_payloads_meant(), whole.with_payloads_meant()
    found, wanted = places(part) or places(whole), _targets(parameters, part)
    target = next((each for each in parameters if _is_target_language(each)), None)
    if target is not None and wanted.unknown and not wanted.known:
        yield Incomplete(tool, (target,), ())
    else:
        for group, language in product(_groups(parameters, found), wanted.known[:_MOST] or (None,)):
            yield _one(tool, parameters, Sources(part, whole, group, language))
    yield from _remarks(list(parameters), part, found, wanted)


def _one(tool: ToolDefinition, parameters: Parameters, sources: Sources) -> PlannedCall | Incomplete:
    arguments = filled(parameters, sources)
    if sources.missing:
        return Incomplete(tool, tuple(sources.missing), tuple(sources.places))
    return PlannedCall(tool, arguments)


def _targets(parameters: Parameters, part: Question) -> Targets:
    return targets(part.command) if any(map(_is_target_language, parameters)) else Targets()


def _is_target_language(parameter: Parameter) -> bool:
    return role_of(parameter) is Role.LANGUAGE and not is_source(parameter)


def _groups(parameters: Parameters, found: list[NamedPlace]) -> list[list[NamedPlace]]:
    """Places for one call each, when the tool takes one and the question names several; else all for one call."""
    suitable = _suitable(parameters, found)
    return [[each] for each in suitable[:_MOST]] or [found]


def _suitable(parameters: Iterable[Parameter], found: list[NamedPlace]) -> list[NamedPlace]:
    roles = _place_roles(parameters)
    if roles == [Role.TIME_ZONE]:
        return [each for each in found if each.zone is not None]
    return [each for each in found if each.zone is None or each.english is not None] if roles == [Role.PLACE] else []


def _place_roles(parameters: Iterable[Parameter]) -> list[Role]:
    return [role for each in parameters if (role := role_of(each)) in (Role.PLACE, Role.TIME_ZONE)]


def _remarks(parameters: list[Parameter], part: Question, found: list[NamedPlace], wanted: Targets) -> Iterator[str]:
    chinese, suitable = part.chinese, _suitable(parameters, found)
    if suitable and _place_roles(parameters) == [Role.TIME_ZONE]:
        yield from remarks.unknown_places([each.name for each in found if each.zone is None], chinese)
    yield from remarks.left_out([each.name for each in suitable[_MOST:]], _MOST, chinese)
    languages = [each.chinese if chinese else each.english for each in wanted.known[_MOST:]]
    yield from remarks.left_out(languages, _MOST, chinese)
    yield from remarks.unknown_languages(map(part.as_written, wanted.unknown), chinese)
    yield from remarks.about_days(parameters, part)
    yield from remarks.about_moments(parameters, part)
    yield from remarks.about_units(parameters, part)


def _undoes(tool: ToolDefinition) -> bool:
    said = f"{tool.name} {tool.description}".lower()
    return any(word in said for word in _UNDOES)
