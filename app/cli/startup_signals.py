"""A service that is told to stop before it listens: it says so, as it does later."""

import signal

__all__ = ["StoppedEarly", "hear_of_an_early_end"]


class StoppedEarly(BaseException):
    """The service is told to stop while it starts."""


def hear_of_an_early_end() -> None:
    """From now on raise :class:`StoppedEarly` in the main thread for a SIGTERM, until another handler is set."""
    signal.signal(signal.SIGTERM, _raise)


def _raise(*_: object) -> None:
    raise StoppedEarly
