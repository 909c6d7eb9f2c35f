"""An event loop that waits for no timer: its clock jumps to the time at which the next one rings."""

import asyncio
import selectors

__all__ = ["JumpingLoop"]


class _Jump(selectors.DefaultSelector):
    """Looks for what is ready at once, and calls what should have been waited for the time that has passed."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout > 0:
            self.now += timeout + 1e-6  # a little late, as real timers are: never a rounding too early
            timeout = 0
        return super().select(timeout)


class JumpingLoop(asyncio.SelectorEventLoop):
    """For code that waits and does nothing else: between two timers no time passes, however slow the machine is."""

    def __init__(self) -> None:
        self._jump = _Jump()
        super().__init__(self._jump)

    def time(self) -> float:
        return self._jump.now
