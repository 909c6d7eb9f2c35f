"""A question's way to its answer, as the terminal shows it."""

from app.chat.request import ChatEvent
from app.chat_models.base import ChatResponse, TextDelta
from app.commands.terminal import say, status, tell
from app.tool_calling.events import ToolCallFinished, ToolCallProgress, ToolCallStarted

__all__ = ["AnswerPrinter", "described"]


class AnswerPrinter:
    """Prints the answer as it comes to standard output, and what the tools do to standard error."""

    def __init__(self, longest_result: int | None = None) -> None:
        self._longest = longest_result
        self._in_line = False

    async def __call__(self, event: ChatEvent) -> None:
        """Take an event of the question, as :data:`app.chat.request.Emit` does."""
        match event:
            case TextDelta(text):
                self._in_line = True
                say(text, end="")
            case ToolCallStarted():
                self.end_line()
            case ToolCallProgress():
                status(str(event))
            case ToolCallFinished():
                status("")
                tell(described(event, self._longest))

    def finish(self, response: ChatResponse) -> None:
        """End the answer's last line."""
        if response.finish_reason == "length":
            say(" [cut off by the model's length limit]", end="")
            self._in_line = True
        self.end_line()

    def end_line(self) -> None:
        """Begin a new line unless one has just begun."""
        if self._in_line:
            self._in_line = False
            say()


def described(execution: ToolCallFinished, longest_result: int | None = None) -> str:
    """A tool call and what became of it, in one line."""
    call, result = execution.call, execution.result
    if longest_result and len(result) > longest_result:
        result = f"{result[:longest_result]}…"
    return f"- {call.name}({call.arguments}) -> {execution.outcome} in {execution.duration_ms:g} ms: {result}"
