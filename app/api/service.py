"""What the routes find in the running service."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Protocol
from urllib.parse import quote

from dishka import AsyncContainer
from fastapi import Depends
from starlette.requests import HTTPConnection

from app.api.admission import Admission
from app.api.approvals import ApprovalStore
from app.chat.advisors import Advisor
from app.chat.by_hand import without_model
from app.chat.client import ChatClient
from app.chat.idempotency import IdempotencyStore
from app.chat.memory import ChatMemory
from app.chat.memory_advisor import MemoryAdvisor
from app.chat_models.base import full_name
from app.errors import ToolchatError
from app.settings import Settings
from app.state_store.base import StateStore
from app.tool_calling.callback import ToolCallback

__all__ = ["Service", "ServiceState", "ToolCatalogue", "model_label", "running_service", "service_state"]


class ToolCatalogue(Protocol):
    """The tools of the service, as the routes see them."""

    def offered(self, module: str, kind: Literal["function", "method"]) -> Sequence[object]:
        """What a folder's routes offer the model; raises ``NotConfigured`` when it is not registered."""
        ...

    def tool(self, name: str) -> ToolCallback:
        """The tool of a name; raises ``NotFound``, or ``NotConfigured`` when its folder is not registered."""
        ...

    def for_conversation(self, names: Sequence[str] | None) -> tuple[Sequence[object], Sequence[Advisor]]:
        """What a conversation is offered, all or the tools of these names, and the advisors that go with them.

        Raises:
            ValidationFailed: there is no such tool.
        """
        ...

    def for_folder(self, name: str) -> tuple[Sequence[object], Sequence[Advisor]]:
        """What a conversation with one folder's tools is offered, and the advisors that go with them.

        Raises:
            NotFound: there is no such folder.
            NotConfigured: it is not registered.
        """
        ...

    def state_keys(self, conversation: str) -> Sequence[str]:
        """Under which keys the folders' tools keep something of a conversation."""
        ...

    def describe(self) -> list[dict[str, Any]]:
        """Every tool folder, registered or not."""
        ...


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
    once: IdempotencyStore
    """What was run by hand under which key."""
    container: AsyncContainer
    """For routes of a tool folder that need more than tools."""

    model_label: str = field(init=False)
    """Provider and model as one word for headers and listings: ``offline``, ``dashscope/qwen-plus``."""

    by_hand: ChatClient = field(init=False)
    """Runs single calls; asks no model."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_hand", without_model(self.chat))
        object.__setattr__(self, "model_label", model_label(self.chat.model.provider, self.chat.model.name))


def model_label(provider: str, name: str) -> str:
    """Provider and model as one word for headers and listings."""
    return quote(full_name(provider, name), safe="/:.@")


def service_state(connection: HTTPConnection) -> ServiceState:
    """Take the running service's state from a request.

    Raises:
        ToolchatError: the application's lifespan does not run.
    """
    state = getattr(connection.app.state, "service", None)
    if not isinstance(state, ServiceState):
        raise ToolchatError("the application has not been started; a test does it by: with TestClient(app) as client")
    return state


async def running_service(connection: HTTPConnection) -> ServiceState:
    """The same as a dependency; a coroutine, since FastAPI calls plain functions in a thread."""
    return service_state(connection)


Service = Annotated[ServiceState, Depends(running_service)]
"""What a route takes as a parameter to get at the running service; ``dependency_overrides`` can replace it."""
