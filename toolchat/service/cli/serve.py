"""The commands ``serve`` and ``mcp``; a SIGTERM is handled while their functions import the server."""

import asyncio
import os
import shlex
import signal
import sys
from contextlib import nullcontext
from pathlib import Path

from toolchat.errors import ConfigurationError
from toolchat.service.cli import Program
from toolchat.service.cli.terminal import print_error


class _StoppedEarly(BaseException):
    """SIGTERM arrived during the start; a ``SystemExit`` would count as one of the tool that is being imported."""


def serve(program: Program, *, reload: bool = False, **options: str | None) -> int:
    """Serve over HTTP; ``host``, ``port`` and ``workers`` take precedence over their variables."""
    signal.signal(signal.SIGTERM, _stop_early)  # until the server has its own handler; process 1 would ignore it
    if hasattr(signal, "SIGHUP") and not reload:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until the server reloads its files on it
    # Read with all other variables, a wrong value is reported like any other.
    os.environ.update({f"SERVER_{name.upper()}": value for name, value in options.items() if value is not None})
    try:
        return _serve_with_reload(program) if reload else _serve(program)
    except _StoppedEarly:
        print_error("stopped during startup")
        return 0
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the process ends in any case


def _stop_early(*_: object) -> None:
    raise _StoppedEarly


def _serve_with_reload(program: Program) -> int:
    """Let a child process serve, and replace it when the tools or other code in the directory change."""
    try:
        from watchfiles import Change, DefaultFilter, run_process
    except ModuleNotFoundError:
        raise ConfigurationError("--reload: needs the package watchfiles: pip install 'toolchat[reload]'") from None
    from toolchat.service.tool_modules.sources import ToolsPathSettings, folders_of

    try:
        # Not put into the environment: each child reads the file anew.
        own = ToolsPathSettings(_env_file=".env", _env_file_encoding="utf-8-sig").sources
    except ValueError:  # it is no text; the child says so
        own = ()
    folders = [folder for each in (*program.tools, *own) for folder in folders_of(each)]
    is_source = DefaultFilter()

    def concerns_tools(change: Change, path: str) -> bool:
        """Whether it is Python code, or a folder of tools, which may come and go with its files."""
        is_folder = not Path(path).suffix and any(map(Path(path).is_relative_to, folders))
        return is_source(change, path) and (path.endswith(".py") or is_folder)

    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))  # the terminal was closed
    command = shlex.join([sys.executable, *(each for each in sys.orig_argv[1:] if each != "--reload")])
    # The project's own packages as well, since its tools import them.
    run_process(Path.cwd(), *folders, target=command, target_type="command", watch_filter=concerns_tools)
    return 0


def _serve(program: Program) -> int:
    from toolchat.service.composition.configuration import read_configuration
    from toolchat.service.observability.multiprocess import metrics_directory
    from toolchat.service.settings.env_file import load_env_file

    load_env_file()
    sandbox = os.environ.get("SANDBOX_URL")
    notice = f"sandbox on {sandbox}: the tools' answers are invented and marked as such\n" if sandbox else ""
    has_workers = hasattr(os, "fork") and os.environ.get("SERVER_WORKERS", "").strip() not in ("", "1")
    with metrics_directory() if has_workers else nullcontext():
        configuration = read_configuration(tools=program.tools)
        # These import the metrics, which must not happen before their directory exists.
        from toolchat.service.main import create_app
        from toolchat.service.observability.logs import configure_logging
        from toolchat.service.server import runner

        settings = configuration.settings
        configure_logging(settings.log_level)
        configuration.log_warnings()  # before anything else can fail: a mistyped variable may be the reason
        app = create_app(configuration)
        return runner.serve(app, settings, provider=configuration.chat_model.provider, notice=notice)


def serve_mcp(program: Program) -> int:
    """Serve MCP over standard input and output until the input ends."""
    from toolchat.service.composition.configuration import read_configuration
    from toolchat.service.composition.lifespan import open_service
    from toolchat.service.observability.logs import configure_logging
    from toolchat.service.process import keep_objects
    from toolchat.service.protocols.mcp_server.stdio import serve_stdio

    configuration = read_configuration(tools=program.tools, serving=False)
    configure_logging(configuration.settings.log_level)
    configuration.log_warnings()

    async def serve_opened() -> None:
        async with open_service(configuration) as state:
            await state.tools.wait_ready()
            keep_objects()
            await serve_stdio(state)

    asyncio.run(serve_opened())
    return 0
