"""The commands ``person export`` and ``person delete``: all that is stored for one principal."""

from pydantic_core import to_json

from toolchat.chat.memory import ChatMemory
from toolchat.service.api.personal_data import PersonalData
from toolchat.service.cli.dialogue import ANSWERED
from toolchat.service.cli.program import Program
from toolchat.service.cli.state import with_store
from toolchat.service.cli.terminal import print_result
from toolchat.state.base import StateStore
from toolchat.state.locks import Locks


def export(_: Program, *, name: str) -> int:
    """Write it to standard output, one JSON object a line; raises ``ConfigurationError``."""

    async def write(store: StateStore) -> int:
        async for each in _data(store, name).export():
            print_result(to_json(each).decode())
        return ANSWERED

    return with_store(write)


def delete(_: Program, *, name: str) -> int:
    """Delete it, except for the record of decisions; raises ``ConfigurationError``."""

    async def remove(store: StateStore) -> int:
        await _data(store, name).delete()
        return ANSWERED

    return with_store(remove)


def _data(store: StateStore, name: str) -> PersonalData:
    return PersonalData(store, ChatMemory(store, Locks(store)), name)
