"""A question that has been put together, to be answered whole or piece by piece."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from dataclasses import replace
from typing import Any, TypeVar

from app.chat.advisors import AdvisorChain
from app.chat.entity import entity_from, with_format
from app.chat.request import ChatEvent, ChatRequest, Emit
from app.chat_models.base import ChatResponse, TextDelta
from app.errors import UpstreamInvalid
from app.immutable import immutable
from app.messages import UserMessage
from app.tool_calling.events import silent

__all__ = ["CallSpec", "StreamSpec"]

_T = TypeVar("_T")
_EVENTS_AHEAD = 4


@immutable
class CallSpec:
    """A question to be answered whole."""

    chain: AdvisorChain
    request: ChatRequest

    def response(self) -> Coroutine[Any, Any, ChatResponse]:
        """The answer with its tool calls, usage and rounds.

        Raises:
            ToolchatError: the question could not be answered; see ``app.errors``.
        """
        return self.chain.proceed(self.request, silent)

    async def content(self) -> str:
        """The answer's text; raises as :meth:`response`."""
        return (await self.response()).message.text

    async def entity(self, model: type[_T]) -> _T:
        """The answer as an object: the model is told the JSON Schema, and once more where its answer does not fit.

        Args:
            model: a pydantic model, a dataclass or any other type that pydantic validates.

        Raises:
            UpstreamInvalid: the second answer did not fit either; else as :meth:`response`.
        """
        request = replace(self.request, messages=with_format(self.request.messages, model))
        response = await CallSpec(self.chain, request).response()
        entity, fault = entity_from(response.message.text, model)
        if fault:
            told = UserMessage(f"That does not fit: {fault}. Answer with the corrected JSON alone.")
            again = replace(request, messages=(*response.history, response.message, told))
            response = await CallSpec(self.chain, again).response()
            entity, fault = entity_from(response.message.text, model)
        if entity is None:
            raise UpstreamInvalid("the chat model did not answer in the form that it was asked for")
        return entity


@immutable
class StreamSpec:
    """A question to be answered piece by piece."""

    chain: AdvisorChain
    request: ChatRequest

    def response(self, emit: Emit) -> Coroutine[Any, Any, ChatResponse]:
        """The answer as :meth:`CallSpec.response` gives it; ``emit`` is told what happens until then."""
        return self.chain.proceed(self.request, emit)

    async def events(self) -> AsyncGenerator[ChatEvent | ChatResponse, None]:
        """What happens, then the :class:`ChatResponse`. Raises as :meth:`CallSpec.response`.

        The question is answered in a task of its own, which is at most a few events ahead of whoever iterates; closing
        the iterator (``contextlib.aclosing``) cancels it.
        """
        told: asyncio.Queue[ChatEvent | asyncio.Task[ChatResponse]] = asyncio.Queue()
        room = asyncio.Semaphore(_EVENTS_AHEAD)

        async def tell(event: ChatEvent) -> None:
            await room.acquire()
            told.put_nowait(event)

        answering = asyncio.create_task(self.response(tell))
        answering.add_done_callback(told.put_nowait)
        try:
            while not isinstance(event := await told.get(), asyncio.Task):
                room.release()
                yield event
            yield event.result()
        finally:
            answering.cancel()
            await asyncio.wait({answering})

    async def content(self) -> AsyncGenerator[str, None]:
        """The answer's text, piece by piece."""
        async with aclosing(self.events()) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    yield event.text
