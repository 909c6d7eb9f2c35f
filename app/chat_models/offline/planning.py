"""From a question and the tools on offer to the calls to make."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from app.chat_models.offline.choosing import KnownTool, chosen
from app.chat_models.offline.filling import filled
from app.chat_models.offline.question import Question
from app.chat_models.offline.roles import Role, role_of
from app.chat_models.offline.schemas import Parameter, parameters_of
from app.chat_models.offline.sources import Sources
from app.chat_models.offline.texts import NamedPlace, places
from app.tool_calling.definition import ToolDefinition

__all__ = ["Incomplete", "Plan", "PlannedCall", "plan"]

_MOST_PLACES = 5
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


def plan(question: Question, tools: tuple[KnownTool, ...]) -> Plan:
    """Plan the calls: one per tool that the question is about, or one per place where it names several."""
    choices = chosen(question, tools)
    if not choices:
        question = question.with_payloads_meant()
        choices = chosen(question, tools)
    planned = [each for choice in choices for each in _planned(choice.tool, choice.part, question)]
    calls = tuple(each for each in planned if isinstance(each, PlannedCall))
    return Plan(calls, tuple(each for each in planned if isinstance(each, Incomplete)))


def _planned(tool: ToolDefinition, part: Question, whole: Question) -> Iterator[PlannedCall | Incomplete]:
    parameters = parameters_of(tool.input_schema)
    if _TAKES_TEXT.isdisjoint(map(role_of, parameters)):
        part, whole = part.with_payloads_meant(), whole.with_payloads_meant()
    for group in _groups(list(parameters), places(part) or places(whole)):
        sources = Sources(part, whole, group)
        arguments = filled(parameters, sources)
        if sources.missing:
            yield Incomplete(tool, tuple(sources.missing), tuple(group))
        else:
            yield PlannedCall(tool, arguments)


def _groups(parameters: list[Parameter], found: list[NamedPlace]) -> list[list[NamedPlace]]:
    """Places for one call each, when the tool takes one and the question names several; else all for one call."""
    roles = [role for each in parameters if (role := role_of(each)) in (Role.PLACE, Role.TIME_ZONE)]
    if len(roles) != 1:
        return [found]
    bare_zones_suit = roles == [Role.TIME_ZONE]
    suitable = [each for each in found if each.english is not None or (bare_zones_suit and each.zone is not None)]
    return [[each] for each in suitable[:_MOST_PLACES]] or [found]
