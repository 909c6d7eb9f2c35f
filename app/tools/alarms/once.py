"""What a repeated wish for an alarm is answered: what it has set, where that can be told."""

from app.chat.idempotency import IdempotencyStore, Wish
from app.chat_models.base import ChatResponse
from app.errors import ToolchatError, ValidationFailed
from app.messages import AssistantMessage, Usage
from app.state_store.base import StateStore
from app.tools.alarms.alarms import AlarmStore

__all__ = ["AlarmOnce"]


class AlarmOnce(IdempotencyStore):
    """Knows what a wish has set, so one that came to no answer is tried again if that is nothing."""

    def __init__(self, store: StateStore, alarms: AlarmStore) -> None:
        super().__init__(store)
        self._alarms = alarms

    def reused(self) -> ToolchatError:
        """See :meth:`IdempotencyStore.reused`."""
        return ValidationFailed("Idempotency-Key: was used with another question; use a new key")

    async def unfinished(self, wish: Wish) -> ChatResponse | None:
        """The answer to a wish that has set an alarm; ``None`` when it has set none."""
        alarms = await self._alarms.set_by(wish.name)
        times = ", ".join(each.at.isoformat(timespec="seconds") for each in alarms)
        text = f"闹钟已设置 / alarm set: {times}. 首次回答没有完成 / the first answer was not completed."
        return ChatResponse(AssistantMessage(text), "stop", Usage(), "") if alarms else None

    async def give_up(self, wish: Wish, *, began: bool) -> None:
        """Keep what a wish has set; where that is nothing, its key is free again."""
        if began and (answer := await self.unfinished(wish)):
            await self.keep(wish, answer)
        else:
            await super().give_up(wish, began=False)
