"""One turn of a chat model: the only place in these tests that asks a model to respond."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager

from app.chat_models.base import ChatModel, ChatResponse, ModelEvent, Prompt, TextDelta

__all__ = ["begun", "events_of", "response_of", "streamed_text"]


async def events_of(model: ChatModel, prompt: Prompt) -> list[ModelEvent]:
    """Everything that a turn tells; the response comes last and once."""
    async with aclosing(model.respond(prompt)) as events:
        told = [event async for event in events]
    assert [isinstance(event, ChatResponse) for event in told] == [False] * (len(told) - 1) + [True]
    return told


async def response_of(model: ChatModel, prompt: Prompt) -> ChatResponse:
    *_, last = await events_of(model, prompt)
    assert isinstance(last, ChatResponse)
    return last


@asynccontextmanager
async def begun(model: ChatModel, prompt: Prompt) -> AsyncGenerator[ModelEvent, None]:
    """A turn that has told its first event, which is given; it is left in the middle at the end of the block."""
    async with aclosing(model.respond(prompt)) as events:
        yield await anext(events)


def streamed_text(events: Sequence[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))
