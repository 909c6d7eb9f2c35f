"""The todo list over HTTP: a conversation that plans with it, and the list itself."""

from typing import Any, Literal

from dishka.integrations.fastapi import DishkaRoute, FromDishka
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from app.tools.todo import module
from app.tools.todo.advisors import IS_PLANNED
from app.tools.todo.lists import TodoLists, completed, rendered
from toolchat import NotConfigured, StoreUnavailable, ValidationFailed
from toolchat.service import (
    Service,
    SessionParameters,
    SessionPath,
    answer_in_session,
    conversation_of,
    problems,
    question_routes,
)

_PARAMETERS = SessionParameters(module.examples, module.examples["默认 / default"], choosing=False)
_ITEMS: list[JsonValue] = [
    {"id": "1", "text": "查北京时间", "status": "completed"},
    {"id": "2", "text": "查东京时间", "status": "in_progress"},
]

router = APIRouter(prefix="/todo", tags=["Todo"], route_class=DishkaRoute)


class TodoRecord(BaseModel):
    """One item."""

    id: str
    text: str
    status: Literal["pending", "in_progress", "completed"]


class TodoList(BaseModel):
    """A conversation's list."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "session_id": "s-1",
                    "items": _ITEMS,
                    "completed": 1,
                    "total": 2,
                    "text": "[x] #1: 查北京时间\n[>] #2: 查东京时间\n(1/2 completed)",
                }
            ]
        }
    )

    session_id: str
    items: list[TodoRecord]
    completed: int = Field(description="How many items are done")
    total: int
    text: str = Field(description="The list as the model receives it")


@question_routes(router, "/chat", _PARAMETERS, summary="Ask in a session, with a todo list")
async def chat(request: Request, service: Service) -> Response:
    """Answer the next question of a conversation whose model plans with a todo list and has every tool of the service.

    As server-sent events, the list comes after every change: `event: todo` with `items`, `completed` and `total`. Tool
    calls with invalid JSON return to the model up to three times. The header `X-Session-ID` has the session's id.
    """
    question = await _PARAMETERS.read(request)
    tools, advisors = service.tools.for_conversation(None, "todo")
    context = {IS_PLANNED: True}
    return await answer_in_session(request, question, "/todo/chat", tools=tools, advisors=advisors, context=context)


@router.get(
    "/{sessionId}",
    response_model=TodoList,
    responses=problems(ValidationFailed, NotConfigured, StoreUnavailable),
    summary="Show a conversation's todo list",
)
async def show(session: SessionPath, lists: FromDishka[TodoLists]) -> dict[str, Any]:
    """Show the todo list of a session; it is empty if the session has none or does not exist."""
    items = await lists.get(conversation_of(session))
    return {
        "session_id": session,
        "items": [each.to_dict() for each in items],
        "completed": completed(items),
        "total": len(items),
        "text": rendered(items),
    }
