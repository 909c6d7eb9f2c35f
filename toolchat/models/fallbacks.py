"""Fallback models: call the next model if one fails."""

import logging
from collections.abc import Sequence
from dataclasses import replace

import toolchat.instruments as instruments
from toolchat.errors import NotConfigured, UpstreamError
from toolchat.models.base import ChatModel, ChatResponse, EmitModelEvent, ModelEvent, Progress, Prompt

_log = logging.getLogger(__name__)
_FALLBACK_ERRORS = (UpstreamError, NotConfigured)
"""Errors after which the next model is called: the provider is unavailable, refuses us or sends an invalid response.
Moderation and a conversation that is too long are final, and not sent to another provider."""


def models_of(model: ChatModel) -> Sequence[ChatModel]:
    """Return the models that are called in turn: those of a fallback, or the model itself."""
    return model.models if isinstance(model, FallbackChatModel) else (model,)


class FallbackChatModel(ChatModel):
    """Calls several models in order until one answers; after the first text there is no fallback.

    It has the names of the first model; the response names the one that answered.

    Args:
        models: in order, each with timeouts of its own, such as a :class:`ResilientChatModel`.
    """

    def __init__(self, models: Sequence[ChatModel]) -> None:
        self.provider, self.name = models[0].provider, models[0].name
        self.takes_images = models[0].takes_images
        self.models = tuple(models)
        """The models, in order."""

    async def respond(self, prompt: Prompt, emit: EmitModelEvent) -> ChatResponse:
        """Call the models; see :meth:`ChatModel.respond`. Raises the error of the last one."""
        *others, last = self.models
        for model in others:
            listener = _Listener(model, emit)
            try:
                return await listener.respond(prompt)
            except _FALLBACK_ERRORS as error:
                # The client has the beginning of this answer, which another model would not continue.
                if listener.has_text:
                    raise
                instruments.observer.record_fallback(model.provider, model.name, error)
                fields = {**error.log_fields, "provider": model.provider, "model": model.name, "code": error.code}
                _log.warning("chat model failed, calling the next one", extra=fields)
        return await _Listener(last, emit).respond(prompt)

    async def aclose(self) -> None:
        """Close all models."""
        for model in self.models:
            await model.aclose()


class _Listener:
    """Forwards the events of one model; from its first text on, this model answers."""

    def __init__(self, model: ChatModel, emit: EmitModelEvent) -> None:
        self._model = model
        self._emit = emit
        self.has_text = False

    async def respond(self, prompt: Prompt) -> ChatResponse:
        response = await self._model.respond(prompt, self._forward)
        self._record_answering()
        return response if response.provider else replace(response, provider=self._model.provider)

    async def _forward(self, event: ModelEvent) -> None:
        if not isinstance(event, Progress):
            self.has_text = True
            self._record_answering()
        await self._emit(event)

    def _record_answering(self) -> None:
        instruments.observer.record_answering_model(self._model.provider, self._model.name)
