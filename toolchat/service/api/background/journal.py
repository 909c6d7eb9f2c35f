"""The journal of a turn: what its model answered and its tools returned, so that another process does not repeat it."""

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from pydantic import TypeAdapter

from toolchat.chat.advisors.base import Advisor, AdvisorChain
from toolchat.chat.request import ChatRequest, Emit
from toolchat.messages import AssistantMessage, ToolCall, Usage
from toolchat.models.base import ChatResponse, TextDelta
from toolchat.tool_calling.callback import ToolResult
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.errors import ToolExecutionError
from toolchat.tool_calling.manager import ProceedToolCall

_Answer = tuple[AssistantMessage, str, Usage, str, int]
"""The first fields of a response, which the model itself has determined."""
_ANSWER: TypeAdapter[_Answer] = TypeAdapter(_Answer)
_UNKNOWN = ToolExecutionError(
    "the process that ran this call has died, so its outcome is unknown: it may have taken effect",
    kind="outcome-unknown",
    hint="say so, or find out by a tool that only reads; do not simply repeat it",
)


class JournalAdvisor(Advisor):
    """Replays what earlier tries of a turn have done, and records what this one does.

    It is the innermost advisor: the loop, the memory and all other advisors run again as they did, and get the same
    answers of the model and the same results. A call that had begun and has no result runs again only if its tool may
    run twice.

    Args:
        earlier: the entries of earlier tries, in order.
        begin: called once, when nothing is waited for any more: the turn has its session.
        record: stores an entry, with the earlier ones, and waits for that unless ``waits`` is false; raises
            ``SessionBusy`` once another process has taken the turn over.
    """

    order = 1_000_000

    def __init__(
        self,
        turn: str,
        earlier: Sequence[Any],
        begin: Callable[[], Awaitable[None]],
        record: Callable[..., Awaitable[None]],
    ) -> None:
        self._answers = [value for kind, *value in earlier if kind == "answer"]
        self._results = {key: value for kind, key, *value in earlier if kind == "result"}
        self._begun = {key for kind, key, *_ in earlier if kind == "begun"}
        self._turn, self._begin, self._has_begun = turn, begin, False
        self._record = record
        self._calls: dict[str, int] = {}
        self._repeatable: set[str] = set()

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        if not self._has_begun:
            self._has_begun = True
            await self._begin()
        self._repeatable = {tool.definition.name for tool in request.tools if tool.metadata.may_run_twice}
        if self._answers:
            response = ChatResponse(*_ANSWER.validate_python(self._answers.pop(0)))
            if response.message.text:
                await emit(TextDelta(response.message.text))
            return response
        response = await chain.proceed(request, emit)
        answer = response.message, response.finish_reason, response.usage, response.model, response.rounds
        # Nothing follows an answer without calls but the end of the turn, which is stored anyway.
        is_last = not response.message.tool_calls
        await self._record("answer", *_ANSWER.dump_python(answer, mode="json"), waits=not is_last)
        return response

    async def around_tool_call(self, call: ToolCall, context: ToolContext, proceed: ProceedToolCall) -> ToolResult:
        key = self._key(call)
        if (stored := self._results.get(key)) is not None:
            return _replayed(*stored)
        if key in self._begun:
            raise _UNKNOWN
        is_guarded = call.name not in self._repeatable
        if is_guarded:
            await self._record("begun", key, waits=True)
        try:
            result = await proceed(call, context.with_idempotency_key(self._idempotency_key(key)))
        except ToolExecutionError as error:
            await self._record("result", key, error.message, error.kind, error.hint, waits=is_guarded)
            raise
        await self._record("result", key, list(result), waits=is_guarded)
        return result

    def _idempotency_key(self, key: str) -> str:
        return hashlib.sha256(f"{self._turn} {key}".encode(errors="surrogatepass")).hexdigest()[:32]

    def _key(self, call: ToolCall) -> str:
        """The call's id, with a number: a model may use an id again in a later round."""
        number = self._calls[call.id] = self._calls.get(call.id, 0) + 1
        return f"{number} {call.id}"


def _replayed(result: Any, kind: str = "", hint: str | None = None) -> ToolResult:
    if kind:
        raise ToolExecutionError(result, kind=kind, hint=hint)
    return ToolResult(*result)
