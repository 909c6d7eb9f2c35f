"""One turn of a chat model: the only place in these tests that asks a model to respond."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from toolchat.models.base import ChatModel, ChatResponse, ModelEvent, Prompt, TextDelta

Told = ModelEvent | ChatResponse


async def events_of(model: ChatModel, prompt: Prompt) -> list[Told]:
    """Everything that a turn tells, and its response at the end."""
    told: list[Told] = []

    async def emit(event: ModelEvent) -> None:
        told.append(event)

    response = await model.respond(prompt, emit)
    return [*told, response]


async def response_of(model: ChatModel, prompt: Prompt) -> ChatResponse:
    *_, last = await events_of(model, prompt)
    assert isinstance(last, ChatResponse)
    return last


@asynccontextmanager
async def begun(model: ChatModel, prompt: Prompt) -> AsyncGenerator[ModelEvent, None]:
    """A turn that has told its first event, which is given, and is left in the middle at the end of the block."""
    first: asyncio.Queue[ModelEvent] = asyncio.Queue()

    async def emit(event: ModelEvent) -> None:
        first.put_nowait(event)
        await asyncio.Event().wait()

    async with asyncio.timeout(60):
        turn = asyncio.create_task(model.respond(prompt, emit))
        try:
            yield await first.get()
        finally:
            turn.cancel()
            await asyncio.wait({turn})


def streamed_text(events: Sequence[Told]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))
