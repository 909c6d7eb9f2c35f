"""The commands ``state export``, ``import``, ``stats`` and ``vacuum``: what the configured store holds.

The format has one JSON object a line: first the format's own, then a record each, last their number.
"""

import asyncio
import json
import sys
import time
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pydantic_core import from_json

from toolchat.errors import ConfigurationError, StoreUnavailable, ToolchatError
from toolchat.service.cli.dialogue import ANSWERED, FAILED
from toolchat.service.cli.program import Program
from toolchat.service.cli.terminal import print_error, print_note, print_result, show_warnings
from toolchat.service.composition.state import state_store
from toolchat.service.settings.base import read_settings
from toolchat.service.settings.env_file import load_env_file
from toolchat.service.settings.service_settings import Settings
from toolchat.state.base import StateStore, StoredRecord, Write, check_version
from toolchat.state.sqlite import SqliteStateStore
from toolchat.tool_calling.caller import Caller, current_caller

_FORMAT: Final = 1
_LOCK_SECONDS: Final = 5.0


def export(_: Program) -> int:
    """Write all records to standard output, except for quotas, which are counted anew.

    Raises:
        ConfigurationError: the configuration is invalid.
    """

    async def write(store: StateStore) -> int:
        _write_line({"format": _FORMAT})
        number = 0
        async for record in store.records():
            _write_line(_to_json(record))
            number += 1
        _write_line({"records": number})
        print_note(f"{number} records exported")
        return ANSWERED

    return with_store(write)


def import_(_: Program) -> int:
    """Store the records of standard input whose key has none yet.

    Raises:
        ConfigurationError: the configuration or a line is invalid, or a newer version wrote it.
    """

    async def read(store: StateStore) -> int:
        lines = map(_parsed, enumerate(sys.stdin.buffer, 1))
        if (first := next(lines, {})).get("format") != _FORMAT:
            raise ConfigurationError(f"line 1: is not an export of format {_FORMAT}, the one that this version reads")
        return await _import(store, lines) if first else FAILED

    return with_store(read)


async def _import(store: StateStore, lines: Iterable[Mapping[str, Any]]) -> int:
    results = Counter[str]()
    for line in lines:
        if "records" in line:
            print_note(f"{results['new']} records imported, {results['old']} expired, {results['held']} already there")
            return ANSWERED
        results[await _store_new(store, _from_json(line))] += 1
    print_error(f"the export is incomplete: it ends after {results.total()} records, which were imported")
    return FAILED


async def _store_new(store: StateStore, record: StoredRecord) -> str:
    """Store a record under its key's lock, so that a running service neither loses nor overwrites anything."""
    if (ttl := record.expires - time.time()) <= 0:
        return "old"
    current_caller.set(Caller(client_key=record.client_key))
    lock = await store.try_lock(record.key, ttl=_LOCK_SECONDS)
    if lock is None:
        return "held"
    if lock.value is not None:
        await store.unlock(lock)
        return "held"
    first, *further = record.log or (None,)
    write = Write(record.key, record.value, ttl, is_kept=record.is_kept, lists=record.lists, line=first)
    lines = [replace(write, lists=(), line=line, place=place) for place, line in enumerate(further, 1)]
    await store.commit_under(lock, [write, *lines, lock.release])
    return "new"


def stats(_: Program) -> int:
    """Print how many records of each kind are stored.

    Raises:
        ConfigurationError: the configuration is invalid.
    """

    async def count(store: StateStore) -> int:
        numbers, sizes = Counter[str](), Counter[str]()
        async for record in store.records():
            for kind in (record.key.partition(":")[0], "all"):
                numbers[kind] += 1
                sizes[kind] += len(record.value) + sum(map(len, record.log))
        print_result(f"{'kind':20} {'records':>10} {'bytes':>14}")
        for kind, number in sorted(numbers.items(), key=lambda each: (each[0] == "all", each[0])):
            print_result(f"{kind:20} {number:10,} {sizes[kind]:14,}")
        if isinstance(store, SqliteStateStore):
            print_result(f"{store.path}: {_bytes(store.path)}, log {_bytes(f'{store.path}-wal')}")
        return ANSWERED

    return with_store(count)


def vacuum(_: Program) -> int:
    """Give the unused space of the file back to the disk.

    Raises:
        ConfigurationError: the configuration is invalid, or the state is not in a file.
    """

    async def rewrite(store: StateStore) -> int:
        if not isinstance(store, SqliteStateStore):
            raise ConfigurationError("STATE_URL: names no file: a server frees its memory by itself")
        before = _bytes(store.path)
        await store.vacuum()
        print_result(f"{store.path}: {before} before, {_bytes(store.path)} now")
        return ANSWERED

    return with_store(rewrite)


def with_store(use: Callable[[StateStore], Awaitable[int]]) -> int:
    """Use the configured store; returns the exit code."""
    show_warnings()
    load_env_file()
    store = state_store(read_settings(Settings))
    if store.kind == "memory":
        raise ConfigurationError("STATE_URL: the memory of a process cannot be read by another one")

    async def opened() -> int:
        try:
            await store.start()
            return await use(store)
        except ToolchatError as error:
            print_error(error.for_operators)
            return FAILED
        finally:
            await store.aclose()

    return asyncio.run(opened())


def _write_line(document: Mapping[str, object]) -> None:
    sys.stdout.write(json.dumps(document, separators=(",", ":")) + "\n")


def _to_json(record: StoredRecord) -> dict[str, object]:
    common = {"key": record.key, "client": record.client_key, "expires": round(record.expires)}
    further = {"kept": record.is_kept, "lists": record.lists, "log": list(map(_encoded, record.log))}
    return common | _encoded(record.value) | {name: value for name, value in further.items() if value}


def _encoded(value: bytes) -> dict[str, str]:
    try:
        return {"value": value.decode()}
    except UnicodeDecodeError:
        return {"base64": b64encode(value).decode()}


def _decoded(document: Mapping[str, Any]) -> bytes:
    return b64decode(document["base64"]) if "base64" in document else document["value"].encode()


def _parsed(numbered: tuple[int, bytes]) -> Mapping[str, Any]:
    number, line = numbered
    try:
        document: dict[str, Any] = json.loads(line)
        if not document.keys() & {"format", "records"}:
            record = _from_json(document)
            for each in (record.value, *record.log):
                _check_version(each)
    except StoreUnavailable as error:
        raise ConfigurationError(f"line {number}: {error.detail}") from None
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise ConfigurationError(f"line {number}: is not a line of an export") from None
    return document


def _from_json(document: Mapping[str, Any]) -> StoredRecord:
    return StoredRecord(
        document["key"],
        _decoded(document),
        float(document["expires"]),
        document["client"],
        tuple(map(str, document.get("lists", ()))),
        tuple(map(_decoded, document.get("log", ()))),
        is_kept=document.get("kept") is True,
    )


def _check_version(value: bytes) -> None:
    """Check that this version reads a record.

    Raises:
        StoreUnavailable: a newer version wrote it.
    """
    try:
        found = from_json(value)
    except ValueError:
        return
    if isinstance(found, list) and found:
        found = found[-1]  # a conversation has its version in its last message
    if isinstance(found, dict) and isinstance(version := found.get("version"), int):
        check_version(version)


def _bytes(path: str) -> str:
    file = Path(path)
    return f"{file.stat().st_size:,} bytes" if file.exists() else "none"
