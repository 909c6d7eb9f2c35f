"""What accompanies a conversation with a todo list: news for the client, and a reminder for the model."""

from dataclasses import replace

from app.chat.advisors import Advisor, AdvisorChain
from app.chat.request import ChatEvent, ChatRequest, Emit, Notice
from app.chat_models.base import ChatResponse
from app.errors import StoreUnavailable
from app.messages import ToolResponseMessage
from app.tool_calling.context import CONVERSATION_ID
from app.tool_calling.events import ToolCallFinished
from app.tools.todo.items import completed, is_rendering
from app.tools.todo.lists import TodoLists
from app.tools.todo.planning import IS_PLANNED
from app.tools.todo.tools import TODO_UPDATE

__all__ = ["REMINDER", "TodoEvents", "TodoReminder"]

REMINDER = "<reminder>Update your todos.</reminder>"
_ROUNDS_BEFORE_REMINDER = 3


class TodoEvents(Advisor):
    """Tells the client the list after every change, as an event ``todo`` behind the call that made it."""

    order = 250

    def __init__(self, lists: TodoLists) -> None:
        self._lists = lists

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        """See :meth:`Advisor.advise`."""

        async def with_list(event: ChatEvent) -> None:
            await emit(event)
            if isinstance(event, ToolCallFinished) and event.call.name == TODO_UPDATE and event.outcome == "ok":
                notice = await self._notice(request)
                if notice is not None:
                    await emit(notice)

        return await chain.proceed(request, with_list)

    async def _notice(self, request: ChatRequest) -> Notice | None:
        try:
            items = await self._lists.get(str(request.context.get(CONVERSATION_ID)))
        except StoreUnavailable:
            return None
        records = [each.as_record() for each in items]
        return Notice("todo", {"items": records, "completed": completed(items), "total": len(items)})


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
        if isinstance(last, ToolResponseMessage) and last.responses and conversation_id:
            offered = any(each.definition.name == TODO_UPDATE for each in request.tools)
            if await self._is_due(request, str(conversation_id), last, offered=offered):
                request = replace(request, messages=(*request.messages[:-1], _with_reminder(last)))
        return await chain.proceed(request, emit)

    async def _is_due(
        self, request: ChatRequest, conversation_id: str, latest: ToolResponseMessage, *, offered: bool
    ) -> bool:
        """Count a round; whether the model is to be reminded now. Never when the store is away."""
        updated = any(each.name == TODO_UPDATE and is_rendering(each.text) for each in latest.responses)
        if not (updated or offered):
            return False
        try:
            rounds = 0 if updated else await self._lists.rounds(conversation_id) + 1
            is_due = rounds >= _ROUNDS_BEFORE_REMINDER
            await self._lists.put_rounds(conversation_id, 0 if is_due else rounds)
            return is_due and (bool(request.context.get(IS_PLANNED)) or await self._has_open_items(conversation_id))
        except StoreUnavailable:
            return False

    async def _has_open_items(self, conversation_id: str) -> bool:
        items = await self._lists.get(conversation_id)
        return completed(items) < len(items)


def _with_reminder(message: ToolResponseMessage) -> ToolResponseMessage:
    *others, last = message.responses
    return ToolResponseMessage((*others, replace(last, text=f"{last.text}\n\n{REMINDER}")))
