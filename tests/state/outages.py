"""What tests of a server need when it does not work."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from tests.waiting import until
from toolchat.state.base import Lock, StateStore

AWAY = "the state store cannot be used"
BACK = "the state store can be used again"


def every_operation(store: StateStore) -> list[Callable[[], Awaitable[object]]]:
    lock = Lock("memory:a", b"1")
    return [
        lambda: store.get("memory:a"),
        lambda: store.put("memory:a", b"x", ttl=30),
        lambda: store.put("memory:a", b"x", ttl=30, lock=lock),
        lambda: store.delete("memory:a"),
        lambda: store.delete("memory:a", lock=lock),
        lambda: store.try_lock("memory:a", ttl=30),
        lambda: store.renew(lock, ttl=30),
        lambda: store.unlock(lock),
    ]


async def refused(operations: list[Callable[[], Awaitable[object]]]) -> None:
    """All operations at once, each of which must fail in the same way."""
    results = await asyncio.gather(*(operation() for operation in operations), return_exceptions=True)
    assert {repr(result) for result in results} == {"StoreUnavailable('the state store cannot be reached')"}


async def recovered(store: StateStore) -> None:
    await until(lambda: store.available)
    await store.put("memory:back", b"x", ttl=30)
    assert await store.get("memory:back") == b"x"


def reasons(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [vars(record)["reason"] for record in caplog.records if record.getMessage() == AWAY]


OLDER = {
    "LOADING": "BusyLoadingError", "OOM": "OutOfMemoryError", "READONLY": "ReadOnlyError", "MOVED": "MovedError",
    "NOAUTH": "AuthenticationError", "WRONGPASS": "AuthenticationError", "AttributeError": "AuthenticationError",
}  # fmt: skip
"""What versions of the library before 8 name some errors, whose texts they drop."""


def reported(caplog: pytest.LogCaptureFixture, *expected: str) -> bool:
    """Whether these reasons were logged, in the words of whichever version of the library is installed."""
    found = reasons(caplog)
    pairs = zip(found, expected, strict=False)
    return len(found) == len(expected) and all(each in (code, OLDER.get(code)) for each, code in pairs)


@asynccontextmanager
async def answering(line: bytes, *, after: float = 0, greeted: list[object] | None = None) -> AsyncGenerator[str, None]:
    """A server that answers whatever it is sent with one line, or ends the connection; gives its URL.

    Args:
        line: the answer; an empty one ends the connection.
        after: seconds before the answer to anything but the greeting.
        greeted: gets an item for each connection.
    """

    ended, writers = asyncio.Event(), set[asyncio.StreamWriter]()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.add(writer)
        if greeted is not None:
            greeted.append(writer)
        with suppress(ConnectionError):
            while command := await reader.read(1000):
                with suppress(TimeoutError):
                    await asyncio.wait_for(ended.wait(), 0 if b"HELLO" in command else after)
                writer.write(line)
                if not line:
                    break
        writer.close()
        writers.discard(writer)

    listener = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"redis://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    finally:  # nothing of it may be left to the next test, when this one fails as well
        listener.close()
        ended.set()
        for each in writers:
            each.transport.abort()
        await until(lambda: not writers)
