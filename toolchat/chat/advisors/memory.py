"""The memory of a question: the earlier turns of its conversation are added, and its turn is stored."""

import time
from contextlib import suppress
from dataclasses import replace

from toolchat.chat.advisors.base import Advisor, AdvisorChain
from toolchat.chat.memory import ChatMemory, OpenTurn
from toolchat.chat.request import ChatRequest, Emit
from toolchat.chat.session_records import turn_summary
from toolchat.errors import ContextTooLong, StoreUnavailable
from toolchat.messages import SystemMessage, turn_start
from toolchat.models.base import ChatResponse
from toolchat.tool_calling.context import CONVERSATION_ID

TURN_ID = "toolchat.turn_id"
"""The context value that identifies a turn which may be answered again after a crash: it is stored once."""
REPLACED_TURNS = "toolchat.replaced_turns"
"""Key of a request's context: how many of the newest turns the question and its answer replace."""
NEW_CONVERSATION = "toolchat.new_conversation"
"""Key of a request's context: nobody has asked for the conversation, so it need not be stored if the store is away."""


class MemoryAdvisor(Advisor):
    """Adds the earlier turns to a request, and stores the turn when it is answered.

    Its order is outside the tool loop, so a turn is stored whole or not at all: one that fails, is cancelled or waits
    for approval leaves the conversation unchanged; a resumed turn is stored when it ends. An answer that ended for
    an unknown reason is not stored, nor one that moderation cut: every later request would be refused as well.
    """

    order = 200

    def __init__(self, memory: ChatMemory) -> None:
        self._memory = memory

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        """See :meth:`Advisor.advise`.

        Raises:
            SessionBusy: another request of the conversation is being answered.
            StoreUnavailable: the memory cannot be read or written.
        """
        conversation = request.context.get(CONVERSATION_ID)
        if not conversation:
            raise AssertionError("a question with a memory needs a conversation id in its context")
        began, opened = time.perf_counter(), None
        try:
            async with self._memory.open_turn(conversation) as opened:
                return await _answer_turn(request, opened, chain, emit, began)
        except StoreUnavailable:
            if opened is not None or not request.context.get(NEW_CONVERSATION):
                raise
        return await chain.proceed(request, emit)


async def _answer_turn(
    request: ChatRequest, opened: OpenTurn, chain: AdvisorChain, emit: Emit, began: float
) -> ChatResponse:
    """Answer in an open turn, and store it."""
    identifier = request.context.get(TURN_ID, "")
    turn = opened.replacing(request.context.get(REPLACED_TURNS, 0), identifier)
    begin, turn, response = await _answer(request, turn, chain, emit)
    if not response.has_tool_calls and response.finish_reason not in ("content_filter", "incomplete"):
        summary = turn_summary(response, chain.model.provider, (time.perf_counter() - began) * 1000)
        messages = (*response.history[begin:], response.message)
        with suppress(*((StoreUnavailable,) if request.context.get(NEW_CONVERSATION) else ())):
            await turn.save(messages, summary, identifier)
    return response


async def _answer(
    request: ChatRequest, turn: OpenTurn, chain: AdvisorChain, emit: Emit
) -> tuple[int, OpenTurn, ChatResponse]:
    """The answer, where its turn begins, and the earlier turns that were left: fewer, if the model takes no more."""
    while True:
        begin, asked = _with_history(request, turn)
        try:
            return begin, turn, await chain.proceed(asked, emit)
        except ContextTooLong as error:
            if error.has_run or not turn.earlier:
                raise
        turn = replace(turn, earlier=turn.earlier[(len(turn.earlier) + 1) // 2 :])


def _with_history(request: ChatRequest, turn: OpenTurn) -> tuple[int, ChatRequest]:
    """The request with the earlier turns, and the index of the running turn's first message."""
    messages = request.messages
    if request.resume is not None:
        # The history was added before the turn paused: only find where the running turn begins.
        return turn_start(messages), request
    system = [message for message in messages if isinstance(message, SystemMessage)]
    running = [message for message in messages if not isinstance(message, SystemMessage)]
    before = (*system, *turn.history(running))
    return len(before), request.with_messages((*before, *running))
