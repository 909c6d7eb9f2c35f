"""The running service as routes see it, and admission: the limit on concurrent questions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated
from urllib.parse import quote

from dishka import AsyncContainer
from fastapi import Depends
from starlette.requests import HTTPConnection

from toolchat.chat.advisors.memory import MemoryAdvisor
from toolchat.chat.client import ChatClient
from toolchat.chat.manual_execution import without_model
from toolchat.chat.memory import ChatMemory
from toolchat.errors import Draining, Overloaded, QuotaExceeded, ToolchatError
from toolchat.http.client import OutboundHttp
from toolchat.models.base import full_name
from toolchat.service.access.principals import Principal, current_request_caller
from toolchat.service.access.quotas import QuotaReservation, Quotas
from toolchat.service.api.approvals import ApprovalStore
from toolchat.service.api.idempotency import IdempotencyStore
from toolchat.service.api.tool_registry import ToolRegistry
from toolchat.service.observability import metrics
from toolchat.service.observability.logs import lost_lines
from toolchat.service.observability.observer import current_request
from toolchat.service.settings.service_settings import Settings, Tuning
from toolchat.state.base import StateStore
from toolchat.tool_calling.threads import thread_use


class Admission:
    """Limits concurrent questions: one more is refused at once, since a hidden queue would only delay the refusal."""

    # One client gets at most a part of the slots. Without this bound a single client that sends many slow questions
    # takes all of them, and everybody else gets 503 for as long as it likes.

    def __init__(self, limit: int, per_client: int, quotas: Quotas) -> None:
        self._limit = limit
        self._per_client = per_client
        self.quotas = quotas
        self._held: dict[str, int] = {}
        """Slots by client."""
        self.in_flight = 0
        self.draining = False
        """Set when the service is stopped: running questions are finished, new ones refused."""

    def slot(self) -> "Slot":
        """A slot for a question of the current caller, to be used with ``async with``; see :class:`Slot`."""
        caller = current_request_caller()
        return Slot(self, caller.principal, caller.client_key)

    def acquire(self, client_key: str) -> None:
        if self.draining:
            raise Draining("the service is being stopped and takes no more questions", retry_after=1)
        is_full, held = self.in_flight >= self._limit, self._held.get(client_key, 0)
        if is_full or held >= self._per_client:
            current_request.get().refused_by = metrics.REFUSED
            running = f"{self._limit} questions" if is_full else f"{self._per_client} questions of this client"
            raise Overloaded(f"{running} are being answered already", retry_after=1)
        self.in_flight += 1
        self._held[client_key] = held + 1

    def release(self, client_key: str) -> None:
        self.in_flight -= 1
        self._held[client_key] -= 1
        if not self._held[client_key]:
            del self._held[client_key]


class Slot:
    """A permit for one concurrent question; ``async with`` gives the reservation of its quota."""

    # The slot is taken before the quota is checked: the check may wait for Redis, and must not wait without a bound.

    __slots__ = ("_admission", "_client_key", "_principal", "_reservation")

    def __init__(self, admission: Admission, principal: Principal, client_key: str) -> None:
        self._admission, self._principal, self._client_key = admission, principal, client_key

    async def __aenter__(self) -> QuotaReservation:
        """Raises as :meth:`Admission.acquire`, and ``QuotaExceeded``."""
        self._admission.acquire(self._client_key)
        try:
            self._reservation = await self._admission.quotas.reserve(self._principal)
        except BaseException as error:
            if isinstance(error, QuotaExceeded):
                current_request.get().refused_by = metrics.QUOTAS_REFUSED
            self._admission.release(self._client_key)
            raise
        return self._reservation

    async def __aexit__(self, *_: object) -> None:
        # However the question has ended: the provider has counted what it was sent.
        self._reservation.tokens = current_request.get().tokens
        try:
            await self._admission.quotas.settle(self._reservation)
        finally:
            self._admission.release(self._client_key)


_log_lost = metrics.Growth(metrics.LOG_LOST)


@dataclass(frozen=True, slots=True)
class ServiceState:
    """Everything that routes need; created at start, and valid as long as the service runs."""

    settings: Settings
    tuning: Tuning
    chat: ChatClient
    tools: ToolRegistry
    admission: Admission
    approvals: ApprovalStore
    store: StateStore
    memory: ChatMemory
    memory_advisor: MemoryAdvisor
    idempotency: IdempotencyStore
    """Results by ``Idempotency-Key``."""
    http: OutboundHttp
    containers: Mapping[str, AsyncContainer]
    """For the own routes and checks of the configured tool modules, by their names."""

    model_label: str = field(init=False)
    """The label of the configured model; see :func:`model_label`."""

    manual_client: ChatClient = field(init=False)
    """Runs single tool calls, without a model."""

    _store_failures: metrics.Growth = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_store_failures", metrics.Growth(metrics.STORE_FAILURES.labels(self.store.kind)))
        object.__setattr__(self, "manual_client", without_model(self.chat))
        object.__setattr__(self, "model_label", model_label(self.chat.model.provider, self.chat.model.name))

    def update_metrics(self) -> None:
        """Copy what the parts count themselves to the metrics; called every second and before each report."""
        metrics.IN_FLIGHT.set(self.admission.in_flight)
        metrics.QUOTAS_ALONE.set(self.admission.quotas.alone)
        metrics.CONNECTIONS.set(self.http.connections)
        metrics.SESSIONS.set(self.memory.active)
        metrics.STORE_UP.labels(self.store.kind).set(self.store.available)
        if usage := self.store.usage():
            metrics.STORE_BYTES.labels(self.store.kind).set(usage[0])
            metrics.STORE_LIMIT.labels(self.store.kind).set(usage[1])
        for tool, (busy, waiting) in thread_use().items():
            metrics.labelled(metrics.TOOL_THREADS, tool).set(busy)
            metrics.labelled(metrics.TOOL_CALLS_WAITING, tool).set(waiting)
        self._store_failures.update(self.store.failures)
        _log_lost.update(lost_lines())


def model_label(provider: str, name: str) -> str:
    """Provider and model as one word for headers and listings: ``offline``, ``dashscope/qwen-plus``."""
    return quote(full_name(provider, name), safe="/:.@")


_HOW_TO_TEST = "in a test, use: with TestClient(app) as client"
_HOW_TO_MOUNT = (
    "the outer application must start it: ai = create_app(); outer = FastAPI(lifespan=ai.lifespan); "
    'outer.mount("/ai", ai)'
)


def service_state(connection: HTTPConnection) -> ServiceState:
    try:
        # As an item: Starlette finds an attribute only after Python has built an AttributeError.
        state: ServiceState = connection.app.state["service"]
    except KeyError:
        # Starlette puts this key into the scope of mounted applications only.
        is_mounted = "app_root_path" in connection.scope
        how = _HOW_TO_MOUNT if is_mounted else _HOW_TO_TEST
        raise ToolchatError(f"the application is not started; {how}") from None
    return state


async def running_service(connection: HTTPConnection) -> ServiceState:
    """:func:`service_state` as a dependency; a coroutine, because FastAPI runs plain functions in a thread."""
    return service_state(connection)


Service = Annotated[ServiceState, Depends(running_service)]
"""The type of a route's parameter that receives the running service; ``dependency_overrides`` can replace it."""
