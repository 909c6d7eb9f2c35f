"""Limits of calls: for one message, for all rounds of a question, and by the settings."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.chat.played import asked, asks, clock, says as says_it
from tests.chat.scripted import calls, client_of, says
from tests.tool_calling.calls import EMPTY, call, executing
from toolchat.messages import AssistantMessage
from toolchat.models.base import Prompt
from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.definition import ToolDefinition, ToolMetadata, tool
from toolchat.tool_calling.errors import ToolDefinitionError
from toolchat.tool_calling.events import ToolCallFinished
from toolchat.tool_calling.function_callback import FunctionToolCallback
from toolchat.tool_calling.limits import CallCounter, ToolCallLimits
from toolchat.tool_calling.manager import ToolCallingManager


@pytest.mark.parametrize(
    ("limits", "kind"),
    [
        (ToolCallLimits(in_total=2), "limit"),
        (ToolCallLimits(per_tool=2), "limit"),
        (ToolCallLimits(identical=2), "repeated-call"),
    ],
)
async def test_a_call_beyond_a_limit_is_refused_and_not_run(limits: ToolCallLimits, kind: str) -> None:
    runs = 0

    async def counted(number: int = 0) -> None:
        nonlocal runs
        runs += 1

    texts = ('{"number":1}', '{ "number": 1 }', '{"number":1}')
    asked = [call("counted", text, str(place)) for place, text in enumerate(texts)]
    events = await executing(*asked, tools=[counted], counter=CallCounter(limits))
    ended = {event.call.id: event.error_kind for event in events if isinstance(event, ToolCallFinished)}
    assert runs == 2
    assert ended == {"0": None, "1": None, "2": kind}


@dataclass
class Remote(ToolCallback):
    """A tool whose code is elsewhere, so that only its schema says what its arguments mean."""

    paid: list[str] = field(default_factory=list)
    metadata = ToolMetadata()
    definition = ToolDefinition(
        "pay", "Pay", {"properties": {"n": {"type": "integer"}, "to": {"type": "string", "default": "ann"}}}
    )

    async def call(self, tool_input: str, context: ToolContext) -> str:
        self.paid.append(tool_input)
        return "paid"


@pytest.mark.parametrize("remote", [False, True])
async def test_a_call_is_the_same_however_the_model_writes_it(remote: bool) -> None:
    tool = Remote()

    async def pay(n: int, to: str = "ann") -> str:
        return await tool.call("", EMPTY)

    same = ['{"n":1}', '{"n":1.0}', '{"n":"1"}', '"{\\"n\\":1}"', '{"n":1,"to":"ann"}', '```json\n{"n":1}\n```']
    other = ['{"n":2}', '{"n":1,"to":"bob"}', '{"n":"x"}']
    asked = [call("pay", text, text) for text in same + other]
    events = await executing(
        *asked, tools=[tool if remote else pay], counter=CallCounter(ToolCallLimits(identical=1)), max_concurrency=1
    )
    kinds = {each.call.id: each.error_kind for each in events if isinstance(each, ToolCallFinished)}
    assert [kinds[text] for text in same] == [None, *["repeated-call"] * 5]
    assert "repeated-call" not in [kinds[text] for text in other]
    assert len(tool.paid) == (4 if remote else 3)


@pytest.mark.parametrize("limits", [{"per_tool": "3"}, {"rounds": -1}, {"identical": 1.5}])
def test_a_limit_that_is_no_number_is_refused(limits: Any) -> None:
    with pytest.raises(ToolDefinitionError, match=r"^\w+ must be a whole number of at least 0$"):
        ToolCallLimits(**limits)


@pytest.mark.parametrize(
    "settings", [{"timeout": "3"}, {"timeout": 0}, {"max_concurrency": 0}, {"max_result_chars": -1}]
)
def test_a_managers_setting_that_is_no_number_is_refused(settings: Any) -> None:
    with pytest.raises(ToolDefinitionError, match=r"^\w+ must be a (whole )?number of at least "):
        ToolCallingManager(**settings)


OWN = {"max_calls": 5, "max_identical_calls": 6}


@pytest.mark.parametrize(
    ("own", "limits", "allowed", "kind"),
    [
        (OWN, ToolCallLimits(per_tool=2, identical=2), 5, "limit"),
        (OWN, ToolCallLimits(per_tool=9), 5, "limit"),
        (OWN, ToolCallLimits(in_total=4), 4, "limit"),
        ({"max_identical_calls": 4}, ToolCallLimits(identical=2), 4, "repeated-call"),
        ({"max_identical_calls": 1}, ToolCallLimits(identical=2), 1, "repeated-call"),
    ],
)
async def test_a_tools_own_limit_replaces_the_services_and_not_the_limit_in_total(
    own: Any, limits: ToolCallLimits, allowed: int, kind: str
) -> None:
    @tool(**own)
    async def status() -> str:
        return "running"

    asked = [call("status", "", str(number)) for number in range(6)]
    events = await executing(*asked, tools=[status], counter=CallCounter(limits))
    kinds = {each.call.id: each.error_kind for each in events if isinstance(each, ToolCallFinished)}
    assert [kinds[each.id] for each in asked] == [None] * allowed + [kind] * (6 - allowed)


@pytest.mark.parametrize(
    ("limits", "kinds"),
    [
        (ToolCallLimits(in_total=2), [None, None, "limit"]),
        (ToolCallLimits(per_tool=1), [None, "limit", None, "limit"]),
        (ToolCallLimits(identical=1), [None, None, None, "repeated-call"]),
    ],
)
async def test_limits_hold_over_all_rounds_of_a_question(limits: ToolCallLimits, kinds: list[str | None]) -> None:
    turns = [calls(("add", '{"a":1,"b":1}'), ("add", '{"a":1,"b":2}')), calls(("twice", '{"a":1}'))]

    async def twice(a: int) -> int:
        return 2 * a

    def last(prompt: Prompt) -> AssistantMessage:
        return calls(("add", '{"b":1,"a":1}')) if prompt.tools else says("done")

    client, _ = client_of(*turns, last, max_rounds=9, limits=limits)
    response = await client.prompt("?").tools("add", FunctionToolCallback.from_function(twice)).call().response()
    assert [each.error_kind for each in response.executions] == kinds


async def test_the_settings_bound_a_question_over_http() -> None:
    cities = [asks(clock(zone)) for zone in ("Asia/Tokyo", "Europe/Paris", "UTC")]
    document, _ = await asked(*cities, says_it("Enough."), path="/time/chat-tool-function", TOOL_MAX_CALLS="2")
    assert [each.get("error_kind") for each in document["tool_calls"]] == [None, None, "limit"]
