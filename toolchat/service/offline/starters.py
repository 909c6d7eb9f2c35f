"""Questions to begin a conversation with, without those that the offline model would refuse."""

from collections.abc import Iterable, Sequence

from toolchat.service.offline.planning import Planner, planner_of
from toolchat.service.offline.replies import example
from toolchat.service.offline.text import Text
from toolchat.tool_calling.callback import ToolCallback


def starters_of(declared: Sequence[str], own: Iterable[ToolCallback], offered: Iterable[ToolCallback]) -> list[str]:
    """The declared questions that call a tool; where there are none, what the offline model itself would propose."""
    planner, names = _planner(offered), {each.definition.name for each in own}
    if answered := [each for each in declared if planner.plan(Text.of(each)).calls]:
        return answered
    shown = [each for each in planner.tools if each.name in names]
    proposed = (next(filter(None, (example(planner, each, zh) for each in shown)), "") for zh in (False, True))
    return list(dict.fromkeys(filter(None, proposed)))


def unanswered(questions: Iterable[str], tools: Iterable[ToolCallback]) -> list[str]:
    """The questions that call none of some tools."""
    planner = _planner(tools)
    return [each for each in questions if not planner.plan(Text.of(each)).calls]


def _planner(callbacks: Iterable[ToolCallback]) -> Planner:
    return planner_of([(each.definition, each.metadata) for each in callbacks])
