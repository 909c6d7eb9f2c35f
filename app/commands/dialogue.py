"""Questions that are asked one after the other, with whatever their tools may need to be asked in turn."""

import secrets
from collections.abc import Collection, Sequence
from dataclasses import replace

from app.chat.client import PromptSpec
from app.chat.request import Emit
from app.chat.tool_calling_advisor import APPROVAL_REQUIRED
from app.chat_models.base import ChatResponse
from app.commands.consent import Consent
from app.commands.service import OpenedService
from app.commands.terminal import complain
from app.errors import ConfigurationError, ValidationFailed
from app.tool_calling.context import CONVERSATION_ID

__all__ = ["ANSWERED", "FAILED", "WAITS", "Dialogue", "exit_code"]

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
