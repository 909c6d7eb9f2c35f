"""Questions to begin a conversation with, without those that the offline model would refuse."""

from collections.abc import Iterable, Sequence

from toolchat.service.offline.planning import plan
from toolchat.service.offline.replies import examples_of
from toolchat.service.offline.text import Text
from toolchat.service.offline.tools import OfferedTool
from toolchat.tool_calling.callback import ToolCallback


def starters_of(declared: Sequence[str], own: Iterable[ToolCallback], offered: Iterable[ToolCallback]) -> list[str]:
    """The declared questions that call a tool; where there are none, what the offline model itself would propose."""
    tools = [OfferedTool(each.definition, each.metadata) for each in offered]
    names = {each.definition.name for each in own}
    shown = [each for each in tools if each.name in names]
    proposed = (example for chinese in (False, True) for example in examples_of(shown, tools, chinese, 1))
    return [each for each in declared if plan(Text.of(each), tools).calls] or list(dict.fromkeys(proposed))
