"""The tool ``ask``: a question that the service answers with its own model and tools."""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import to_json

from app.api.questions import MAX_QUERY_CHARS
from app.api.schemas import ChatAnswer
from app.api.service import ServiceState
from app.api.sessions import conversation_or_new
from app.chat.client import PromptSpec
from app.tool_calling.context import CONVERSATION_ID
from app.tool_calling.schema import tool_input_of

__all__ = ["ASK", "ask_prompt", "ask_tool"]

ASK = "ask"
"""The tool's name."""


class Asking(BaseModel):
    """What is asked."""

    model_config = ConfigDict(extra="forbid")

    question: Annotated[str, Field(description="The question", min_length=1, max_length=MAX_QUERY_CHARS)]
    tools: Annotated[list[str] | None, Field(description="Names of the tools to use; missing: all", max_length=50)] = (
        None
    )
    session_id: Annotated[
        str, Field(alias="sessionId", description="The conversation to go on with: session_id of an earlier answer")
    ] = ""


async def ask(asking: Asking) -> None:
    """Ask this service in plain words; it answers with its own chat model and its own tools."""


_INPUT = tool_input_of(ask, ASK)


@cache
def ask_tool() -> Mapping[str, Any]:
    """The tool as hosts are shown it."""
    return {
        "name": ASK,
        "description": ask.__doc__,
        "inputSchema": _INPUT.schema,
        "outputSchema": ChatAnswer.model_json_schema(),
    }


def ask_prompt(service: ServiceState, arguments: Mapping[str, Any], context: Mapping[str, Any]) -> PromptSpec:
    """The question that the arguments put, in the conversation that they name, else in a new one.

    Raises:
        ToolArgumentsError: the arguments do not fit.
        ValidationFailed: there is no such tool, or the session id is none.
    """
    asking: Asking = _INPUT.arguments(to_json(arguments).decode())["asking"]
    offered, advisors = service.tools.for_conversation(asking.tools)
    values = {**context, CONVERSATION_ID: conversation_or_new(asking.session_id)}
    prompt = service.chat.prompt(asking.question).tools(*offered).tool_context(values)
    return prompt.advisors(service.memory_advisor, *advisors)
