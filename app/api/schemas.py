"""The JSON documents of the API, for OpenAPI; a test holds the real answers against them."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from app.api.problems import problems
from app.api.responses import EVENTS
from toolchat.errors import CrossSite, QuotaExceeded, SessionBusy

__all__ = [
    "ANSWER_RESPONSES",
    "SESSION_RESPONSES",
    "STREAM_RESPONSES",
    "ChatAnswer",
    "Conversation",
    "Health",
    "Index",
    "ToolModuleDescription",
    "ToolRun",
    "WaitingCalls",
]


class ModelUsed(BaseModel):
    """Which model answered."""

    provider: Literal["offline", "dashscope", "openai_compatible"]
    name: str


class ToolCallRecord(BaseModel):
    """One tool call and what became of it."""

    id: str
    name: str
    arguments: Any = Field(description="The arguments as an object; the model's own text where it is not JSON")
    result: str = Field(description="The text that the model was given; an object with `error` after a failure")
    outcome: Literal["ok", "error"]
    duration_ms: float
    round: int = Field(description="The model turn that asked for the call, from 1")
    sandbox: bool = Field(False, description="True where the result is a sandbox's invented data; else absent")
    cached: bool = Field(False, description="True where the result was made for an equal call; else absent")
    repaired: bool = Field(False, description="True where the arguments had to be read as they were meant; else absent")
    error_kind: str = Field("", description="A stable word for the failure; absent when the outcome is ok")


class ToolRun(ToolCallRecord):
    """A tool call that was made by hand."""

    request_id: str


class TokenUsage(BaseModel):
    """Tokens of all turns together, as the provider counted them."""

    input_tokens: int
    output_tokens: int
    total_tokens: int
    cached_tokens: int = Field(0, description="Of the input, what the provider had at hand; absent where it tells none")
    reasoning_tokens: int = Field(0, description="Of the output, what nobody is shown; absent where it tells none")


class PendingCall(BaseModel):
    """A call that waits for the user's consent."""

    id: str
    name: str
    arguments: Any


class WaitingCalls(BaseModel):
    """What an answer waits for: decide by `POST /approvals/{id}`."""

    id: str
    calls: list[PendingCall]


class PendingApproval(WaitingCalls):
    """An answer that waits."""

    expires_in: float = Field(description="Seconds until it is forgotten")


_ANSWERED: dict[str, Any] = {
    "answer": "北京现在是 17:30。",
    "model": {"provider": "openai_compatible", "name": "qwen-plus"},
    "finish_reason": "stop",
    "rounds": 2,
    "tool_calls": [
        {
            "id": "call_1",
            "name": "getCityTimeFunction",
            "arguments": {"timeZoneId": "Asia/Shanghai"},
            "result": "The current time in Asia/Shanghai is 2026-03-02 17:30",
            "outcome": "ok",
            "duration_ms": 0.4,
            "round": 1,
        }
    ],
    "usage": {"input_tokens": 40, "output_tokens": 10, "total_tokens": 50},
    "duration_ms": 612.5,
    "request_id": "4bf92f3577b34da6",
}


class ChatAnswer(BaseModel):
    """An answer with its whole trace."""

    model_config = ConfigDict(json_schema_extra={"examples": [_ANSWERED]})

    answer: str
    model: ModelUsed
    finish_reason: str
    rounds: int = Field(description="Turns of the model")
    tool_calls: list[ToolCallRecord]
    usage: TokenUsage
    duration_ms: float
    request_id: str
    session_id: str = Field("", description="The session, where the question belongs to one")
    approval: PendingApproval | None = Field(None, description="Present when the answer waits for approval")


class AskedCall(BaseModel):
    """A call as the model asked for it, where tool rounds are kept for the model."""

    id: str
    name: str
    arguments: str = Field(description="JSON text as the model wrote it")
    extra: dict[str, Any] = Field({}, description="What the provider wants back unchanged")


class ToolResult(BaseModel):
    """What a tool answered, where tool rounds are kept for the model."""

    id: str
    name: str
    text: str
    sandbox: bool = Field(False, description="True where the text is a sandbox's invented data; else absent")


