"""A stream's text is held back only while it may still become calls."""

from collections.abc import Sequence
from unittest.mock import Mock

import pytest
from hypothesis import example, given, settings, strategies as st

from tests.models.leaks import LEAKS, Leak
from tests.models.responding import Told, events_of, streamed_text
from tests.models.test_leaked_calls import CALL, TEXTS, TOOLS, offered_for
from toolchat.messages import AssistantMessage, ToolCall, Usage, UserMessage
from toolchat.models import leaked_calls
from toolchat.models.base import ChatModel, ChatOptions, ChatResponse, EmitModelEvent, Progress, Prompt, TextDelta
from toolchat.models.leaked_calls import respond_reading_calls
from toolchat.tool_calling.definition import ToolDefinition


class Writing(ChatModel):
    """Writes an answer piece by piece."""

    provider = name = "writing"

    def __init__(self, pieces: Sequence[str], reason: str = "stop", calls: tuple[ToolCall, ...] = ()) -> None:
        self._pieces = pieces
        self._response = ChatResponse(AssistantMessage("".join(pieces), calls), reason, Usage(), "writing")

    async def respond(self, prompt: Prompt, emit: EmitModelEvent) -> ChatResponse:
        return await respond_reading_calls(self._write, prompt, emit)

    async def _write(self, prompt: Prompt, emit: EmitModelEvent) -> ChatResponse:
        for piece in self._pieces if prompt.stream else ():
            await emit(TextDelta(piece))
        return self._response


def asked(tools: Sequence[ToolDefinition] = TOOLS, options: ChatOptions | None = None) -> Prompt:
    return Prompt((UserMessage("What is it?"),), tuple(tools), options or ChatOptions(), stream=True)


async def written(*pieces: str, prompt: Prompt | None = None, reason: str = "stop") -> tuple[list[Told], ChatResponse]:
    *events, response = await events_of(Writing(pieces, reason), prompt or asked())
    assert isinstance(response, ChatResponse)
    assert streamed_text(events) == response.message.text
    return events, response


def cut(text: str, at: list[int]) -> list[str]:
    places = sorted({place % (len(text) + 1) for place in at})
    return [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]


@settings(max_examples=300)
@given(st.sampled_from(LEAKS), st.lists(st.integers(0, 600), max_size=12))
async def test_a_leak_is_read_however_it_is_cut(leak: Leak, at: list[int]) -> None:
    events, response = await written(*cut(leak.text, at), prompt=asked(offered_for(leak)))
    assert [call.name for call in response.message.tool_calls] == [name for name, _ in leak.calls]
    assert (response.finish_reason, streamed_text(events)) == ("tool_calls", "")


@pytest.mark.parametrize("leak", LEAKS, ids=lambda leak: leak.source.partition("//")[2])
async def test_a_leak_is_read_character_by_character(leak: Leak) -> None:
    _, response = await written(*leak.text, prompt=asked(offered_for(leak)))
    assert len(response.message.tool_calls) == len(leak.calls)


@settings(max_examples=300)
@given(st.one_of(st.sampled_from(TEXTS), st.text()), st.lists(st.integers(0, 600), max_size=12))
@example(CALL + " is what I would call.", [3, 20, 58])
async def test_every_other_text_is_shown_unchanged(text: str, at: list[int]) -> None:
    events, response = await written(*cut(text, at))
    assert (streamed_text(events), response.message.text, response.message.tool_calls) == (text, text, ())
    assert response.finish_reason == "stop"


@given(st.lists(st.text(min_size=1), min_size=1), st.sampled_from("AHIWtxу好 1#*-"))
async def test_an_answer_that_begins_with_a_letter_is_shown_piece_by_piece(pieces: list[str], first: str) -> None:
    pieces = [f"{first}x{pieces[0]}", *pieces[1:]]
    events, _ = await written(*pieces)
    assert [event.text for event in events if isinstance(event, TextDelta)] == pieces
    assert len(events) == len(pieces)


