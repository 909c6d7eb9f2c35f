"""Questions that are asked one after the other, with whatever their tools may need to be asked in turn."""

import secrets
from collections.abc import Collection, Sequence
from dataclasses import replace

from pydantic_core import from_json

from app.cli.serve import OpenedService
from app.cli.terminal import complain, is_interactive, read_line, say, status, tell, visible
from toolchat.chat.advisors.tool_calling import APPROVAL_REQUIRED
from toolchat.chat.client import PromptSpec
from toolchat.chat.request import Approval, ChatEvent, Emit
from toolchat.errors import ConfigurationError, ValidationFailed
from toolchat.messages import ToolCall
from toolchat.models.base import ChatResponse, TextDelta
from toolchat.tool_calling.callback import ToolCallbackResolver
from toolchat.tool_calling.context import CONVERSATION_ID
from toolchat.tool_calling.events import ToolCallFinished, ToolCallProgress, ToolCallStarted

__all__ = ["ANSWERED", "FAILED", "WAITS", "AnswerPrinter", "Consent", "Dialogue", "described", "exit_code"]


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


ANSWERED, FAILED, WAITS = 0, 1, 3
"""Exit codes; 2 is a set-up that does not allow a start."""


class Dialogue:
    """One conversation.

    Args:
        service: where it takes place.
        names: the tools that are offered; ``None`` offers all.
        approved: names of tools that may run without being approved each time.
        remembers: whether the model is given the questions before.

    Raises:
        ConfigurationError: there is no such tool.
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
        self._consent = Consent(service.registry.resolver, approved)

    def ask(self, query: str, emit: Emit | None = None) -> ChatResponse:
        """Ask a question, and whoever sits at the terminal about the calls that need it.

        Args:
            query: the question.
            emit: is told what happens until the answer; without one the answer comes whole.

        Returns:
            The answer with the trace of the whole question; it waits for approval where nobody could be asked.

        Raises:
            ToolchatError: the question could not be answered.
        """
        prompt = self._service.state.chat.prompt(query).tool_context({CONVERSATION_ID: self.identifier})
        response = self._answered(prompt, emit)
        while response.finish_reason == APPROVAL_REQUIRED:
            decisions = self._consent.decide(response)
            if decisions is None:
                self._tell_how_to_go_on(response)
                break
            resumed = self._answered(self._service.state.chat.resume(response, decisions), emit)
            response = _together(response, resumed)
        return response

    def _answered(self, prompt: PromptSpec, emit: Emit | None) -> ChatResponse:
        prompt = prompt.tools(*self._tools).advisors(*self._advisors)
        return self._service.run(lambda: prompt.stream().response(emit) if emit else prompt.call().response())

    def _tell_how_to_go_on(self, response: ChatResponse) -> None:
        waiting = self._consent.undecided(response)
        for call in waiting:
            complain(f"{call.name}({call.arguments}) waits for approval, and nobody is here to be asked")
        consent = " ".join(dict.fromkeys(f"--approve {call.name}" for call in waiting))
        complain(f"to go on, ask again in a terminal and decide there, or with {consent}")


def exit_code(response: ChatResponse) -> int:
    """0; 1 where a tool failed and did not succeed later on; 3 where the answer waits for approval.

    A call that the user rejected, and one that the model's next try made good, is no failure.
    """
    if response.finish_reason == APPROVAL_REQUIRED:
        return WAITS
    last = {each.call.name: each.round for each in response.executions}
    failed = any(
        each.outcome == "error" and each.error_kind != "rejected" and each.round == last[each.call.name]
        for each in response.executions
    )
    return FAILED if failed else ANSWERED


def _together(before: ChatResponse, after: ChatResponse) -> ChatResponse:
    """The whole answer of a question that waited in between; the rounds are counted on."""
    # The turn that goes on begins with the calls of the message that waited, which is no new round.
    rounds = before.rounds - 1
    executions = (*before.executions, *(replace(each, round=each.round + rounds) for each in after.executions))
    return replace(after, executions=executions, usage=before.usage + after.usage, rounds=rounds + after.rounds)


class AnswerPrinter:
    """Prints the answer as it comes to standard output, and what the tools do to standard error."""

    def __init__(self, longest_result: int | None = None) -> None:
        self._longest = longest_result
        self._in_line = False

    async def __call__(self, event: ChatEvent) -> None:
        """Take an event of the question, as :data:`toolchat.chat.request.Emit` does."""
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
