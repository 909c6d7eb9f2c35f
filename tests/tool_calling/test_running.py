"""Running tool calls: what a model asks for, what the tool is given, what the model is told."""

import asyncio
import base64
import contextvars
import datetime
import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from pydantic_core import from_json, to_json

from app.chat_models.base import Prompt
from app.errors import ToolFailed, UpstreamTimeout
from app.messages import AssistantMessage, ToolCall, ToolResponseMessage, UserMessage
from app.tool_calling.callback import ToolCallback
from app.tool_calling.errors import ToolArgumentsError, ToolExecutionError
from app.tool_calling.events import ToolCallFinished
from app.tool_calling.exception_processor import ToolExecutionExceptionProcessor
from app.tool_calling.function_callback import FunctionToolCallback, tool
from app.tool_calling.limits import ToolCallLimits
from app.tool_calling.manager import ToolCallingManager, ToolExecutionResult
from app.tool_calling.result_converter import quoted_result
from tests.chat.scripted import calls, client_of, says
from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, message, whole
from tests.serving import service

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


async def run(
    *asked: ToolCall | tuple[str, str], tools: list[Callable[..., Any]], manager: ToolCallingManager | None = None
) -> ToolExecutionResult:
    """Run calls as a caller does who controls the loop himself."""
    asking = AssistantMessage(
        tool_calls=tuple(
            each if isinstance(each, ToolCall) else ToolCall(f"call_{number}", *each)
            for number, each in enumerate(asked)
        )
    )
    callbacks: list[ToolCallback] = [FunctionToolCallback.of(each) for each in tools]
    return await (manager or ToolCallingManager()).execute_tool_calls([UserMessage("?")], asking, callbacks)


async def only(*asked: tuple[str, str], tools: list[Callable[..., Any]], **settings: Any) -> ToolCallFinished:
    return (await run(*asked, tools=tools, manager=ToolCallingManager(**settings))).executions[0]


