"""What the routes find in the running service."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol
from urllib.parse import quote

from dishka import AsyncContainer
from fastapi import Request

from app.api.approvals import ApprovalStore
from app.chat.advisors import Advisor
from app.chat.client import ChatClient
from app.chat.memory import ChatMemory
from app.chat.memory_advisor import MemoryAdvisor
from app.errors import Draining, Overloaded
from app.settings import Settings
from app.state_store.base import StateStore

__all__ = ["Admission", "ServiceState", "ToolCatalogue", "service_state"]


class ToolCatalogue(Protocol):
    """The tools of the service, as the routes see them."""

    def offered(self, module: str, kind: Literal["function", "method"]) -> Sequence[object]:
        """What a folder's routes offer the model; raises ``NotConfigured`` when it is not registered."""
        ...

    def for_conversation(self, names: Sequence[str] | None) -> tuple[Sequence[object], Sequence[Advisor]]:
        """What a conversation is offered, all or the tools of these names, and the advisors that go with them.

        Raises:
            ValidationFailed: there is no such tool.
        """
        ...

    def state_keys(self, conversation: str) -> Sequence[str]:
        """Under which keys the folders' tools keep something of a conversation."""
        ...

    def describe(self) -> list[dict[str, Any]]:
        """Every tool folder, registered or not."""
        ...


class Admission:
    """How many questions are answered at once; one more is refused at once instead of waiting unseen."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.in_flight = 0
        self.refused = 0
        self.draining = False
        """Set when the service is told to stop; the questions that it has are answered, and no others."""

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Take a place for one question.

        Raises:
            Overloaded: there is none.
            Draining: the service is being stopped.
        """
        if self.draining:
            raise Draining("the service is being stopped and takes no more questions", retry_after=1)
        if self.in_flight >= self._limit:
            self.refused += 1
            raise Overloaded(f"{self._limit} questions are being answered already", retry_after=1)
        self.in_flight += 1
        try:
            yield
        finally:
            self.in_flight -= 1


@dataclass(frozen=True, slots=True)
class ServiceState:
    """Made by the lifespan; lives as long as the service."""

    settings: Settings
    chat: ChatClient
    tools: ToolCatalogue
    admission: Admission
    approvals: ApprovalStore
    store: StateStore
    memory: ChatMemory
    memory_advisor: MemoryAdvisor
    container: AsyncContainer
    """For routes of a tool folder that need more than tools."""

    model_label: str = field(init=False)
    """Provider and model as one word for headers and listings: ``offline``, ``dashscope/qwen-plus``."""

    def __post_init__(self) -> None:
        model = self.chat.model
        named = model.provider if model.name == model.provider else f"{model.provider}/{model.name}"
        object.__setattr__(self, "model_label", quote(named, safe="/:.@"))


def service_state(request: Request) -> ServiceState:
    """Take the running service's state from a request."""
    state = request.app.state.service
    if not isinstance(state, ServiceState):
        raise TypeError("the application has not been started")
    return state
