"""The commands ``state``, ``audit`` and ``person``: what the configured store holds.

An export has one JSON object a line: first the format's own, then a record each, last their number.
"""

import asyncio
import json
import sys
import time
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from pydantic_core import from_json, to_json

from toolchat.chat.memory import ChatMemory
from toolchat.errors import ConfigurationError, StoreUnavailable, ToolchatError
from toolchat.service.api.audit import AuditTrail
from toolchat.service.api.personal_data import PersonalData
from toolchat.service.cli import Program
from toolchat.service.cli.opened_service import ANSWERED, FAILED
from toolchat.service.cli.terminal import print_error, print_note, print_result, show_warnings
from toolchat.service.composition.state import state_store
from toolchat.service.settings.base import read_settings
from toolchat.service.settings.env_file import load_env_file
from toolchat.service.settings.service_settings import Settings
from toolchat.state.base import StateStore, StoredRecord, Write, check_version
from toolchat.state.locks import Locks
from toolchat.state.sqlite import SqliteStateStore
from toolchat.tool_calling.caller import Caller, current_caller

_FORMAT: Final = 1
_LOCK_SECONDS: Final = 5.0


def _on_store(use: Callable[..., Awaitable[int]]) -> Callable[..., int]:
    """Make a command of a coroutine function that uses the configured store."""

    async def opened(store: StateStore, options: Mapping[str, Any]) -> int:
        try:
            await store.start()
            return await use(store, **options)
        except ToolchatError as error:
            print_error(error.for_operators)
            return FAILED
        finally:
            await store.aclose()

    def command(_: Program, **options: Any) -> int:
        show_warnings()
        load_env_file()
        store = state_store(read_settings(Settings))
        if store.kind == "memory":
            raise ConfigurationError("STATE_URL: the memory of a process cannot be read by another one")
        return asyncio.run(opened(store, options))

    return command


@_on_store
async def export(store: StateStore) -> int:
    """Write all records to standard output, except for quotas, which are counted anew."""
    _write_line({"format": _FORMAT})
    number = 0
    async for record in store.records():
        _write_line(_to_json(record))
        number += 1
    _write_line({"records": number})
    print_note(f"{number} records exported")
    return ANSWERED


@_on_store
async def import_(store: StateStore) -> int:
    """Store the records of standard input whose key has none yet."""
    lines = map(_parsed, enumerate(sys.stdin.buffer, 1))
    if next(lines, {}).get("format") != _FORMAT:
        raise ConfigurationError(f"line 1: is not an export of format {_FORMAT}, the one that this version reads")
    return await _import(store, lines)


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


@_on_store
async def stats(store: StateStore) -> int:
    """Print how many records of each kind are stored."""
    numbers, sizes = Counter[str](), Counter[str]()
    async for record in store.records():
        for kind in (record.key.partition(":")[0], "all"):
            numbers[kind] += 1
            sizes[kind] += len(record.value) + sum(map(len, record.log))
    print_result(f"{'kind':20} {'records':>10} {'bytes':>14}")
    for kind, number in sorted(numbers.items(), key=lambda each: (each[0] == "all", each[0])):
        print_result(f"{kind:20} {number:10,} {sizes[kind]:14,}")
    if isinstance(store, SqliteStateStore):
        print_result(_size(store))
    return ANSWERED


@_on_store
async def vacuum(store: StateStore) -> int:
    """Give the unused space of the file back to the disk."""
    if not isinstance(store, SqliteStateStore):
        raise ConfigurationError("STATE_URL: names no file: a server frees its memory by itself")
    await store.vacuum()
    print_result(_size(store))
    return ANSWERED


@_on_store
async def audit(store: StateStore, *, begin: datetime | None, end: datetime | None, tenant: str, tool: str) -> int:
    """Write the decisions to standard output, the newest first, one JSON object a line."""
    async for each in AuditTrail(store).entries(begin, end, tenant=tenant, tool=tool):
        print_result(to_json(each).decode())
    return ANSWERED


@_on_store
async def person_export(store: StateStore, *, name: str) -> int:
    """Write all that is stored for a person to standard output, one JSON object a line."""
    async for each in _data(store, name).export():
        print_result(to_json(each).decode())
    return ANSWERED


@_on_store
async def person_delete(store: StateStore, *, name: str) -> int:
    """Delete all that is stored for a person, except for the record of decisions."""
    await _data(store, name).delete()
    return ANSWERED


def _data(store: StateStore, name: str) -> PersonalData:
    return PersonalData(store, ChatMemory(store, Locks(store)), name)


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
    """Check that this version reads a record."""
    try:
        found = from_json(value)
    except ValueError:
        return
    if isinstance(found, list) and found:
        found = found[-1]  # a conversation has its version in its last message
    if isinstance(found, dict) and isinstance(version := found.get("version"), int):
        check_version(version)


def _size(store: SqliteStateStore) -> str:
    return f"{store.path}: {Path(store.path).stat().st_size:,} bytes"
