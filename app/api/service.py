"""What the routes find in the running service."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Annotated
from urllib.parse import quote

from dishka import AsyncContainer
from fastapi import Depends
from starlette.requests import HTTPConnection

from app.access.principals import Principal, current_request_caller
from app.access.quotas import QuotaReservation, Quotas
from app.api.approvals import ApprovalStore
from app.settings.service_settings import Settings
from app.tools.registry import ToolRegistry
from toolchat.chat.advisors.idempotency import IdempotencyStore
from toolchat.chat.client import ChatClient
from toolchat.chat.manual_execution import without_model
from toolchat.chat.memory import ChatMemory, MemoryAdvisor
from toolchat.errors import Draining, Overloaded, ToolchatError
from toolchat.models.base import full_name
from toolchat.state.base import StateStore

__all__ = ["Admission", "Service", "ServiceState", "model_label", "running_service", "service_state"]


class Admission:
    """Places for questions; one more is refused at once instead of waiting unseen.

    Args:
        limit: places.
        per_client: places that one principal, or one address without a key, may take; the others are for the others.
        quotas: what else a principal may use.
    """

    def __init__(self, limit: int, per_client: int, quotas: Quotas) -> None:
        self._limit = limit
        self._per_client = per_client
        self.quotas = quotas
        self._taken: Counter[str] = Counter()
        self.in_flight = 0
        self.refused = 0
        self.draining = False
        """Set when the service is told to stop; the questions that it has are answered, and no others."""

    def slot(self) -> "Slot":
        """A place for one question of the current caller, for an ``async with``: who answers notes there what it uses.

        Raises:
            Overloaded: there is none, or none for this caller; as the block begins, like the others.
            Draining: the service is being stopped.
            QuotaExceeded: a quota is used up.
        """
        caller = current_request_caller()
        return Slot(self, caller.principal, caller.client_key)

    def acquire(self, client_key: str) -> None:
        """Take a place; raises as :meth:`slot`."""
        self._check(client_key)
        self.in_flight += 1
        self._taken[client_key] += 1

    def release(self, client_key: str) -> None:
        """Give it back."""
        self.in_flight -= 1
        self._taken[client_key] -= 1
        if not self._taken[client_key]:
            del self._taken[client_key]

    def _check(self, client_key: str) -> None:
        if self.draining:
            raise Draining("the service is being stopped and takes no more questions", retry_after=1)
        if self.in_flight >= self._limit or self._taken[client_key] >= self._per_client:
            self.refused += 1
            everybody = self.in_flight >= self._limit
            places = f"{self._limit} questions" if everybody else f"{self._per_client} questions of this client"
            raise Overloaded(f"{places} are being answered already", retry_after=1)


class Slot:
    """The place of one question while it is being answered."""

    __slots__ = ("_admission", "_client_key", "_principal", "_reservation")

    def __init__(self, admission: Admission, principal: Principal, client_key: str) -> None:
        self._admission, self._principal, self._client_key = admission, principal, client_key

    async def __aenter__(self) -> QuotaReservation:
        self._admission.acquire(self._client_key)
        try:
            self._reservation = await self._admission.quotas.reserve(self._principal)
        except BaseException:
            self._admission.release(self._client_key)
            raise
        return self._reservation

    async def __aexit__(self, *_: object) -> None:
        try:
            await self._admission.quotas.settle(self._reservation)
        finally:
            self._admission.release(self._client_key)


@dataclass(frozen=True, slots=True)
class ServiceState:
    """Made by the lifespan; lives as long as the service."""

    settings: Settings
    chat: ChatClient
    tools: ToolRegistry
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

    manual_client: ChatClient = field(init=False)
    """Runs single calls; asks no model."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "manual_client", without_model(self.chat))
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
