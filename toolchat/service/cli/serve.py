"""The command ``serve``, and SIGTERM while it starts.

The functions import the server themselves, because a SIGTERM that arrives during these imports must be handled.
"""

import os
import shlex
import signal
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

from toolchat.errors import ConfigurationError
from toolchat.service.cli.program import Program
from toolchat.service.cli.terminal import is_interactive
from toolchat.service.server.process_memory import keep_for_good


class StoppedEarly(BaseException):
    """SIGTERM arrived while the service was starting."""


def handle_startup_sigterm() -> None:
    """Raise :class:`StoppedEarly` in the main thread on SIGTERM, until the server installs its own handler."""
    signal.signal(signal.SIGTERM, _raise_stopped_early)


def _raise_stopped_early(*_: object) -> None:
    raise StoppedEarly


def serve(program: Program, *, reload: bool = False, **options: str | None) -> int:
    """Serve over HTTP; ``host``, ``port`` and ``workers`` take precedence over their variables.

    With ``reload``, a child process serves, and is replaced when the tools or other code in the directory change.

    Raises:
        ConfigurationError: the configuration is invalid, or the address is in use.
    """
    handle_startup_sigterm()
    _set_variables(options)
    return _serve_with_reload(program) if reload else _serve(program)


def _serve_with_reload(program: Program) -> int:
    try:
        from watchfiles import Change, DefaultFilter, run_process
    except ModuleNotFoundError:
        raise ConfigurationError("--reload: needs the package watchfiles: pip install 'toolchat[reload]'") from None
    from toolchat.service.settings.base import read_settings
    from toolchat.service.settings.env_file import load_env_file
    from toolchat.service.tool_modules.sources import ToolsPathSettings, folders_of

    exported = set(os.environ)
    load_env_file()
    sources = (*program.tools, *read_settings(ToolsPathSettings).sources)
    for name in os.environ.keys() - exported:  # each child reads the file anew
        del os.environ[name]
    folders = [folder for each in sources for folder in folders_of(each)]
    is_source = DefaultFilter()

    def concerns_tools(change: Change, path: str) -> bool:
        """Whether it is Python code, or a folder of tools, which may come and go with its files."""
        is_folder = not Path(path).suffix and any(map(Path(path).is_relative_to, folders))
        return is_source(change, path) and (path.endswith(".py") or is_folder)

    signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))  # the terminal was closed
    command = shlex.join([sys.executable, *(each for each in sys.orig_argv[1:] if each != "--reload")])
    # The project's own packages as well, since its tools import them.
    run_process(Path.cwd(), *folders, target=command, target_type="command", watch_filter=concerns_tools)
    return 0


def _set_variables(options: Mapping[str, str | None]) -> None:
    """Set the variables of the given options: read with all others, a wrong value is reported like any other."""
    os.environ.update({f"SERVER_{name.upper()}": value for name, value in options.items() if value is not None})


def _serve(program: Program) -> int:
    from toolchat.service.composition.configuration import read_configuration
    from toolchat.service.observability.multiprocess import metrics_directory
    from toolchat.service.settings.env_file import load_env_file

    load_env_file()
    hint, sandbox = "", os.environ.get("SANDBOX_URL")
    notice = f"sandbox on {sandbox}: the tools' answers are invented and marked as such\n" if sandbox else ""
    with metrics_directory() if _has_workers() else nullcontext():
        configuration = read_configuration(tools=program.tools)
        # These import the metrics, which must not happen before their directory exists.
        from toolchat.service.main import create_app
        from toolchat.service.observability.logs import configure_logging
        from toolchat.service.server import runner

        settings = configuration.settings
        if configuration.chat_model.is_last_resort and is_interactive():
            from toolchat.service.cli.local_model import local_model_hint

            hint = local_model_hint()
        configure_logging(settings.log_level)
        configuration.log_warnings()  # before anything else can fail: a mistyped variable may be the reason
        # The application is created in the space of what the imports leave, which need not be looked at again.
        keep_for_good()
        app = create_app(configuration)
        return runner.serve(app, settings, provider=configuration.chat_model.provider, notice=notice, hint=hint)


def _has_workers() -> bool:
    from toolchat.service.settings.base import read_settings
    from toolchat.service.settings.service_settings import Settings

    try:
        return hasattr(os, "fork") and read_settings(Settings).server_workers > 1
    except ConfigurationError:  # reported later, with all other faults
        return False
