"""What the routes find in the running service."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, Protocol
from urllib.parse import quote

from dishka import AsyncContainer
from fastapi import Request

from app.api.approvals import ApprovalStore
from app.chat.client import ChatClient
from app.errors import Overloaded
from app.settings import Settings

__all__ = ["Admission", "ServiceState", "ToolCatalogue", "service_state"]


class ToolCatalogue(Protocol):
    """The tools of the service, as the routes see them."""

    def offered(self, module: str, kind: Literal["function", "method"]) -> Sequence[object]:
        """What a folder's routes offer the model; raises ``NotConfigured`` when it is not registered."""
        ...

    def describe(self) -> list[dict[str, Any]]:
        """Every tool folder, registered or not."""
        ...


class Admission:
    """How many questions are answered at once; one more is refused at once instead of waiting unseen."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.in_flight = 0

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Take a place for one question.

        Raises:
            Overloaded: there is none.
        """
        if self.in_flight >= self._limit:
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
    container: AsyncContainer
    """For routes of a tool folder that need more than tools."""

    @property
    def model_label(self) -> str:
        """Provider and model as one word for headers and listings: ``offline``, ``dashscope/qwen-plus``."""
        model = self.chat.model
        return model.provider if model.name == model.provider else quote(f"{model.provider}/{model.name}", safe="/:.@")


def service_state(request: Request) -> ServiceState:
    """Take the running service's state from a request."""
    state = request.app.state.service
    if not isinstance(state, ServiceState):
        raise TypeError("the application has not been started")
    return state
