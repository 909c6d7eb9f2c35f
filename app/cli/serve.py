"""The commands ``serve`` and ``demo``, and SIGTERM while they start.

The functions import the server themselves, because a SIGTERM that arrives during these imports must be handled.
"""

import os
import signal

__all__ = ["StoppedEarly", "demo", "handle_startup_sigterm", "serve"]


class StoppedEarly(BaseException):
    """SIGTERM arrived while the service was starting."""


def handle_startup_sigterm() -> None:
    """Raise :class:`StoppedEarly` in the main thread on SIGTERM, until the server installs its own handler."""
    signal.signal(signal.SIGTERM, _raise_stopped_early)


def _raise_stopped_early(*_: object) -> None:
    raise StoppedEarly


def serve(*, workers: str | None) -> int:
    """Serve over HTTP; ``workers`` takes precedence over ``SERVER_WORKERS``."""
    handle_startup_sigterm()
    from app.server import runner

    if workers is not None:
        os.environ["SERVER_WORKERS"] = workers
    return runner.serve()


def demo() -> int:
    """Serve over HTTP with the sandbox in place of the tools' upstreams."""
    handle_startup_sigterm()
    from app.server import runner

    return runner.demo()