@pytest.mark.parametrize("name", ["nothing", "default_api:ping", "PING", "", "p" * 300, "ping\n"])
async def test_a_name_that_was_not_offered_runs_nothing_and_leaves_the_log_clean(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    ran: list[str] = []

    async def ping() -> None:
        ran.append("ping")

    with caplog.at_level(logging.INFO):
        finished = await only((name, "{}"), tools=[ping])
    assert (finished.outcome, finished.error_kind, ran) == ("error", "unknown-tool", [])
    assert caplog.records == []


async def test_a_question_goes_on_after_an_unknown_tool() -> None:
    client, model = client_of(calls(("default_api:add", '{"a":1,"b":2}')), calls(("add", '{"a":1,"b":2}')), says("3"))
    response = await client.prompt("1+2?").tools("add").call().response()
    assert [each.error_kind for each in response.executions] == ["unknown-tool", None]
    assert response.message.text == "3"
    assert len(model.prompts) == 3


async def test_three_calls_at_once_take_as_long_as_the_slowest_and_answer_in_order() -> None:
    async def good() -> str:
        await asyncio.sleep(0.05)
        return "good"

    async def bad() -> None:
        await asyncio.sleep(0.1)
        raise ValueError

    @tool(timeout=0.2)
    async def stuck() -> None:
        await asyncio.Event().wait()

    before = time.perf_counter()
    result = await run(("stuck", ""), ("bad", ""), ("good", ""), tools=[good, bad, stuck])
    assert time.perf_counter() - before < 0.3
    assert [each.error_kind for each in result.executions] == ["timeout", "failed", None]
    *_, responses = result.conversation_history
    assert isinstance(responses, ToolResponseMessage)
    assert [each.id for each in responses.responses] == ["call_0", "call_1", "call_2"]


async def test_two_calls_with_one_id_and_name_are_both_run_and_answered() -> None:
    async def echo(text: str) -> str:
        return text

    twice = [ToolCall("same", "echo", f'{{"text": "{text}"}}') for text in ("a", "b")]
    result = await run(*twice, tools=[echo])
    assert [each.result for each in result.executions] == ["a", "b"]


@pytest.mark.parametrize("arguments", ["", " ", "\n\t", "{}", "null"])
async def test_no_arguments_run_a_tool_without_parameters(arguments: str) -> None:
    async def ping() -> str:
        return "pong"

    assert (await only(("ping", arguments), tools=[ping])).result == "pong"


@pytest.mark.parametrize(
    "arguments",
    ["{", '{"text": "a"', "{'text': 'a'}", '{"text": "a"} {"text": "b"}', '{"text": "a"}x', '{"text": }',
     '{"text": ' + "[" * 1_100, "[" * 100_000, '{"text": ' + "9" * 5_000 + "}", "[]", '"text"', "3", "true",
     '{"text": null}', '{"text": 1}', '{"Text": "a"}', '{"text": "a", "b": 1}', "x", "\x00", '{"text": "\\ud800"}'],
)  # fmt: skip
async def test_arguments_that_do_not_fit_run_nothing_and_are_told_to_the_model(arguments: str) -> None:
    ran: list[str] = []

    async def echo(text: str) -> None:
        ran.append(text)

    finished = await only(("echo", arguments), tools=[echo])
    assert (finished.error_kind, ran) == ("invalid-arguments", [])
    assert from_json(finished.result)["error"]["message"]
    assert len(finished.result) < 1000


@pytest.mark.parametrize("blocking", [False, True])
@pytest.mark.parametrize(
    "error",
    [ValueError("secret"), KeyError("secret"), TimeoutError("secret"), asyncio.CancelledError("secret"),
     SystemExit("secret"), MemoryError("secret"), ExceptionGroup("secret", [ValueError("secret")])],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
async def test_an_exceptions_text_stays_in_the_log_and_the_other_calls_go_on(
    error: BaseException, blocking: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def raises_in_thread() -> None:
        raise error

    async def raises() -> None:
        raise error

    async def fine() -> str:
        return "fine"

    broken = raises_in_thread if blocking else raises
    result = await run((broken.__name__, ""), ("fine", ""), tools=[broken, fine])
    assert result.executions[0].result == '{"error":{"kind":"failed","message":"the tool failed"}}'
    assert result.executions[1].result == "fine"
    (record,) = caplog.records
    assert record.exc_info is not None
    assert type(record.exc_info[1]) is type(error)
    assert "secret" not in record.getMessage()


async def test_a_failing_tool_can_end_the_question() -> None:
    async def raises() -> None:
        raise ValueError("secret")

    strict = ToolCallingManager(exception_processor=ToolExecutionExceptionProcessor(always_throw=True))
    for asked in ([("raises", "")], [("raises", ""), ("raises", "{}")]):
        with pytest.raises(ToolFailed, match=r"^raises: the tool failed$"):
            await run(*asked, tools=[raises], manager=strict)
    wrong = await run(("raises", '{"a": 1}'), ("nothing", ""), tools=[raises], manager=strict)
    assert [each.error_kind for each in wrong.executions] == ["invalid-arguments", "unknown-tool"]


async def test_chosen_exceptions_reach_the_caller_as_they_are() -> None:
    error = PermissionError("not yours")

    async def raises() -> None:
        raise error

    manager = ToolCallingManager(exception_processor=ToolExecutionExceptionProcessor(rethrow=(OSError,)))
    with pytest.raises(PermissionError) as caught:
        await run(("raises", ""), tools=[raises], manager=manager)
    assert caught.value is error


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ToolExecutionError("no such city", kind="no-such-city"), ("no-such-city", "no such city")),
        (ToolArgumentsError("city: too long"), ("invalid-arguments", "city: too long")),
        (UpstreamTimeout("the service did not answer"), ("upstream-timeout", "the service did not answer")),
        (LookupError("secret"), ("failed", "the tool failed")),
    ],
)
def test_what_the_model_is_told_depends_on_who_wrote_the_text(error: Exception, told: tuple[str, str]) -> None:
    processed = ToolExecutionExceptionProcessor().process(error, "tool")
    assert (processed.kind, processed.message) == told


@pytest.mark.parametrize(
    ("result", "told"),
    [
        ("text", '"text"'),
        (None, '"Done"'),
        ({"a": 1}, '{"a":1}'),
        (datetime.date(2026, 11, 20), '"2026-11-20"'),
    ],
)
async def test_a_tool_may_quote_its_text_as_spring_ai_does(result: object, told: str) -> None:
    @tool(result_converter=quoted_result)
    async def give() -> object:
        return result

    assert (await only(("give", ""), tools=[give])).result == told


