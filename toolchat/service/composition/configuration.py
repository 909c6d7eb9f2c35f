"""The service's whole configuration, read from the environment and ``.env`` and validated before anything is opened."""

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from yarl import URL

from toolchat.errors import ConfigurationError
from toolchat.service.access.runtime import AccessConfiguration
from toolchat.service.composition.models import PROVIDER_VARIABLES, ChosenModel, choose_chat_model, outbound_http
from toolchat.service.composition.state import state_store
from toolchat.service.composition.wiring import wired
from toolchat.service.mcp_client.file import read_mcp_servers
from toolchat.service.observability.tracing import TracingSettings, other_variables, read_tracing_settings
from toolchat.service.settings.base import read_settings
from toolchat.service.settings.env_file import doubtful_values, known_variables, load_env_file, unread_variables
from toolchat.service.settings.service_settings import Settings, Tuning, inverted_time_limits
from toolchat.service.tool_modules.discovery import ConfiguredModule, discover
from toolchat.service.tool_modules.sources import ToolsPathSettings, ignored_files
from toolchat.state.locks import LOCK_SECONDS

_DEFAULT = Tuning()
_log = logging.getLogger(__name__)
_T = TypeVar("_T")
_NO_MODEL = (
    f"CHAT_PROVIDER: no chat model for clients beyond this machine: set {PROVIDER_VARIABLES}, "
    "or CHAT_PROVIDER=offline to answer without a model"
)
_NO_PUBLIC_URL = "APPROVALS_WEBHOOK_URL needs PUBLIC_URL: its links must not depend on the Host of a request"


@dataclass(frozen=True, slots=True)
class Configuration:
    """The validated configuration."""

    settings: Settings
    access: AccessConfiguration
    chat_model: ChosenModel
    modules: tuple[ConfiguredModule, ...]
    tracing: TracingSettings
    tuning: Tuning = _DEFAULT
    warnings: tuple[str, ...] = ()
    """Mistyped variables and inverted time limits."""
    model_routes: tuple[str, ...] = ()
    """The ways to the chat model and its fallbacks, such as "through proxy.example:3128"; empty without a proxy."""

    def log_warnings(self) -> None:
        """Log the warnings, and ways through a proxy. Call it once for all processes of the service."""
        for warning in self.warnings:
            _log.warning("%s", warning)
        for number, route in enumerate(self.model_routes, 1):
            if route:
                _log.info("chat model %d is reached %s", number, route)


def read_configuration(*, tools: Sequence[str] = (), serving: bool = True, tuning: Tuning = _DEFAULT) -> Configuration:
    """Read the settings of the service, of every tool module and of the chosen provider.

    Args:
        tools: the application's own tools, in addition to those of ``TOOLS_PATH``.
        serving: whether clients will be answered; then the offline model must be chosen on purpose, unless this
            machine is the only client.
        tuning: values that are no variables.

    Raises:
        ConfigurationError: the configuration is invalid; the message has one line for each fault.
    """
    env_file, faults = load_env_file(), list[str]()

    def read(part: Callable[..., _T], *needed: object) -> _T | None:
        """Read a part from others; ``None`` after a fault, its own or that of a part it needs."""
        if any(each is None for each in needed):
            return None
        try:
            return part(*needed)
        except ConfigurationError as error:
            faults.extend(str(error).splitlines())
            return None

    # Every fault is collected, so that one start reports all of them.
    settings = read(partial(read_settings, Settings))
    access = read(_read_access, settings)
    model = read(choose_chat_model, settings, tuning)
    read(_check_clients, access, model if serving else None)
    sources = tuple(dict.fromkeys((*read_settings(ToolsPathSettings).sources, *tools)))
    found = read(discover, sources)
    modules = [read(ConfiguredModule.read, module) for module in found or ()]
    servers = read(read_mcp_servers, tuning)
    store = read(state_store, settings)
    http = read(outbound_http, settings, tuning)
    tracing = read(read_tracing_settings)
    variables = servers.variables if servers else ()
    warnings = [*env_file.warnings, *(_unread_variables(env_file.names, variables) if found is not None else ())]
    if not (settings and access and model and servers and store and http and tracing) or faults:
        # Mistyped variables first: one of them may be the reason for a fault.
        raise ConfigurationError("\n".join(dict.fromkeys((*warnings, *faults))))
    registered = (*filter(None, modules), *map(ConfiguredModule, servers.modules))
    warnings += _warnings(settings, model, sources, registered)
    routes = tuple(http.proxies.route(URL(url)) if url else "" for url in model.urls)
    # Discarded: building the containers reports wiring errors at start, in one line, instead of while serving.
    wired(settings, registered, http, store)
    return Configuration(settings, access, model, registered, tracing, tuning, tuple(warnings), routes)


def _read_access(settings: Settings) -> AccessConfiguration:
    access = AccessConfiguration.read(settings.server_host, keeps_for_ever=settings.keeps_for_ever)
    if settings.approvals_webhook_url and not access.settings.public_url:
        raise ConfigurationError(_NO_PUBLIC_URL)
    return access


def _check_clients(access: AccessConfiguration, model: ChosenModel) -> None:
    if model.is_last_resort and not access.is_local:
        raise ConfigurationError(_NO_MODEL)


def _warnings(
    settings: Settings, model: ChosenModel, sources: Sequence[str], modules: Sequence[ConfiguredModule]
) -> Iterator[str]:
    yield from inverted_time_limits(settings, [each.settings for each in modules if each.fault is None], LOCK_SECONDS)
    yield from (*model.warnings, *ignored_files(sources))
    if not modules:
        yield "there are no tools: toolchat new-tool NAME writes one into the folder tools"


def _unread_variables(in_file: Sequence[str], elsewhere: Collection[str]) -> list[str]:
    in_file = [name for name in in_file if name not in elsewhere]
    known = known_variables()
    return unread_variables(in_file, known | other_variables(in_file)) + doubtful_values(known)
