"""What a conversation keeps, and what of it fits beside a question: rules that hold for every conversation."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st
from pydantic_core import from_json, to_json

import toolchat.chat.memory as memory_module
from toolchat.chat.memory import ChatMemory
from toolchat.chat.memory_window import MemoryWindow
from toolchat.chat.session_records import from_records, to_records
from toolchat.chat.turns import Turn
from toolchat.errors import SessionBusy, StoreUnavailable
from toolchat.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolResponse,
    ToolResponseMessage,
    UserMessage,
    estimate_size,
)
from toolchat.state.base import Lock
from toolchat.state.locks import Locks
from toolchat.state.sqlite import SqliteStateStore

ODD = ["", "\u2028", "\ud800", "\x00", "长" * 200]
TEXTS = st.text(st.characters(exclude_categories=()), max_size=12) | st.sampled_from(ODD)
EXTRAS = st.fixed_dictionaries({}, optional={"signature": TEXTS.map(lambda text: written(text)), "长": st.integers()})
CALLS = st.builds(ToolCall, st.sampled_from(["call_1", "长", "\udfff"]), TEXTS, TEXTS, EXTRAS)
ANSWERS = st.builds(AssistantMessage, TEXTS, st.just(()), EXTRAS)


@st.composite
def turns(draw: st.DrawFn) -> tuple[Message, ...]:
    """A question, up to two rounds of tools, and an answer."""
    messages: list[Message] = [UserMessage(draw(TEXTS))]
    for _ in range(draw(st.integers(0, 2))):
        calls = tuple(draw(st.lists(CALLS, min_size=1, max_size=2)))
        messages.append(AssistantMessage(draw(TEXTS), calls, draw(EXTRAS)))
        results = (ToolResponse(call.id, call.name, draw(TEXTS), draw(st.booleans())) for call in calls)
        messages.append(ToolResponseMessage(tuple(results)))
    return (*messages, draw(ANSWERS))


CONVERSATIONS = st.lists(turns().map(Turn), max_size=4)
WINDOWS = st.builds(MemoryWindow, st.integers(2, 12), st.integers(1, 300), st.booleans())


def written(text: str) -> str:
    """A text as UTF-8 can write it."""
    return text.encode("utf-8", "replace").decode()


def as_written(message: Message) -> Message:
    """A message in texts that can be written."""
    match message:
        case ToolResponseMessage(responses):
            return ToolResponseMessage(tuple(replace(each, text=written(each.text)) for each in responses))
        case _:
            return replace(message, text=written(message.text))


def text_of(message: Message) -> str:
    return "" if isinstance(message, ToolResponseMessage) else message.text


def roles(messages: Sequence[Message]) -> list[str]:
    return [type(message).__name__ for message in messages]


@given(TEXTS, turns())
def test_messages_survive_being_written_down_and_read_again(instructions: str, turn: tuple[Message, ...]) -> None:
    # Whatever the texts, ids and extra keys are, reasoning and marks included; only lone surrogates are not kept.
    messages = (SystemMessage(instructions), *turn)
    assert from_records(from_json(to_json(to_records(messages)))) == tuple(map(as_written, messages))


@pytest.mark.slow
@given(WINDOWS, CONVERSATIONS, turns())
def test_a_window_that_is_full_is_cut_to_half_at_a_whole_turn(
    window: MemoryWindow, conversation: list[Turn], running: tuple[Message, ...]
) -> None:
    # What is given again is the end of the conversation: all of it, or as many turns as fit and fill half a window.
    half = MemoryWindow(window.max_messages // 2, window.max_tokens // 2)

    def fits(number: int) -> bool:
        given = [message for each in conversation[len(conversation) - number :] for message in each.messages]
        return window.fits([*given, *running]) and (number == len(conversation) or half.fits(given))

    kept = window.select(tuple(conversation), running)
    assert list(kept) == conversation[len(conversation) - len(kept) :]
    assert len(kept) == max((number for number in range(len(conversation) + 1) if fits(number)), default=0)


@pytest.mark.slow
@given(WINDOWS, turns())
def test_a_turn_is_stored_whole_or_as_question_and_answer(window: MemoryWindow, turn: tuple[Message, ...]) -> None:
    # A call is never kept without its result, nor reasoning without the calls that it led to.
    kept = window.trim(turn)

    unreasoned = [AssistantMessage(m.text, m.tool_calls) if isinstance(m, AssistantMessage) else m for m in turn]
    has_rounds = any(isinstance(each, ToolResponseMessage) for each in turn)
    whole = tuple(map(as_written, turn if has_rounds else unreasoned))
    alone = (as_written(unreasoned[0]), as_written(unreasoned[-1]))
    assert kept == (whole if window.tool_rounds and window.fits(whole) else alone)


@pytest.mark.slow
@given(WINDOWS, turns().map(Turn))
def test_the_model_receives_a_stored_turn_whole_or_its_question_and_answer_shortened(
    window: MemoryWindow, turn: Turn
) -> None:
    # Also one that a larger window has stored with its tool rounds.
    short = window.shorten(turn)

    alone = MemoryWindow().trim(turn.messages)
    if window.fits(turn.messages):
        assert short is turn
    elif estimate_size(alone) <= window.max_tokens:
        assert short.messages == alone
    else:
        assert roles(short.messages) == roles(alone)
        assert all(len(text_of(each)) <= max(window.max_tokens // 4, 16) + 40 for each in short)


def memory_in(store: SqliteStateStore, window: MemoryWindow | None = None) -> ChatMemory:
    return ChatMemory(store, Locks(store, ttl=60, wait=60), window)


async def answered(memory: ChatMemory, question: str, answer: str) -> Sequence[Message]:
    """What the model receives of the turns before a question, whose turn is then stored."""
    async with memory.open_turn("s") as turn:
        received = turn.history([UserMessage(question)])
        await turn.save((UserMessage(question), AssistantMessage(answer)))
        return received


@pytest.mark.parametrize(("asked", "told"), [(1, 19), (10, 10), (19, 1)])
async def test_a_conversation_begins_elsewhere_only_after_half_a_window_whoever_answers(asked: int, told: int) -> None:
    # Twenty tokens a turn, and 400 at most: ten turns go at once, whether a question or an answer was too much.
    store, window = SqliteStateStore(), MemoryWindow(max_tokens=400)
    begins = []
    for number in range(100):
        received = await answered(memory_in(store, window), f"{number:02}  " * asked, "well" * told)
        begins += [getattr(received[0], "text", "")[:2]] if received else []
    assert list(dict.fromkeys(begins)) == [f"{number:02}" for number in range(0, 90, 10)]


async def test_a_question_larger_than_the_window_costs_no_turn() -> None:
    memory = memory_in(SqliteStateStore(), MemoryWindow(max_tokens=400))
    for text, received in (("small", 0), ("large" * 2000, 0), ("next", 4)):
        assert len(await answered(memory, text, "well")) == received


async def test_a_smaller_window_cuts_what_a_larger_one_has_stored_once() -> None:
    # After a change of the setting, or while another process has not seen it yet.
    store = SqliteStateStore()
    large, small = (memory_in(store, MemoryWindow(max_tokens=tokens)) for tokens in (4000, 400))
    for _ in range(100):
        await answered(large, "what" * 10, "well" * 10)
    received = [len(await answered(memory, "what" * 10, "well" * 10)) for memory in (small, large, small, large)]
    assert received == [20, 22, 24, 26]


UNREADABLE = [
    *(b"\xff", b"[", b"5", b'{"a":1}', b'[["user"]]', b"[" * 5000 + b"]" * 5000),
    *(b'[[{"role":"user","version":1}]]', b'[[{"role":"developer","text":"","version":1}]]'),
    b'[[{"role":"assistant","text":"","tool_calls":[{"name":"x"}],"version":1}]]',
    *(b"[[]]", b'[[{"role":"user","text":""}]]', b'[[{"role":"user","text":"","version":"1"}]]'),
    b'[[{"role":"assistant","text":"","trace":[],"version":1}]]',
]


@pytest.mark.parametrize("value", UNREADABLE, ids=lambda value: value[:40].decode("latin-1"))
async def test_an_unreadable_conversation_is_unavailable_until_it_is_deleted(value: bytes) -> None:
    # Foreign bytes under the key are neither taken for a conversation nor silently replaced.
    store = SqliteStateStore()
    memory = memory_in(store)
    await store.put("memory:s", value, ttl=60)

    with pytest.raises(StoreUnavailable, match="DELETE"):
        await memory.turns("s")
    await memory.delete("s")
    assert await memory.turns("s") == ()


async def test_a_turn_whose_lock_was_lost_is_not_stored() -> None:
    # The turn of the one who took over stands.
    store = SqliteStateStore()
    memory = memory_in(store)
    question, answer = UserMessage("who?"), AssistantMessage("the second")
    async with memory.open_turn("s") as late:
        await store.unlock(late.lock)
        async with memory_in(store).open_turn("s") as second:
            await second.save((question, answer), "{}")
        with pytest.raises(SessionBusy, match="not stored"):
            await late.save((question, AssistantMessage("the late one")))

    assert await memory.turns("s") == (Turn((question, answer), "{}"),)


async def test_a_turn_that_another_process_has_stored_since_is_read() -> None:
    # A process keeps the turns that it stored last; they count only as long as the store has the same bytes.
    store = SqliteStateStore()
    one, other = memory_in(store), memory_in(store)
    for memory, answer in ((one, "first"), (other, "second")):
        async with memory.open_turn("s") as turn:
            await turn.save((UserMessage("who?"), AssistantMessage(answer)))

    assert [str(turn.messages[-1].text) for turn in await one.turns("s")] == ["first", "second"]  # type: ignore[union-attr]


async def test_what_a_process_keeps_of_the_turns_that_it_stored_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_module, "_MAX_SAVED_BYTES", 20_000)
    memory = memory_in(SqliteStateStore())
    for _ in range(2):
        for number in range(30):
            async with memory.open_turn(f"s-{number}") as turn:
                await turn.save((UserMessage("x" * 900), AssistantMessage("well")))
    kept = [len(each.record) for *_, turns in memory._saved.values() for each in turns]
    assert 15_000 < sum(kept) == memory._saved_bytes <= 20_000
    assert [len(await memory.turns(f"s-{number}")) for number in (0, 29)] == [2, 2]


class TakenOver(SqliteStateStore):
    """A store in which somebody takes a lock over right before something is forgotten under it."""

    async def delete(self, *keys: str, lock: Lock | None = None) -> bool:
        if lock is not None:
            await self.unlock(lock)
            await self.try_lock(lock.key, ttl=60)
        return await super().delete(*keys, lock=lock)


async def test_a_conversation_whose_lock_was_lost_is_not_deleted() -> None:
    # Its new turn would otherwise bring the conversation back after it was said to be gone.
    memory = memory_in(TakenOver())
    async with memory.open_turn("s") as turn:
        await turn.save((UserMessage("who?"), AssistantMessage("me")))

    with pytest.raises(SessionBusy, match="nothing was deleted"):
        await memory.delete("s")
    assert len(await memory.turns("s")) == 1
