"""The user's consent to tool calls, given beforehand or at the terminal."""

from collections.abc import Collection

from pydantic_core import from_json

from app.chat.request import Approval
from app.chat_models.base import ChatResponse
from app.commands.terminal import complain, is_interactive, read_line, visible
from app.messages import ToolCall
from app.tool_calling.resolver import ToolCallbackResolver

__all__ = ["Consent"]


class Consent:
    """Decides about the calls of an answer that waits.

    Args:
        resolver: finds the tools, so that only those are asked about which need it.
        beforehand: names of tools that may run without a question.
    """

    def __init__(self, resolver: ToolCallbackResolver, beforehand: Collection[str] = ()) -> None:
        self._resolver = resolver
        self._beforehand = frozenset(beforehand)

    def undecided(self, response: ChatResponse) -> list[ToolCall]:
        """The calls that somebody must be asked about."""
        return [call for call in response.message.tool_calls if self._is_guarded(call.name)]

    def decide(self, response: ChatResponse) -> dict[str, Approval] | None:
        """A decision about every call; ``None`` when nobody is there to decide, or leaves."""
        undecided = self.undecided(response)
        if undecided and not is_interactive():
            return None
        decisions = {call.id: Approval(approved=True) for call in response.message.tool_calls}
        try:
            return decisions | {call.id: _asked(call) for call in undecided}
        except EOFError:
            return None

    def _is_guarded(self, name: str) -> bool:
        tool = self._resolver.resolve(name)
        return name not in self._beforehand and (tool is None or tool.metadata.requires_approval)


def _asked(call: ToolCall) -> Approval:
    arguments = call.arguments
    while True:
        answer, _, reason = read_line(f"Run {visible(f'{call.name}({arguments})')}? [y/n/edit] ").strip().partition(" ")
        match answer.lower():
            case "y" | "yes":
                return Approval(approved=True, arguments=None if arguments == call.arguments else arguments)
            case "n" | "no":
                return Approval(approved=False, reason=reason.strip())
            case "e" | "edit":
                arguments = _edited(arguments)
            case _:
                complain("y runs it, n does not (n and a reason: the model is told), edit changes the arguments first")


def _edited(arguments: str) -> str:
    changed = read_line("Arguments: ", given=arguments)
    try:
        if isinstance(from_json(changed, allow_inf_nan=False), dict):
            return changed
    except ValueError:
        pass
    complain("the arguments must be a JSON object; nothing is changed")
    return arguments
