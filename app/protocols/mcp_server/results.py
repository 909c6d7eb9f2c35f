"""A call, and what it came to as the result of ``tools/call``."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic_core import ValidationError, to_json

from app.api.approvals import PendingTurn
from app.api.responses.active_request import ActiveRequest
from app.api.responses.formats import BufferedFormat
from app.protocols.mcp_server.listing import result_check
from toolchat.chat.advisors.base import SandboxNoticeAdvisor
from toolchat.chat.client import PromptSpec
from toolchat.chat.request import Emit
from toolchat.models.base import ChatResponse
from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.errors import ToolExecutionError
from toolchat.tool_calling.events import ToolCallFinished, silent

__all__ = ["ANSWER", "TOOL_RESULT", "Call", "ResultFormat", "failed", "made"]


@dataclass(frozen=True, slots=True)
class Call:
    """A call that is ready to be made."""

    prompt: PromptSpec
    form: BufferedFormat
    """Writes the result."""
    tells: bool
    """Whether anything can be told before its end."""
    taken: PendingTurn | None = None
    """The answer that goes on with it, where one does."""


class ResultFormat(BufferedFormat):
    """A result of ``tools/call`` as JSON, without what the protocol puts around it."""

    media_type = "application/json"
    documentation: ClassVar = {"schema": {"type": "object"}}


class _ToolResult(ResultFormat):
    """The result of the one tool that was called."""

    def written(self, asked: ActiveRequest, response: ChatResponse) -> bytes:
        """See :meth:`BufferedFormat.written`."""
        execution = response.executions[0]
        tool = next((each for each in asked.prompt.request.tools if each.definition.name == execution.call.name), None)
        return _json(_called(execution, tool))


class _Answer(ResultFormat):
    """The answer of the tool ``ask``, with the trace of its tool calls."""

    def written(self, asked: ActiveRequest, response: ChatResponse) -> bytes:
        """See :meth:`BufferedFormat.written`."""
        return _json({"content": [_text(response.message.text)], "structuredContent": asked.document(response)})


async def made(asked: ActiveRequest, form: BufferedFormat, emit: Emit = silent) -> bytes:
    """Make a call in a place of its own, and write its result; ``emit`` is told what happens until then.

    Raises:
        ToolchatError: there is no place, or the call could not be made.
    """
    async with asked.service.admission.place() as asked.spending:
        asked.headers |= asked.spending.headers
        return form.written(asked, await (asked.whole() if emit is silent else asked.streamed(emit)))


TOOL_RESULT = _ToolResult()
ANSWER = _Answer()


def failed(error: ToolExecutionError) -> bytes:
    """A result that tells the host's model what went wrong, so that it can call again."""
    return _json({"content": [_text(error.as_result())], "isError": True})


def _called(execution: ToolCallFinished, tool: ToolCallback | None) -> Mapping[str, Any]:
    content = [_text(execution.result)]
    if execution.sandbox:
        content.append(_text(SandboxNoticeAdvisor.notice.strip()))
    if execution.outcome == "error":
        return {"content": content, "isError": True}
    check = result_check(tool) if tool is not None else None
    if check is None:
        return {"content": content}
    try:
        return {"content": content, "structuredContent": check.validate_json(execution.result, strict=True)}
    except ValidationError:
        # Hosts refuse a result without the structure that was promised; marked as an error it is read all the same.
        note = _text("The result does not have the structure that the tool promises; it stands here as it came.")
        return {"content": [note, *content], "isError": True}


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _json(result: Mapping[str, Any]) -> bytes:
    return to_json(result, inf_nan_mode="strings")