async def test_a_tool_may_bring_its_own_form_of_result() -> None:
    def as_table(result: Any) -> str:
        return "\n".join(f"{key} | {value}" for key, value in result.items())

    @tool(result_converter=as_table)
    async def give() -> Mapping[str, int]:
        return {"a": 1, "b": 2}

    assert (await only(("give", ""), tools=[give])).result == "a | 1\nb | 2"


async def test_a_converter_that_fails_is_a_tool_that_fails() -> None:
    @tool(result_converter=lambda result: result.nothing)
    async def give() -> int:
        return 1

    assert (await only(("give", ""), tools=[give])).error_kind == "failed"


async def test_the_bytes_of_an_image_become_its_type_and_data() -> None:
    async def draw() -> bytes:
        return PNG

    told = from_json((await only(("draw", ""), tools=[draw])).result)
    assert told["mimeType"] == "image/png"
    assert base64.b64decode(told["data"]) == PNG


@pytest.mark.parametrize("blocking", [False, True])
async def test_every_parallel_call_sees_the_callers_context_variables_and_changes_only_its_own(blocking: bool) -> None:
    tenant: contextvars.ContextVar[str] = contextvars.ContextVar("tenant")
    tenant.set("acme")

    def blocks(number: int) -> str:
        seen = tenant.get()
        tenant.set(f"call {number}")
        return f"{seen} {threading.current_thread() is threading.main_thread()}"

    async def awaits(number: int) -> str:
        return blocks(number)

    chosen = blocks if blocking else awaits
    asked = [(chosen.__name__, f'{{"number": {number}}}') for number in range(6)]
    result = await run(*asked, tools=[chosen], manager=ToolCallingManager(max_concurrency=3))
    assert {each.result for each in result.executions} == {f"acme {not blocking}"}
    assert tenant.get() == "acme"


async def test_a_huge_result_is_cut_and_twenty_more_turns_stay_small() -> None:
    async def huge(page: int) -> str:
        return "长" * 5_000_000

    tools = [FunctionToolCallback.of(huge)]
    turns = [calls(("huge", f'{{"page": {page}}}')) for page in range(20)]
    client, model = client_of(*turns, says("read"), max_rounds=30, max_result_chars=1000)
    assert await client.prompt("?").tools(*tools).call().content() == "read"
    assert len(model.prompts) == 21
    assert len(repr(model.prompts[-1].messages).encode()) < 20 * 3 * 1100 + 5000


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
    response = await client.prompt("?").tools("add", FunctionToolCallback.of(twice)).call().response()
    assert [each.error_kind for each in response.executions] == kinds


def restless(request: PlayedRequest) -> Answer:
    """A model that asks for the time of one more city as long as it is offered tools; London twice."""
    zones = ["Europe/London", "Europe/London", "Asia/Tokyo", "Europe/Paris", "Asia/Shanghai", "UTC"]
    answered = sum(each["role"] == "tool" for each in request.body["messages"])
    if not request.body.get("tools"):
        return whole(message(content="Enough."))
    arguments = to_json({"timeZoneId": zones[answered % len(zones)]}).decode()
    function = {"name": "getCityTimeFunction", "arguments": arguments}
    call = {"id": f"call_{answered}", "type": "function", "function": function}
    return whole(message("tool_calls", tool_calls=[call]))


@pytest.mark.parametrize(
    ("variable", "kinds"),
    [
        ("TOOL_MAX_CALLS", [None, None, "limit"]),
        ("TOOL_MAX_CALLS_PER_TOOL", [None, None, "limit"]),
        ("TOOL_MAX_ROUNDS", [None, None]),
    ],
)
async def test_the_settings_bound_a_question_over_http(variable: str, kinds: list[str | None]) -> None:
    async with OpenAIPlayer(restless) as player, service(OPENAI_BASE_URL=player.base_url, **{variable: "2"}) as client:
        answer = await client.get("/time/chat-tool-function", headers={"Accept": "application/json"})
    assert answer.status_code == 200
    assert answer.json()["answer"] == "Enough."
    assert [each.get("error_kind") for each in answer.json()["tool_calls"]] == kinds
