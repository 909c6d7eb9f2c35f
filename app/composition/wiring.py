"""What is wired: the state store, and the container with everything that asks for something by its type."""

from collections.abc import Sequence

from dishka import AsyncContainer, Provider, Scope

from app.composition.container import instance, instances, make_container
from app.composition.models import exception_processor, manager, tool_loop
from app.settings.service_settings import Settings
from app.tools.registry import ConfiguredModule
from toolchat.errors import ConfigurationError
from toolchat.http.client import OutboundHttp
from toolchat.state.base import StateStore
from toolchat.state.factory import open_state_store
from toolchat.tool_calling.caller import current_client_key
from toolchat.tool_calling.results import ToolCallResultConverter, convert_result

__all__ = ["state_store", "wired"]


def state_store(settings: Settings) -> StateStore:
    """The store that the settings ask for; nothing is connected before it is started.

    Raises:
        ConfigurationError: it cannot be used, or there are several processes and nothing that they share.
    """
    redis_url = settings.redis_url.get_secret_value() if settings.redis_url else None
    if redis_url is None and settings.server_workers > 1:
        told = f"{settings.server_workers} processes share conversations, approvals and all else by Redis only"
        raise ConfigurationError(f"SERVER_WORKERS: {told}: set REDIS_URL, or leave it at 1")
    return open_state_store(
        redis_url,
        client_key=current_client_key,
        deadline=settings.redis_timeout,
        max_entries=settings.state_max_entries,
    )


def wired(
    settings: Settings, modules: Sequence[ConfiguredModule], http: OutboundHttp, store: StateStore
) -> AsyncContainer:
    """The container with the core, and with what the folders provide that have what they need.

    Raises:
        ConfigurationError: something is missing, or provided twice.
    """
    core = Provider(scope=Scope.APP)
    for make in (exception_processor, manager, tool_loop):
        core.provide(make)
    core.provide(lambda: convert_result, provides=ToolCallResultConverter)
    active = [each for each in modules if each.fault is None]
    # What a folder provides takes the place of what the core does: a manager of its own, say.
    provided = (provider for each in active for provider in each.module.providers(each.settings))
    shared = instance(store, StateStore)  # type: ignore[type-abstract]
    return make_container([instances(settings, http), shared, core, *provided])
