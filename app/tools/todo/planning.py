"""The instructions of a conversation that works by a todo list."""

from dataclasses import replace

from app.chat.advisors import BaseAdvisor
from app.chat.repair_advisor import ToolCallRepairAdvisor
from app.chat.request import ChatRequest
from app.messages import SystemMessage
from app.settings import Settings
from app.tools.todo.tools import TODO_UPDATE

__all__ = ["IS_PLANNED", "PLANNING", "TodoPlanning", "TodoRepairs"]

IS_PLANNED = "todo_planning"
"""The context value of a question that is to be worked on by a list, even before there is one."""

PLANNING = (
    f"Work by a todo list. For a question of several steps call {TODO_UPDATE} first, with one item for each step. Keep "
    "the one step that you work on in_progress, and mark it completed as soon as its result is there. Leave pending "
    "what cannot be done, and say so. Answer when no step is left that you can do."
)


class TodoPlanning(BaseAdvisor):
    """Tells the model to plan with the list, behind the service's own instructions."""

    order = 100

    def applies(self, request: ChatRequest) -> bool:
        """See :meth:`Advisor.applies`; a turn that goes on after approval has the instructions already."""
        return request.paused is None and bool(request.context.get(IS_PLANNED))

    def before(self, request: ChatRequest) -> ChatRequest:
        """See :meth:`BaseAdvisor.before`."""
        given = [each.text for each in request.messages if isinstance(each, SystemMessage)]
        rest = tuple(each for each in request.messages if not isinstance(each, SystemMessage))
        return replace(request, messages=(SystemMessage("\n\n".join([*given, PLANNING])), *rest))


class TodoRepairs(ToolCallRepairAdvisor):
    """Sends a plan's broken calls back to the model, where the service does not do so with every question's."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._is_needed = not settings.tool_call_repairs

    def applies(self, request: ChatRequest) -> bool:
        """See :meth:`Advisor.applies`."""
        return self._is_needed and bool(request.context.get(IS_PLANNED))
