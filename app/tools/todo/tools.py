"""The tools ``todoUpdate`` and ``todoRead``, by which a model writes and reads its plan."""

from typing import Annotated

from pydantic import BeforeValidator, Field

from app.tools.todo.lists import MAX_TODOS, TodoEntry, TodoLists, rendered, todo_items
from toolchat import CONVERSATION_ID, AssistantMessage, StoreUnavailable, ToolContext, ToolExecutionError, tool

TODO_UPDATE = "todoUpdate"


_Items = Annotated[
    list[TodoEntry],
    BeforeValidator(lambda value: [] if value is None else value),
    Field(
        description="The full list of todo items (全部待办事项); an empty list clears it",
        json_schema_extra={"maxItems": MAX_TODOS},
    ),
]


@tool(
    name=TODO_UPDATE,
    description="Write the todo list (待办清单) of this conversation, to plan a task of several steps and to track its "
    "progress. The list given replaces the one before, so pass all items each time, each with id, text and status: "
    "pending, in_progress or completed. At most one item may be in_progress. One call per message.",
)
class TodoUpdate:
    """Replaces the list."""

    def __init__(self, lists: TodoLists) -> None:
        self._lists = lists

    async def __call__(self, items: _Items, context: ToolContext) -> str:
        """Store the list and return it as text.

        Raises:
            ToolExecutionError: the list is not valid, the message has a second update, there is no conversation, or
                the store is unavailable; the previous list is unchanged.
        """
        conversation_id = _conversation_id(context)
        _check_only_update(context)
        kept = todo_items(items)
        try:
            await self._lists.put(conversation_id, kept)
        except StoreUnavailable as error:
            raise _unreachable(error) from error
        return rendered(kept)


@tool(
    name="todoRead",
    description="Show the current todo list (待办清单) of this conversation: what is done and what remains.",
    read_only=True,
    examples=("Show the todo list", "查看待办清单"),
)
class TodoRead:
    """Shows the list."""

    def __init__(self, lists: TodoLists) -> None:
        self._lists = lists

    async def __call__(self, context: ToolContext) -> str:
        """Return the list as text; raises ``ToolExecutionError`` without a conversation or store."""
        try:
            return rendered(await self._lists.get(_conversation_id(context)))
        except StoreUnavailable as error:
            raise _unreachable(error) from error


def _conversation_id(context: ToolContext) -> str:
    conversation_id = context.get(CONVERSATION_ID)
    if not isinstance(conversation_id, str) or not conversation_id:
        raise ToolExecutionError("there is no conversation that a todo list could belong to", kind="no-conversation")
    return conversation_id


def _check_only_update(context: ToolContext) -> None:
    """Reject all updates of a message with several: they run concurrently, so the winner would be random."""
    last = context.history[-1] if context.history else None
    calls = last.tool_calls if isinstance(last, AssistantMessage) else ()
    if sum(call.name == TODO_UPDATE for call in calls) > 1:
        raise ToolExecutionError(
            f"one message may call {TODO_UPDATE} once; none of its calls was kept",
            kind="several-updates",
            hint="send one call with the full list",
        )


def _unreachable(error: StoreUnavailable) -> ToolExecutionError:
    return ToolExecutionError("the todo list cannot be reached just now", kind=error.code)
