"""A tool of whoever asks: the model is told of it, and the service never runs it."""

from app.tool_calling.callback import ToolCallback
from app.tool_calling.context import ToolContext
from app.tool_calling.definition import ToolDefinition, ToolMetadata
from app.tool_calling.errors import ToolExecutionError

__all__ = ["CallerToolCallback"]


class CallerToolCallback(ToolCallback):
    """Offered like any other tool; a message that calls it ends the question, and the caller is given the call.

    What else the message calls is run before that. The caller goes on with the answer's ``history``, its message and
    the results.
    """

    def __init__(self, definition: ToolDefinition) -> None:
        self.definition = definition
        self.metadata = ToolMetadata(run_by_caller=True)

    async def call(self, tool_input: str, context: ToolContext) -> str:  # noqa: ARG002
        """See :meth:`ToolCallback.call`; only whoever asks has the code."""
        raise ToolExecutionError("this tool is run by whoever asks", kind="not-run")
