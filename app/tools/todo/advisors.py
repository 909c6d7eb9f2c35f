"""Advisors of todo lists: planning instructions, repairs, events for the client and reminders for the model."""

from dataclasses import replace

from app.tools.todo.lists import TodoLists, completed, is_rendering
from app.tools.todo.tools import TODO_UPDATE
from toolchat import (
    CONVERSATION_ID,
    Advisor,
    AdvisorChain,
    BaseAdvisor,
    ChatEvent,
    ChatRequest,
    ChatResponse,
    Emit,
    Notice,
    StoreUnavailable,
    SystemMessage,
    ToolCallFinished,
    ToolCallRepairAdvisor,
    ToolResponseMessage,
)
from toolchat.service import Settings

IS_PLANNED = "todo_planning"
"""Key of the tool context that turns planning on, even before there is a list."""

PLANNING = (
    f"Work by a todo list. For a question of several steps call {TODO_UPDATE} first, with one item for each step. Keep "
    "the one step that you work on in_progress, and mark it completed as soon as its result is there. Leave pending "
    "what cannot be done, and say so. Answer when no step is left that you can do."
)
REMINDER = "<reminder>Update your todos.</reminder>"
_ROUNDS_BEFORE_REMINDER = 3


class TodoPlanning(BaseAdvisor):
    """Appends planning instructions to the system prompt."""

    order = 100

    def applies(self, request: ChatRequest) -> bool:
        """See :meth:`Advisor.applies`; a turn that goes on after approval has the instructions already."""
        return request.resume is None and bool(request.context.get(IS_PLANNED))

    def before(self, request: ChatRequest) -> ChatRequest:
        """See :meth:`BaseAdvisor.before`."""
        given = [each.text for each in request.messages if isinstance(each, SystemMessage)]
        rest = tuple(each for each in request.messages if not isinstance(each, SystemMessage))
        return replace(request, messages=(SystemMessage("\n\n".join([*given, PLANNING])), *rest))


class TodoRepairs(ToolCallRepairAdvisor):
    """Repairs broken tool calls while planning, unless the service repairs them for every request."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._is_needed = not settings.tool_call_repairs

    def applies(self, request: ChatRequest) -> bool:
        """See :meth:`Advisor.applies`."""
        # Two repair advisors around one another would multiply their attempts.
        return self._is_needed and bool(request.context.get(IS_PLANNED))


class TodoEvents(Advisor):
    """Sends the client an event ``todo`` with the list after every update."""

    order = 250

    def __init__(self, lists: TodoLists) -> None:
        self._lists = lists

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        """See :meth:`Advisor.advise`."""

        async def with_list(event: ChatEvent) -> None:
            await emit(event)
            if isinstance(event, ToolCallFinished) and event.call.name == TODO_UPDATE and event.outcome == "ok":
                try:
                    items = await self._lists.get(str(request.context.get(CONVERSATION_ID)))
                except StoreUnavailable:
                    return  # the turn goes on: the event only informs the client
                records = [each.to_dict() for each in items]
                await emit(Notice("todo", {"items": records, "completed": completed(items), "total": len(items)}))

        return await chain.proceed(request, with_list)


class TodoReminder(Advisor):
    """Reminds the model of its list after three rounds of tool calls without an update.

    It stands inside the tool loop, so it sees every turn of the model. The reminder follows the last tool result of
    that one turn: providers refuse a second result for a call, and since the loop keeps its own messages, the
    reminder enters neither the next turn nor a memory. Rounds are counted per conversation, across its questions. A
    conversation that has nothing left to do, and was not asked to plan, is not reminded.
    """

    order = 350

    def __init__(self, lists: TodoLists) -> None:
        self._lists = lists

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        """See :meth:`Advisor.advise`."""
        last = request.messages[-1] if request.messages else None
        conversation_id = request.context.get(CONVERSATION_ID)
        # A resumed round was counted before the turn paused.
        if request.resume is None and isinstance(last, ToolResponseMessage) and last.responses and conversation_id:
            offered = TODO_UPDATE in request.tool_set.by_name and request.options.tool_choice != "none"
            if await self._is_due(request, str(conversation_id), last, offered=offered):
                request = replace(request, messages=(*request.messages[:-1], _with_reminder(last)))
        return await chain.proceed(request, emit)

    async def _is_due(
        self, request: ChatRequest, conversation_id: str, latest: ToolResponseMessage, *, offered: bool
    ) -> bool:
        """Count a round; return whether to remind the model now. Never if the store is unavailable."""
        updated = any(each.name == TODO_UPDATE and is_rendering(each.text) for each in latest.responses)
        if not (updated or offered):
            return False
        try:
            # In the store, not in this object: the next question of the session may reach another replica.
            rounds = 0 if updated else await self._lists.rounds(conversation_id) + 1
            is_due = rounds >= _ROUNDS_BEFORE_REMINDER
            await self._lists.put_rounds(conversation_id, 0 if is_due else rounds)
            if not is_due or request.context.get(IS_PLANNED):
                return is_due
            items = await self._lists.get(conversation_id)
            return completed(items) < len(items)
        except StoreUnavailable:
            return False


def _with_reminder(message: ToolResponseMessage) -> ToolResponseMessage:
    *others, last = message.responses
    return ToolResponseMessage((*others, replace(last, text=f"{last.text}\n\n{REMINDER}")))
