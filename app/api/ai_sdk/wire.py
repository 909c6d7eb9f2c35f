"""A request as ``useChat`` sends it; what is not named here is left alone, as pages add fields of their own."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, ValidationError
from pydantic.alias_generators import to_camel

from app.errors import InvalidRequest

__all__ = ["ChatRequest", "Part", "UIMessage", "read_request"]


class _Wire(BaseModel):
    model_config = ConfigDict(extra="ignore", alias_generator=to_camel)


class ToolApproval(_Wire):
    """The user's decision about a call, once there is one."""

    id: str
    approved: StrictBool | None = None
    reason: str | None = Field(None, max_length=1000)


class Part(_Wire):
    """A piece of a message: text, a file, the beginning of a step, or a tool's call with what became of it."""

    type: str
    text: str = ""
    tool_name: str | None = None
    """Of a ``dynamic-tool``; a ``tool-NAME`` has it in its type."""
    tool_call_id: str = Field("", max_length=256)
    state: str | None = None
    input: Any = None
    output: Any = None
    error_text: str | None = None
    approval: ToolApproval | None = None


class UIMessage(_Wire):
    """One message of the conversation."""

    id: str = ""
    role: Literal["system", "user", "assistant"]
    parts: list[Part]


class ChatRequest(_Wire):
    """A conversation to go on with."""

    messages: list[UIMessage] = Field(min_length=1, max_length=4096)
    message_id: str | None = None
    """The message that was edited, or whose calls were decided."""

    def continued(self) -> UIMessage:
        """The message that the answer goes on with, if it goes on with one: the named one, else the last."""
        named = (each for each in self.messages if self.message_id and each.id == self.message_id)
        return next(named, self.messages[-1])


def read_request(body: bytes) -> ChatRequest:
    """Read a request's body.

    Raises:
        InvalidRequest: it is no JSON, or a field has another form; the detail names it.
    """
    try:
        return ChatRequest.model_validate_json(body)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
    if fault["type"] == "json_invalid":
        raise InvalidRequest("the body is not JSON that can be read")
    place = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in fault["loc"])
    raise InvalidRequest(f"{place.lstrip('.')}: {fault['msg']}" if place else str(fault["msg"]))
