"""The JSON documents of the API, for OpenAPI; a test holds the real answers against them."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from toolchat.errors import CrossSite, QuotaExceeded, SessionBusy
from toolchat.service.api.problems import problems
from toolchat.service.api.responses.event_stream import EVENTS


class ModelUsed(BaseModel):
    """Which model answered."""

    provider: Literal["offline", "dashscope", "openai_compatible"]
    name: str


class ToolCallRecord(BaseModel):
    """One tool call and its result."""

    id: str
    name: str
    arguments: Any = Field(description="The arguments as an object, or the model's text if it is not valid JSON")
    result: str = Field(description="The text that the model received; an object with `error` after a failure")
    outcome: Literal["ok", "error"]
    duration_ms: float
    round: int = Field(description="The round in which the model requested the call, from 1")
    sandbox: bool = Field(False, description="True if the result is a sandbox's invented data; else absent")
    cached: bool = Field(False, description="True if the result comes from the cache; else absent")
    repaired: bool = Field(False, description="True if the arguments or the call itself were repaired; else absent")
    error_kind: str = Field("", description="A stable code of the failure; absent if the outcome is ok")
    approved_by: str = Field("", description="The key or person that approved the call; absent if that is not known")
    data: Any = Field(None, description="What the tool returned for the client beside the text; absent if nothing")


class ToolRun(ToolCallRecord):
    """A tool call without a model."""

    request_id: str


class TokenUsage(BaseModel):
    """Tokens of all rounds together, as the provider counts them."""

    input_tokens: int
    output_tokens: int
    total_tokens: int
    cached_tokens: int = Field(0, description="Cached tokens within the input; absent if not reported")
    reasoning_tokens: int = Field(0, description="Reasoning tokens within the output; absent if not reported")


class PendingCall(BaseModel):
    """A call that waits for approval."""

    id: str
    name: str
    arguments: Any
    approver: str = Field("", description="The role of who has to approve, never who asked; absent: who asked confirms")


class DescribedCall(PendingCall):
    """A call to decide about, and what its tool does."""

    description: str
    may_edit: bool = Field(description="Whether the decision may change the arguments")


class ApprovalDocument(BaseModel):
    """A question whose answer waits for approval, the calls to decide about, and what was decided."""

    id: str
    status: Literal["waiting", "decided"]
    calls: list[DescribedCall]
    question: str
    asked_by: str = Field(description="The name of the key or the token that asked; empty without one")
    tenant: str
    asked_at: str
    expires_in: float = Field(description="Seconds until it expires")
    may_decide: bool = Field(description="Whether the client may decide")
    decision: str = Field("", description="`approved`, `rejected` or `partly approved`; absent while it waits")
    by: str = Field("", description="Who has decided")
    at: str = Field("", description="When it was decided")
    reason: str = Field("", description="Why it was rejected")
    answer: str = Field("", description="The answer's text, or a tool's result; only if somebody else had to decide")
    failure: str = Field("", description="Why there is no answer, if it failed")
    approval: str = Field("", description="The id of the next approval that the answer waits for")


class Approvals(BaseModel):
    """A page of approvals."""

    approvals: list[ApprovalDocument]
    next: str = Field(description="Where the list continues, as `before`; empty at the end")


class PendingApproval(BaseModel):
    """The approval that an answer waits for; `POST /approvals/{id}` decides about its calls."""

    id: str
    calls: list[PendingCall]
    expires_in: float = Field(description="Seconds until it expires")
    token: str | None = Field(
        None,
        description="Token to decide with, in the header X-Approval-Token; only if the previous decision had one",
    )


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


class AnswerForModels(BaseModel):
    """An answer with its tool calls, usage and duration."""

    model_config = ConfigDict(json_schema_extra={"examples": [_ANSWERED]})

    answer: str
    model: ModelUsed
    finish_reason: str
    rounds: int = Field(description="Model calls")
    tool_calls: list[ToolCallRecord]
    usage: TokenUsage
    duration_ms: float = Field(description="Milliseconds from the request to its end")
    request_id: str
    session_id: str = Field("", description="The session, if the question belongs to one")


class ChatAnswer(AnswerForModels):
    """An answer with its tool calls, usage and duration."""

    approval: PendingApproval | None = Field(None, description="Present if the answer waits for approval")


class AskedCall(BaseModel):
    """A call as the model requested it, if tool rounds are stored (`MEMORY_TOOL_ROUNDS`)."""

    id: str
    name: str
    arguments: str = Field(description="JSON text as the model wrote it")
    extra: dict[str, Any] = Field({}, description="Data that the provider expects back unchanged")


class ToolResult(BaseModel):
    """A tool's result, if tool rounds are stored (`MEMORY_TOOL_ROUNDS`)."""

    id: str
    name: str
    text: str
    sandbox: bool = Field(False, description="True if the text is a sandbox's invented data; else absent")


class ConversationMessage(BaseModel):
    """One message of a conversation; the last message of a turn also carries the turn's summary."""

    role: Literal["user", "assistant", "tool"]
    text: str = ""
    tool_calls: list[ToolCallRecord | AskedCall] = Field(
        [],
        description="In the last message of a turn: all calls of the turn as in an answer, long results and arguments "
        "shortened; in between, if tool rounds are stored: the calls that the model requested",
    )
    responses: list[ToolResult] = Field([], description="The tools' results; only in messages of the role `tool`")
    model: ModelUsed | None = Field(None, description="The model that ended the turn")
    usage: TokenUsage | None = Field(None, description="Tokens of the turn")
    duration_ms: float = Field(
        0, description="Milliseconds from the request to its end; of a turn that paused, from the decision"
    )
    sandbox: bool = Field(False, description="True if a result is a sandbox's invented data; else absent")