@pytest.mark.parametrize(
    ("begin", "held"),
    [
        ('{"city', True),
        ('{"city"', False),
        ('{"name": "get_we', True),
        ('{"name": "Alice"', False),
        ('{"arguments": {"name": "Alice"', True),
        ("{ x", False),
        ("[1", False),
        ("[T", True),
        ("[Te", False),
        ("<", True),
        ("<tool", True),
        ("<b>", False),
        ("```", True),
        ("```python\nprint(", False),
        ("```json\n", True),
        ('```json\n{"city"', False),
        ("functo", True),
        ("function", False),
        ("for", False),
        ("[TOOL_CALLS]get_", True),
        ("[TOOL_CALLS]no_such_tool[ARGS]", False),
        ("<function=no_such_tool>", False),
        (f"{CALL}\n", True),
        (f"{CALL}\nThat is the call that I would make here, in words.", False),
    ],
)
async def test_the_beginning_decides_how_long_a_text_is_held_back(begin: str, held: bool) -> None:
    events, _ = await written(*begin, "", "")
    before_the_end = events[:-1] if held else events
    assert any(isinstance(event, TextDelta) for event in before_the_end) is not held
    assert all(isinstance(event, Progress | TextDelta) for event in events)


async def test_an_uncertain_text_is_held_back_for_a_few_hundred_characters() -> None:
    pieces = ['{"arguments": {"text": "', *["word "] * 200]
    events, _ = await written(*pieces)
    first = next(event.text for event in events if isinstance(event, TextDelta))
    assert 300 < len(first) < 500


async def test_a_certain_call_is_held_back_to_its_end_and_rarely_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Mock(side_effect=leaked_calls._state)
    monkeypatch.setattr(leaked_calls, "_state", looks)
    long = '{"name": "get_weather", "arguments": {"text": "' + "word " * 20_000
    events, response = await written(*[long[at : at + 7] for at in range(0, len(long), 7)], '"}}')
    assert streamed_text(events) == ""
    assert [call.name for call in response.message.tool_calls] == ["get_weather"]
    assert looks.call_count < 100


async def test_a_whole_answer_is_read_as_well() -> None:
    *_, response = await events_of(Writing([CALL]), Prompt((), tuple(TOOLS)))
    assert isinstance(response, ChatResponse)
    assert (response.message.text, response.finish_reason) == ("", "tool_calls")


@pytest.mark.parametrize("reason", ["length", "content_filter", "incomplete"])
async def test_a_cut_answer_stays_text(reason: str) -> None:
    _, response = await written(CALL, reason=reason)
    assert (response.message.text, response.finish_reason) == (CALL, reason)


async def test_without_tools_or_with_a_response_format_nothing_is_held_back() -> None:
    formatted = ChatOptions(response_format={"type": "json_object"})
    for prompt in (asked(()), asked(options=formatted)):
        events, response = await written(CALL[:9], CALL[9:], prompt=prompt)
        assert events == [TextDelta(CALL[:9]), TextDelta(CALL[9:])]
        assert response.message.tool_calls == ()


async def test_text_beside_a_real_call_stays_text() -> None:
    call = ToolCall("1", "get_time", "{}")
    *events, response = await events_of(Writing([CALL], "tool_calls", (call,)), asked())
    assert isinstance(response, ChatResponse)
    assert (streamed_text(events), response.message.tool_calls) == (CALL, (call,))


async def test_a_call_behind_reasoning_without_a_beginning_is_read() -> None:
    events, response = await written("I should ", "look.\n", "</think>", "\n\n", *CALL)
    assert streamed_text(events) == response.message.text == "I should look.\n</think>"
    assert [call.name for call in response.message.tool_calls] == ["get_weather"]


async def test_an_answer_behind_reasoning_without_a_beginning_is_shown() -> None:
    events, response = await written("I should ", "look.\n", "</think>", "\n\nIt ", "rains.")
    assert [event.text for event in events if isinstance(event, TextDelta)][-2:] == ["\n\nIt ", "rains."]
    assert response.message.tool_calls == ()
