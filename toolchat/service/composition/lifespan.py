"""The resources of a running service: opened in order, and closed in reverse."""

import platform
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from yarl import URL

from toolchat import __version__
from toolchat.chat.advisors.memory import MemoryAdvisor
from toolchat.chat.advisors.repair import ToolCallRepairAdvisor
from toolchat.chat.advisors.tool_loop import ToolCallingAdvisor
from toolchat.chat.advisors.tool_search import ToolSearchAdvisor
from toolchat.chat.client import ChatClient
from toolchat.chat.memory import ChatMemory
from toolchat.chat.memory_window import MemoryWindow
from toolchat.http.client import OutboundHttp
from toolchat.http.environment import Proxies
from toolchat.instruments import set_observer
from toolchat.models.base import ChatModel
from toolchat.service.access.principals import session_ttl
from toolchat.service.access.quotas import Quotas
from toolchat.service.access.runtime import AccessSettings
from toolchat.service.access.usage import QuotaLimits
from toolchat.service.api.advisors import ConversationCallLimit, SandboxNoticeAdvisor
from toolchat.service.api.approval_webhook import ApprovalWebhook
from toolchat.service.api.approvals import ApprovalStore
from toolchat.service.api.audit import AuditTrail
from toolchat.service.api.idempotency import IdempotencyStore
from toolchat.service.api.paused_turns import PausedTurnCodec
from toolchat.service.api.service import Admission, ServiceState
from toolchat.service.api.sessions import lists_of
from toolchat.service.api.tool_registry import ToolRegistry
from toolchat.service.composition.configuration import Configuration
from toolchat.service.composition.models import outbound_http
from toolchat.service.composition.state import state_store
from toolchat.service.composition.wiring import Wiring, wired
from toolchat.service.observability import metrics, tracing
from toolchat.service.observability.observer import ServiceObserver
from toolchat.service.settings.service_settings import Settings
from toolchat.service.tool_modules.registration import open_registry
from toolchat.state.base import StateStore
from toolchat.state.locks import Locks
from toolchat.tool_calling.caller import current_client_key


@asynccontextmanager
async def open_service(configuration: Configuration) -> AsyncGenerator[ServiceState, None]:
    """Open the HTTP client, the state store, the tools and the chat client; close them at the end of the block.

    Raises:
        ConfigurationError: a tool is not valid, or what a tool module provides cannot be created.
    """
    async with AsyncExitStack() as stack:
        # Before anything is created: models and breakers register their metrics when they are.
        stack.callback(set_observer, set_observer(tracing.observer or ServiceObserver()))
        wiring = await _opened(configuration, stack)
        model = configuration.chat_model.create(wiring.parts[OutboundHttp])
        await wiring.create_parts(model)
        tools = await stack.enter_async_context(open_registry(wiring.containers, configuration.modules))
        state = _service_state(configuration, wiring, model, tools)
        metrics.INFO.labels(__version__, state.model_label, platform.python_version()).set(1)
        await stack.enter_async_context(metrics.watched(state.update_metrics))
        yield state


async def _opened(configuration: Configuration, stack: AsyncExitStack) -> Wiring:
    """Open what the tools use until they are closed; the stack closes it in reverse."""
    settings = configuration.settings
    http, store = outbound_http(settings, configuration.tuning), state_store(settings)
    stack.push_async_callback(http.aclose)
    stack.push_async_callback(store.aclose)
    await store.start()
    wiring = wired(settings, configuration.modules, http, store)
    stack.push_async_callback(wiring.close)
    return wiring


def _service_state(configuration: Configuration, wiring: Wiring, model: ChatModel, tools: ToolRegistry) -> ServiceState:
    settings, http, store = configuration.settings, wiring.parts[OutboundHttp], wiring.parts[StateStore]
    admission, memory = _admission(settings, configuration.access.settings, store), _memory(settings, store)
    advisor = MemoryAdvisor(memory)
    codec, trail = PausedTurnCodec(tools, (advisor, *tools.advisors)), AuditTrail(store, days=settings.audit_days)
    return ServiceState(
        settings,
        configuration.tuning,
        _chat_client(settings, model, wiring.parts[ToolCallingAdvisor], tools, store),
        tools,
        admission,
        ApprovalStore(store, codec, trail, memory),
        store,
        memory,
        advisor,
        IdempotencyStore(store),
        http,
        wiring.containers,
    )


def approval_webhook(configuration: Configuration, store: StateStore) -> ApprovalWebhook | None:
    """The webhook that tells of approvals, if there is one."""
    settings = configuration.settings
    if (url := settings.approvals_webhook_url) is None:
        return None
    # A proxy of the environment has an address of the inside, and decides itself what it leads to.
    is_direct = Proxies().find(URL(url)) is None
    http = outbound_http(
        settings, configuration.tuning, public_only=is_direct and not settings.approvals_webhook_allow_private
    )
    address = f"{configuration.access.settings.public_url}{settings.server_root_path}"
    pause = configuration.tuning.webhook_pause
    return ApprovalWebhook(store, http, url=url, key=lambda: settings.webhook_key, address=address, pause=pause)


def _admission(settings: Settings, access: AccessSettings, store: StateStore) -> Admission:
    total = QuotaLimits("all", access.requests_per_minute or None, None, access.tokens_per_day or None)
    per_client = max(1, settings.max_questions // 2)  # so that no client takes all slots; a key's entry may say less
    quotas = Quotas(store, total)
    return Admission(settings.max_questions, per_client, quotas)


def _memory(settings: Settings, store: StateStore) -> ChatMemory:
    window = MemoryWindow(settings.memory_max_messages, settings.memory_max_tokens, settings.memory_tool_rounds)
    locks = Locks(store, wait=settings.session_wait, client_key=current_client_key)
    return ChatMemory(store, locks, window, ttl=partial(session_ttl, settings.session_ttl), lists=lists_of)


def _chat_client(
    settings: Settings, model: ChatModel, loop: ToolCallingAdvisor, tools: ToolRegistry, store: StateStore
) -> ChatClient:
    attempts = settings.tool_call_repairs
    repair = (ToolCallRepairAdvisor(attempts),) if attempts else ()
    threshold = settings.tool_search_above
    # The offline model compares the question with all tools itself, and would not call a search tool.
    search = (ToolSearchAdvisor(threshold),) if threshold and model.provider != "offline" else ()
    max_calls = settings.tool_max_calls_per_session
    limit = (ConversationCallLimit(store, max_calls, ttl=settings.session_ttl),) if max_calls else ()
    advisors = (SandboxNoticeAdvisor(), *limit, loop, *search, *repair)
    return ChatClient(model, tools, advisors, settings.system_prompt)