class ConversationMessage(BaseModel):
    """One message of a conversation.

    The one that ends a turn also has what became of the whole turn; it is absent in what an older version has kept.
    """

    role: Literal["user", "assistant", "tool"]
    text: str = ""
    tool_calls: list[ToolCallRecord | AskedCall] = Field(
        [],
        description="Where a turn ends: every call of the turn as in an answer, long results and arguments shortened; "
        "in between, where tool rounds are kept: the calls that the model asked for",
    )
    responses: list[ToolResult] = Field([], description="What the tools answered; messages of the role `tool` only")
    model: ModelUsed | None = Field(None, description="Which model ended the turn")
    usage: TokenUsage | None = Field(None, description="Tokens of the turn")
    duration_ms: float = Field(0, description="Time from the question to the end; from the decision, where it paused")
    sandbox: bool = Field(False, description="True where a result is a sandbox's invented data; else absent")


class Conversation(BaseModel):
    """What is kept of a conversation, oldest first."""

    session_id: str
    turns: int = Field(description="Questions with their answers")
    messages: list[ConversationMessage]


class StateStoreHealth(BaseModel):
    """Where conversations are kept."""

    kind: Literal["memory", "redis"]
    available: bool


class ToolDescription(BaseModel):
    """One tool as the model sees it."""

    name: str
    kind: Literal["function", "method"]
    description: str
    input_schema: dict[str, Any]
    sandbox: bool = Field(description="Whether it answers from a stand-in's invented data")
    requires_approval: bool = Field(description="Whether a call waits for the user's consent")
    read_only: bool = Field(description="Whether it is known that a call changes nothing")


class ToolModuleDescription(BaseModel):
    """One tool folder."""

    name: str
    title: str
    path: str
    registered: bool
    reason: str = Field("", description="Why it is not registered, naming the variable to set; absent when it is")
    tools: list[ToolDescription]


class Health(BaseModel):
    """Whether the service is well."""

    status: Literal["ok", "degraded"] = Field(description="`degraded`: what needs the state store answers 503 just now")
    chat_model: str = Field("", description="Provider and model; given by readiness")
    tools: dict[str, bool] = Field({}, description="Tool folders, and whether each is registered; given by readiness")
    state_store: StateStoreHealth | None = Field(None, description="Where conversations are kept; given by readiness")


class Index(BaseModel):
    """What there is."""

    name: str
    version: str
    chat_model: str
    documentation: str
    playground: str
    endpoints: dict[str, str] = Field(description="By path: its methods, and what each is for")


def _header(description: str) -> dict[str, Any]:
    return {"description": description, "schema": {"type": "string"}}


_HEADERS = {
    "X-Chat-Model": _header("The model that answered"),
    "X-Sandbox": _header("Offered tools that answer from invented data"),
    "X-Finish-Reason": _header("Why the model stopped; `length` means that the answer was cut off"),
    "X-Request-ID": _header("The request's id"),
    "X-Toolchat-Overhead-Ms": _header("Milliseconds that the service itself took until the first byte"),
}
_IN_SESSION = _HEADERS | {"X-Session-ID": _header("The session, to go on with")}
_PROBLEMS = problems(CrossSite, 406, 422, QuotaExceeded, 500, 502, 503, 504)
_STOPPED: dict[int | str, dict[str, Any]] = {
    204: {"description": "A stream that a browser reconnects to (`Last-Event-ID`) is over: nobody is asked again"}
}
_ANSWER = {
    "description": "The answer, in the form that `Accept` asks for; text where it asks for none",
    "model": ChatAnswer,
}

ANSWER_RESPONSES: dict[int | str, dict[str, Any]] = {200: _ANSWER | {"headers": _HEADERS}, **_STOPPED, **_PROBLEMS}
"""Every status and media type that a question can be answered with."""

SESSION_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: _ANSWER | {"headers": _IN_SESSION},
    **_STOPPED,
    **_PROBLEMS,
    **problems(SessionBusy),
}
"""Every status with which a question in a session can be answered."""

STREAM_RESPONSES: dict[int | str, dict[str, Any]] = {
    **SESSION_RESPONSES,
    200: {
        "description": "The answer as server-sent events",
        "content": {EVENTS.media_type: EVENTS.documentation},
        "headers": _IN_SESSION,
    },
}
"""The same where the answer is always a stream."""
