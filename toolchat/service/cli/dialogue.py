"""A dialogue at the terminal: questions, answers as they arrive, and approvals of tool calls."""

import secrets
from collections.abc import Collection, Sequence

from pydantic_core import from_json

from toolchat.chat.advisors.tool_loop import APPROVAL_REQUIRED
from toolchat.chat.client import PromptSpec
from toolchat.chat.request import Approval, ChatEvent, Emit
from toolchat.errors import ConfigurationError, ValidationFailed
from toolchat.messages import ToolCall
from toolchat.models.base import ChatResponse, TextDelta
from toolchat.service.cli.opened_service import OpenedService
from toolchat.service.cli.terminal import (
    escape_controls,
    is_interactive,
    print_error,
    print_note,
    print_result,
    read_line,
    status,
)
from toolchat.tool_calling.context import CONVERSATION_ID
from toolchat.tool_calling.events import ToolCallFinished, ToolCallProgress, ToolCallStarted

ANSWERED, FAILED, WAITS = 0, 1, 3
"""Exit codes; 2 is an invalid configuration or command line."""


class ApprovalPrompt:
    """Asks the user to approve the tool calls of a paused answer.

    Args:
        approved: names of tools that are approved without asking.
    """

    def __init__(self, approved: Collection[str] = ()) -> None:
        self._approved = frozenset(approved)

    def undecided(self, response: ChatResponse) -> list[ToolCall]:
        """Return the calls that must be decided: by the user, or by somebody else, whatever the user has said."""
        others = response.approvers
        return [call for call in response.waiting_calls if call.id in others or call.name not in self._approved]

    def decide(self, response: ChatResponse) -> dict[str, Approval] | None:
        """Return a decision for every call; ``None`` if there is no user to decide, or it is not the user who does."""
        undecided = self.undecided(response)
        if response.approvers or (undecided and not is_interactive()):
            return None
        decisions = {call.id: Approval(approved=True) for call in response.waiting_calls}
        try:
            return decisions | {call.id: _ask_for_approval(call) for call in undecided}
        except EOFError:
            return None


def _ask_for_approval(call: ToolCall) -> Approval:
    arguments = call.arguments
    while True:
        prompt = f"Run {escape_controls(f'{call.name}({arguments})')}? [y/n/edit] "
        answer, _, reason = read_line(prompt).strip().partition(" ")
        match answer.lower():
            case "y" | "yes":
                return Approval(approved=True, arguments=None if arguments == call.arguments else arguments)
            case "n" | "no":
                return Approval(approved=False, reason=reason.strip())
            case "e" | "edit":
                arguments = _edit(arguments)
            case _:
                print_error("y runs it, n rejects it (n REASON also tells the model why), edit changes the arguments")


def _edit(arguments: str) -> str:
    edited = read_line("Arguments: ", prefilled=arguments)
    try:
        if isinstance(from_json(edited, allow_inf_nan=False), dict):
            return edited
    except ValueError:
        pass
    print_error("the arguments must be a JSON object; they were not changed")
    return arguments


class Dialogue:
    """One conversation with the service.

    Args:
        service: the opened service.
        names: names of the tools to offer; ``None`` offers all.
        approved: names of tools that run without asking for approval.
        remembers: whether the model gets the earlier turns.

    Raises:
        ConfigurationError: a tool does not exist.
    """

    def __init__(
        self,
        service: OpenedService,
        names: Sequence[str] | None = None,
        approved: Collection[str] = (),
        *,
        remembers: bool = False,
    ) -> None:
        try:
            self._tools, advisors = service.registry.for_conversation(names)
        except ValidationFailed as error:
            raise ConfigurationError(f"--tool: {error.detail.removeprefix('tools: ')}") from None
        self.identifier = secrets.token_hex(16)
        self._service = service
        self._advisors = (*([service.state.memory_advisor] if remembers else []), *advisors)
        self._approvals = ApprovalPrompt(approved)

    def ask(self, query: str, emit: Emit | None = None) -> ChatResponse:
        """Send a question, and ask the user to approve the tool calls that require it.

        Args:
            query: the question.
            emit: receives the events of a streamed answer; ``None`` requests a complete answer.

        Returns:
            The response of the whole turn; it is still paused if the calls could not be decided.

        Raises:
            ToolchatError: the question could not be answered.
        """
        prompt = self._service.state.chat.prompt(query).tool_context({CONVERSATION_ID: self.identifier})
        response = self._send(prompt, emit)
        while response.finish_reason == APPROVAL_REQUIRED:
            decisions = self._approvals.decide(response)
            if decisions is None:
                self._explain_approval(response)
                break
            response = self._send(self._service.state.chat.resume(response, decisions), emit)
        return response.whole_turn()

    def _send(self, prompt: PromptSpec, emit: Emit | None) -> ChatResponse:
        prompt = prompt.tools(*self._tools).advisors(*self._advisors)
        return self._service.run(lambda: prompt.stream().response(emit) if emit else prompt.call().response())

    def _explain_approval(self, response: ChatResponse) -> None:
        waiting = self._approvals.undecided(response)
        if roles := " and ".join(dict.fromkeys(response.approvers.values())):
            names = ", ".join(call.name for call in waiting)
            print_error(f"a person with the role {roles} decides about {names}, not who asked")
            return
        for call in waiting:
            print_error(f"{call.name}({call.arguments}) needs approval, but no terminal is attached")
        options = " ".join(dict.fromkeys(f"--approve {call.name}" for call in waiting))
        print_error(f"ask again in a terminal and decide there, or add {options}")


def exit_code(response: ChatResponse) -> int:
    """Return 0; 1 if a tool failed in the last round that called it; 3 if the response waits for approval.

    A call that the user rejected, or that the model repeated successfully, does not count as a failure.
    """
    if response.finish_reason == APPROVAL_REQUIRED:
        return WAITS
    # A model often repeats a failed call with better arguments; only the last round of each tool counts.
    last = {each.call.name: each.round for each in response.executions}
    failed = any(
        each.outcome == "error" and each.error_kind != "rejected" and each.round == last[each.call.name]
        for each in response.executions
    )
    return FAILED if failed else ANSWERED


class AnswerPrinter:
    """Prints an answer to standard output as it arrives, and its tool calls to standard error."""

    def __init__(self, longest_result: int | None = None) -> None:
        self._longest = longest_result
        self._in_line = False

    async def __call__(self, event: ChatEvent) -> None:
        """Print an event; see :data:`toolchat.chat.request.Emit`."""
        match event:
            case TextDelta(text):
                self._in_line = True
                print_result(text, end="")
            case ToolCallStarted():
                self.end_line()
            case ToolCallProgress():
                status(str(event))
            case ToolCallFinished():
                status("")
                print_note(_describe(event, self._longest))

    def finish(self, response: ChatResponse) -> None:
        """End the last line of the answer."""
        if response.finish_reason == "length":
            print_result(" [cut off by the model's length limit]", end="")
            self._in_line = True
        self.end_line()

    def end_line(self) -> None:
        """Start a new line, unless the cursor is at the start of one."""
        if self._in_line:
            self._in_line = False
            print_result()


def _describe(execution: ToolCallFinished, longest_result: int | None) -> str:
    call, result = execution.call, execution.result
    if longest_result and len(result) > longest_result:
        result = f"{result[:longest_result]}…"
    return f"- {call.name}({call.arguments}) -> {execution.outcome} in {execution.duration_ms:g} ms: {result}"
