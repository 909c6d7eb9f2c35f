"""Manual tool execution: one tool call without a model."""

from dataclasses import replace

import pytest

from tests.chat.scripted import add, client_of, says
from toolchat.chat.manual_execution import manual_request, run_tool_call
from toolchat.chat.memory import ChatMemory, current_lock
from toolchat.errors import ValidationFailed
from toolchat.service.api.advisors import SandboxNoticeAdvisor, SessionLockAdvisor
from toolchat.state.locks import Locks
from toolchat.state.sqlite import SqliteStateStore
from toolchat.tool_calling.context import CONVERSATION_ID
from toolchat.tool_calling.events import ToolCallFinished, ToolCallStarted
from toolchat.tool_calling.function_callback import FunctionToolCallback

ADDING = FunctionToolCallback.from_function(add)


async def test_invented_data_are_marked_and_need_no_words() -> None:
    client, _ = client_of(says("never"))
    client, told = replace(client, advisors=(SandboxNoticeAdvisor(),)), list[object]()

    async def emit(event: object) -> None:
        told.append(event)

    ended = await run_tool_call(client, ADDING.in_sandbox(), {"a": 1, "b": 2}, emit=emit)
    assert isinstance(ended, ToolCallFinished)
    assert (ended.result, ended.sandbox) == ("3", True)
    assert told == [ToolCallStarted(ended.call, 1), ended]


async def test_arguments_are_read_as_they_were_meant_or_refused_before_anything_runs() -> None:
    client, _ = client_of(says("never"))
    repaired = await run_tool_call(client, ADDING, {"a": "1", "b": 2})
    assert (repaired.result, repaired.repaired) == ("3", True)
    with pytest.raises(ValidationFailed, match="a: Field required"):
        await run_tool_call(client, ADDING, {"b": 2})
    for unwritable in (object(), "\ud800", float("nan")):
        with pytest.raises(ValidationFailed):
            await run_tool_call(client, ADDING, {"a": unwritable, "b": 2})


async def test_a_tool_in_a_session_runs_under_the_lock_of_the_session() -> None:
    async def held() -> str:
        """What the tool stores for the session carries this lock: a write that comes too late is refused."""
        return lock.key if (lock := current_lock.get()) else "none"

    client, store = client_of(says("never"))[0], SqliteStateStore()
    request = manual_request(client, FunctionToolCallback.from_function(held), {}, {CONVERSATION_ID: "s"})
    response = await request.advisors(SessionLockAdvisor(ChatMemory(store, Locks(store)))).call().response()
    assert (response.executions[0].result, current_lock.get()) == ("memory:s", None)
