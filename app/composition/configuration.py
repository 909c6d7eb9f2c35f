"""What the service is told by the environment and by ``.env``: all of it read and checked before anything is opened."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from app.access.runtime import AccessConfiguration
from app.composition.models import ChosenModel, choose_chat_model, outbound_http
from app.composition.wiring import state_store, wired
from app.mcp_client import McpServers, read_mcp_servers
from app.observability.otlp.settings import TracingConfiguration, other_variables
from app.settings.base import read_settings
from app.settings.env_file import check_env_file, known_variables, unread_variables
from app.settings.service_settings import Settings
from app.settings.time_limits import inverted_time_limits
from app.tools.discovery import ConfiguredModule, ToolsPathSettings, discover
from toolchat.errors import ConfigurationError
from toolchat.state.locks import LOCK_SECONDS

__all__ = ["Configuration", "read_configuration"]

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Configuration:
    """Everything that was read from the environment, checked."""

    settings: Settings
    access: AccessConfiguration
    chat_model: ChosenModel
    modules: tuple[ConfiguredModule, ...]
    tracing: TracingConfiguration
    warnings: tuple[str, ...] = ()
    """Variables that look mistyped, and time limits that do not lie within one another; logged at start."""


def read_configuration() -> Configuration:
    """Read the settings of the service, of every tool folder and of the chosen provider.

    Raises:
        ConfigurationError: all faults together, one line each.
    """
    faults: list[str] = []

    def checked(read: Callable[[], _T]) -> _T | None:
        try:
            return read()
        except ConfigurationError as error:
            faults.extend(str(error).splitlines())
            return None

    in_file = check_env_file(Path(".env"))
    settings = checked(lambda: read_settings(Settings))
    access = checked(lambda: AccessConfiguration.read(settings.server_host)) if settings else None
    chat_model = checked(lambda: choose_chat_model(settings)) if settings else None
    found = checked(lambda: discover(paths=read_settings(ToolsPathSettings).path))
    modules = [checked(partial(ConfiguredModule.read, module)) for module in found or ()]
    servers = checked(read_mcp_servers) or McpServers()
    store = checked(lambda: state_store(settings)) if settings else None
    tracing = checked(TracingConfiguration.read)
    warnings = _unread_variables(in_file, servers.variables) if found is not None else []
    if settings is None or access is None or chat_model is None or store is None or tracing is None or faults:
        raise ConfigurationError("\n".join(dict.fromkeys((*faults, *warnings))))
    folders = (*(each for each in modules if each), *servers.modules)
    registering = [each.settings for each in folders if each.fault is None]
    warnings += inverted_time_limits(settings, registering, LOCK_SECONDS)
    warnings += tracing.warnings
    read = Configuration(settings, access, chat_model, folders, tracing, tuple(warnings))
    # Nothing is taken out of this container: what cannot be wired is told now, in one line, and not while serving.
    wired(settings, read.modules, outbound_http(settings), store)
    return read


def _unread_variables(in_file: Sequence[str], elsewhere: Collection[str]) -> list[str]:
    in_file = [name for name in in_file if name not in elsewhere]
    return unread_variables(in_file, known_variables() | other_variables(in_file))
