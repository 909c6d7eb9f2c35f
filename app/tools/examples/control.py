"""Tool execution in the caller's own hands: the documents' loop around ``ToolCallingManager``."""

from dataclasses import replace

from toolchat import (
    Advisor,
    AdvisorChain,
    ChatRequest,
    ChatResponse,
    Emit,
    ToolCallFinished,
    ToolCallingManager,
    ToolLoop,
    Usage,
)


class UserControlledExecution(Advisor):
    """Runs the calls of a question whose options have ``internal_tool_execution_enabled=False``.

    The service's own loop then hands each turn with calls back; here they are run, and the conversation with their
    results is asked again. As an advisor it serves whole answers and streams alike. It stands inside the notice of
    invented data, which looks at the calls that were run.
    """

    order = 250

    def __init__(self, manager: ToolCallingManager, max_rounds: int) -> None:
        self._manager = manager
        self._max_rounds = max_rounds

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        """See :meth:`Advisor.advise`.

        Raises:
            ToolLoop: the model asked for tools in one round more than there may be.
        """
        usage, executions = Usage(), list[ToolCallFinished]()
        for turn in range(1, self._max_rounds + 2):
            response = await chain.proceed(request, emit)
            usage += response.usage
            if not response.has_tool_calls:
                return replace(response, usage=usage, rounds=turn, executions=tuple(executions))
            if turn > self._max_rounds:
                break
            result = await self._manager.execute_tool_calls(
                request.messages, response.message, request.tools, request.context, round=turn, emit=emit
            )
            executions += result.executions
            request = replace(request, messages=result.conversation_history)
        raise ToolLoop(f"the model still asked for tools after {self._max_rounds} rounds of calls")