class Conversation(BaseModel):
    """The stored messages of a conversation, oldest first."""

    session_id: str
    turns: int = Field(description="Questions with their answers; 0 while the first one waits for approval")
    messages: list[ConversationMessage]


class SessionEntry(BaseModel):
    """A session of the client's key."""

    session_id: str
    title: str = Field(description="Beginning of its first question")
    updated_at: float = Field(description="Time of its last turn in seconds since 1970, up to a minute early")
    running: str = Field(default="", description="The id of its unfinished background question, if any")
    approval: str = Field(default="", description="The id of the newest approval that waits in it, if any")


class SessionTurn(BaseModel):
    """A question with its answer."""

    turn: int = Field(description="Its place in the session, from 0")
    is_in_window: bool = Field(description="Whether the model receives it with the next question, if there is space")
    messages: list[ConversationMessage]


class SessionTurns(BaseModel):
    """A page of the turns of a session."""

    session_id: str
    title: str = Field(description="Beginning of its first question")
    total: int = Field(description="Stored turns; 0 while the first one waits for approval")
    turns: list[SessionTurn]
    next: str = Field(description="Where the list continues, as `before`; empty at the end")


class StateStoreHealth(BaseModel):
    """The store of conversations."""

    kind: Literal["memory", "postgresql", "redis", "sqlite"]
    available: bool


class ToolDescription(BaseModel):
    """One tool as the model sees it."""

    name: str
    kind: Literal["function", "method"]
    description: str
    input_schema: dict[str, Any]
    sandbox: bool = Field(description="Whether it uses a sandbox's invented data")
    requires_approval: bool = Field(description="Whether a call may need approval")
    approver: str = Field(
        description="The role of who approves; empty: who asked confirms, unless the call requires one"
    )
    read_only: bool = Field(description="Whether a call is known to have no side effects")


class ToolModuleDescription(BaseModel):
    """One tool module."""

    name: str
    title: str
    path: str
    registered: bool
    reason: str = Field("", description="Why it is not registered, and the variable to set; absent if it is registered")
    in_conversations: bool = Field(description="Whether every conversation offers the tools, without naming them")
    interchangeable: bool = Field(description="Whether the method tools are the function tools once more")
    questions: list[str] = Field(description="Questions to begin with, which the model answers by the tools")
    tools: list[ToolDescription]


class Health(BaseModel):
    """The state of the service."""

    status: Literal["ok", "degraded"] = Field(description="`degraded`: requests that need the state store get 503")
    chat_model: str = Field("", description="Provider and model; only in readiness")
    tools: dict[str, bool] = Field({}, description="Whether each tool module is registered; only in readiness")
    state_store: StateStoreHealth | None = Field(None, description="The store of conversations; only in readiness")
    failures: dict[str, str] = Field(
        {}, description="What failed last, by upstream, until it answers again; only for keys with the role `operate`"
    )
    adapted: dict[str, Any] = Field(
        {}, description="By model, what its provider's refusals have changed in the requests; only for `operate`"
    )


class Index(BaseModel):
    """The index of the service."""

    name: str
    version: str
    chat_model: str
    documentation: str
    playground: str
    question_max_chars: int = Field(description="Longest question that is accepted by POST")
    takes_images: bool = Field(description="Whether the model takes the images of a question")
    client: str = Field(description="The name of the key or the token; empty without one")
    may_ask: bool = Field(description="Whether it may ask questions, and not only decide about those of others")
    endpoints: dict[str, str] = Field(description="Methods by path, with their summaries")


_HEADERS = {
    "X-Chat-Model": "The model that answered",
    "X-Sandbox": "Offered tools that answer from invented data",
    "X-Finish-Reason": "Why the model stopped; `length`, `incomplete`: the answer was cut off",
    "X-Request-ID": "The request's id",
    "X-Toolchat-Overhead-Ms": "Milliseconds that the service itself took until the first byte",
}


def _answer(description: str, headers: Mapping[str, str], **content: Any) -> dict[str, Any]:
    shown = {name: {"description": text, "schema": {"type": "string"}} for name, text in headers.items()}
    return {"description": description, "headers": shown, **content}


_IN_SESSION = _HEADERS | {"X-Session-ID": "The session, to continue it"}
_IN_THE_FORMAT = "The answer, in the format of `Accept`; text by default"
_STOPPED = "A browser reconnects (`Last-Event-ID`) after the end of a stream: the model does not run again"
ANSWER_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: _answer(_IN_THE_FORMAT, _HEADERS, model=ChatAnswer),
    204: {"description": _STOPPED},
    **problems(CrossSite, 406, 422, QuotaExceeded, 500, 502, 503, 504),
}
"""The responses to a question."""

SESSION_RESPONSES = ANSWER_RESPONSES | {
    200: _answer(_IN_THE_FORMAT, _IN_SESSION, model=ChatAnswer),
    **problems(SessionBusy),
}
STREAM_RESPONSES = SESSION_RESPONSES | {
    200: _answer("The answer as server-sent events", _IN_SESSION, content={EVENTS.media_type: EVENTS.documentation})
}
"""The responses of a route that always streams."""
