"""From a question and the tools on offer to the calls to make."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from app.chat_models.offline.choosing import Choice, KnownTool, chosen
from app.chat_models.offline.filling import filled
from app.chat_models.offline.question import Question
from app.chat_models.offline.roles import Role, role_of
from app.chat_models.offline.schemas import Parameter, parameters_of
from app.chat_models.offline.sources import Sources
from app.chat_models.offline.texts import NamedPlace, places
from app.tool_calling.definition import ToolDefinition

__all__ = ["Incomplete", "Plan", "PlannedCall", "plan"]

_MOST_PLACES = 5


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
    planned = [each for choice in chosen(question, tools) for each in _planned(choice, question)]
    calls = tuple(each for each in planned if isinstance(each, PlannedCall))
    return Plan(calls, tuple(each for each in planned if isinstance(each, Incomplete)))


def _planned(choice: Choice, question: Question) -> Iterator[PlannedCall | Incomplete]:
    parameters = parameters_of(choice.tool.input_schema)
    for group in _groups(list(parameters), places(choice.part) or places(question)):
        sources = Sources(choice.part, question, group)
        arguments = filled(parameters, sources)
        if sources.missing:
            yield Incomplete(choice.tool, tuple(sources.missing), tuple(group))
        else:
            yield PlannedCall(choice.tool, arguments)


def _groups(parameters: list[Parameter], found: list[NamedPlace]) -> list[list[NamedPlace]]:
    """Places for one call each, when the tool takes one and the question names several; else all for one call."""
    roles = [role for each in parameters if (role := role_of(each)) in (Role.PLACE, Role.TIME_ZONE)]
    if len(roles) != 1:
        return [found]
    bare_zones_suit = roles == [Role.TIME_ZONE]
    suitable = [each for each in found if each.english is not None or (bare_zones_suit and each.zone is not None)]
    return [[each] for each in suitable[:_MOST_PLACES]] or [found]
