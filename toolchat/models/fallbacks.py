"""Other models when one fails."""

import logging
from collections.abc import Sequence

from toolchat import instruments
from toolchat.errors import NotConfigured, ToolchatError, UpstreamError
from toolchat.models.base import ChatModel, ChatResponse, EmitModelEvent, ModelEvent, Progress, Prompt

__all__ = ["FallbackChatModel"]

_log = logging.getLogger(__name__)
_ANOTHER_MAY = (UpstreamError, NotConfigured)
"""What another model may do better: the provider is away, limits or locks us out, lacks the model, answers nonsense.
Moderation and a question that is too long are answers, and are not taken elsewhere."""


class FallbackChatModel(ChatModel):
    """Several models in order: each turn is that of the first one that can, as long as no text has gone out.

    It bears the names of the first; what a turn is told by another one has that one's names in its response.

    Args:
        models: each with time limits of its own.
    """

    def __init__(self, models: Sequence[ChatModel]) -> None:
        self.provider, self.name = models[0].provider, models[0].name
        self.models = tuple(models)
        """All of them, in order."""

    async def respond(self, prompt: Prompt, emit: EmitModelEvent) -> ChatResponse:
        """Run one turn; see :meth:`ChatModel.respond`. Raises what the last one raised."""
        *others, last = self.models
        for model in others:
            listener = _Listener(model, emit)
            try:
                return listener.answered(await model.respond(prompt, listener.tell))
            except _ANOTHER_MAY as error:
                if listener.has_text:
                    raise
                self._note(model, error)
        listener = _Listener(last, emit)
        return listener.answered(await last.respond(prompt, listener.tell))

    async def aclose(self) -> None:
        """Close all models."""
        for model in self.models:
            await model.aclose()

    def _note(self, model: ChatModel, error: ToolchatError) -> None:
        instruments.observer.record_fallback(model.provider, model.name, error)
        fields = {"provider": model.provider, "model": model.name, "code": error.code}
        _log.warning("chat model failed, asking the next one", extra=fields)


class _Listener:
    """Whoever is told a turn's events: from its first text on the turn is this model's."""

    def __init__(self, model: ChatModel, emit: EmitModelEvent) -> None:
        self._model = model
        self._emit = emit
        self.has_text = False

    async def tell(self, event: ModelEvent) -> None:
        if not isinstance(event, Progress):
            self.has_text = True
            self._name()
        await self._emit(event)

    def answered(self, response: ChatResponse) -> ChatResponse:
        """The response, which says whose it is."""
        self._name()
        return response if response.provider else response.by(self._model.provider)

    def _name(self) -> None:
        instruments.observer.record_answering_model(self._model.provider, self._model.name)
