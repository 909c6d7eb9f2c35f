"""Taking control: running calls oneself, asking for consent, typed answers, advisors."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest
from pydantic import BaseModel

from app.chat.advisors import Advisor, AdvisorChain, BaseAdvisor
from app.chat.client import ChatClient
from app.chat.request import Approval, ChatRequest
from app.chat.tool_calling_advisor import APPROVAL_REQUIRED
from app.chat_models.base import ChatOptions, ChatResponse, Prompt, TextDelta
from app.errors import UpstreamInvalid
from app.messages import AssistantMessage, Message, SystemMessage, ToolResponseMessage, UserMessage
from app.tool_calling.events import ToolCallFinished, ToolCallStarted
from app.tool_calling.function_callback import FunctionToolCallback, tool
from app.tool_calling.manager import ToolCallingManager
from tests.chat.scripted import ADD, ScriptedChatModel, Turn, add, calls, client_of, receipt, says

BY_HAND = ChatOptions(internal_tool_execution_enabled=False)
SHIP_1, SHIP_2 = ("ship", '{"number":1}'), ("ship", '{"number":2}')


class City(BaseModel):
    name: str
    people: int


@dataclass
class Dock:
    """A tool that needs consent, and what it has done."""

    shipped: list[int]

    @tool(requires_approval=True)
    async def ship(self, number: int) -> str:
        """Ship an order."""
        self.shipped.append(number)
        return f"shipped {number}"


def told(prompt: Prompt) -> list[str]:
    """The tool results at the end of what the model was given."""
    last = prompt.messages[-1]
    assert isinstance(last, ToolResponseMessage)
    return [each.text for each in last.responses]


async def paused_at(*turns: Turn, dock: Dock) -> tuple[ChatClient, ScriptedChatModel, ChatResponse]:
    client, model = client_of(*turns)
    response = await client.prompt("Ship").tools(dock, "add").call().response()
    assert response.finish_reason == APPROVAL_REQUIRED
    return client, model, response


async def test_a_caller_may_run_the_calls_himself_round_by_round() -> None:
    client, model = client_of(calls(ADD), calls(("add", '{"a":3,"b":3}')), says("6"))
    tools, messages = [FunctionToolCallback.of(add)], (UserMessage("1+2+3?"),)
    conversation: tuple[Message, ...] = messages
    response = await client.prompt().messages(conversation).tools(*tools).options(BY_HAND).call().response()
    rounds = 1
    while response.has_tool_calls:
        assert response.executions == ()
        executed = await ToolCallingManager().execute_tool_calls(response.history, response.message, tools)
        conversation = executed.conversation_history
        response = await client.prompt().messages(conversation).tools(*tools).options(BY_HAND).call().response()
        rounds += 1
    assert (response.message.text, rounds) == ("6", 3)
    assert told(model.prompts[1]) == ["3"]
    assert told(model.prompts[2]) == ["6"]
    assert model.prompts[2].messages[0] == UserMessage("1+2+3?")


async def test_a_stream_gives_the_calls_to_the_caller_too() -> None:
    client, _ = client_of(calls(ADD))
    events = [event async for event in client.prompt("?").tools("add").options(BY_HAND).stream().events()]
    assert isinstance(events[-1], ChatResponse)
    assert [call.name for call in events[-1].message.tool_calls] == ["add"]
    assert not [event for event in events if isinstance(event, ToolCallStarted | ToolCallFinished)]


async def test_running_calls_by_hand_tells_when_the_result_is_the_answer() -> None:
    manager, tools = ToolCallingManager(), [FunctionToolCallback.of(receipt), FunctionToolCallback.of(add)]
    direct = await manager.execute_tool_calls([], calls(("receipt", '{"number":1}')), tools)
    mixed = await manager.execute_tool_calls([], calls(("receipt", '{"number":1}'), ADD), tools)
    assert (direct.return_direct, mixed.return_direct) == (True, False)


@pytest.mark.parametrize(("limit", "executed"), [(2, ["3"]), (9, ["3", "3"])])
async def test_an_eligibility_of_ones_own_decides_about_every_response(limit: int, executed: list[str]) -> None:
    seen: list[bool] = []

    def first_few(request: ChatRequest, response: ChatResponse) -> bool:
        seen.append(response.has_tool_calls)
        return len(seen) < limit

    client, _ = client_of(calls(ADD), calls(ADD), says("3"), eligibility=first_few)
    response = await client.prompt("?").tools("add").call().response()
    assert [each.result for each in response.executions] == executed
    assert response.has_tool_calls == (limit == 2)
    assert seen == [True, True]


async def test_a_call_that_needs_consent_pauses_the_question_and_runs_nothing() -> None:
    dock = Dock([])
    _, model, paused = await paused_at(calls(ADD, SHIP_1), dock=dock)
    assert dock.shipped == []
    assert paused.executions == ()
    assert [call.name for call in paused.message.tool_calls] == ["add", "ship"]
    assert len(model.prompts) == 1


async def test_a_stream_pauses_too_and_can_go_on_as_a_stream() -> None:
    dock = Dock([])
    client, _ = client_of(calls(SHIP_1), says("done"))
    *others, paused = [event async for event in client.prompt("Ship").tools(dock).stream().events()]
    assert isinstance(paused, ChatResponse)
    assert (paused.finish_reason, others, dock.shipped) == (APPROVAL_REQUIRED, [], [])
    going_on = client.resume(paused, {"call_0": Approval(True)}).tools(dock).stream().events()
    kinds = [type(event) async for event in going_on]
    assert kinds == [ToolCallStarted, ToolCallFinished, *[TextDelta] * 4, ChatResponse]
    assert dock.shipped == [1]


@pytest.mark.parametrize(
    ("approvals", "shipped", "results"),
    [
        ({"call_0": Approval(True), "call_1": Approval(True)}, [1, 2], ["shipped 1", "shipped 2"]),
        (
            {"call_0": Approval(True), "call_1": Approval(False, "too early")},
            [1],
            ["shipped 1", '{"error":{"kind":"rejected","message":"too early"}}'],
        ),
        (
            {"call_1": Approval(True)},
            [2],
            ['{"error":{"kind":"rejected","message":"the user rejected this call"}}', "shipped 2"],
        ),
        (
            {"call_0": Approval(True, arguments='{"number":7}'), "call_1": Approval(True)},
            [7, 2],
            ["shipped 7", "shipped 2"],
        ),
        ({"other": Approval(True)}, [], ['{"error":{"kind":"rejected","message":"the user rejected this call"}}'] * 2),
        ({}, [], ['{"error":{"kind":"rejected","message":"the user rejected this call"}}'] * 2),
    ],
    ids=["approved", "rejected with a reason", "one decision missing", "changed", "another id", "none"],
)
async def test_the_decisions_say_what_runs_and_what_the_model_is_told(
    approvals: Mapping[str, Approval], shipped: list[int], results: list[str]
) -> None:
    dock = Dock([])
    client, model, paused = await paused_at(calls(SHIP_1, SHIP_2), says("done"), dock=dock)
    response = await client.resume(paused, approvals).tools(dock, "add").call().response()
    assert sorted(dock.shipped) == sorted(shipped)
    assert told(model.prompts[1]) == results
    assert (response.message.text, response.finish_reason) == ("done", "stop")


async def test_changed_arguments_stand_in_the_conversation_and_are_checked() -> None:
    dock = Dock([])
    client, model, paused = await paused_at(calls(SHIP_1), says("done"), dock=dock)
    changed = {"call_0": Approval(True, arguments='{"number":"none"}')}
    response = await client.resume(paused, changed).tools(dock).call().response()
    assert response.executions[0].error_kind == "invalid-arguments"
    assert dock.shipped == []
    assert model.prompts[1].messages[-2] == calls(("ship", '{"number":"none"}'))


async def test_an_id_that_comes_again_is_not_approved_by_the_decision_before() -> None:
    dock = Dock([])
    client, _, paused = await paused_at(calls(SHIP_1), calls(SHIP_2), says("done"), dock=dock)
    again = await client.resume(paused, {"call_0": Approval(True)}).tools(dock).call().response()
    assert again.finish_reason == APPROVAL_REQUIRED
    assert [call.arguments for call in again.message.tool_calls] == ['{"number":2}']
    assert dock.shipped == [1]
    done = await client.resume(again, {"call_0": Approval(False)}).tools(dock).call().response()
    assert (done.message.text, dock.shipped) == ("done", [1])


async def test_a_paused_question_can_only_run_tools_that_are_offered_again() -> None:
    dock = Dock([])
    client, _, paused = await paused_at(calls(SHIP_1), says("sorry"), dock=dock)
    response = await client.resume(paused, {"call_0": Approval(True)}).call().response()
    assert response.executions[0].error_kind == "unknown-tool"
    assert dock.shipped == []


async def test_system_messages_and_default_tools_make_the_prompt() -> None:
    client, model = client_of(says("ok"))
    client = replace(client, default_tools=(FunctionToolCallback.of(add),))
    await client.prompt("?").call().content()
    await client.prompt("?").system("Be long.").tools("receipt").call().content()
    await client.prompt("?").system("").call().content()
    talk = (UserMessage("a"), AssistantMessage("b"), UserMessage("c"))
    await client.prompt().messages(talk).call().content()
    await client.prompt().messages(talk).system("Now.").call().content()
    assert [prompt.messages for prompt in model.prompts] == [
        (SystemMessage("Be brief."), UserMessage("?")),
        (SystemMessage("Be long."), UserMessage("?")),
        (UserMessage("?"),),
        talk,
        (SystemMessage("Now."), *talk),
    ]
    assert [[each.name for each in prompt.tools] for prompt in model.prompts[:2]] == [["add"], ["add", "receipt"]]


@pytest.mark.parametrize(
    "answers",
    [
        ['{"name":"杭州","people":12}'],
        ['```json\n{"name":"杭州","people":12}\n```'],
        ['Here it is:\n```\n{"name":"杭州","people":12}\n```\nAnything else?'],
        ["About twelve million.", '{"name":"杭州","people":12}'],
        ['{"name":"杭州","people":"many"}', '```json\n{"name":"杭州","people":12}\n```'],
    ],
    ids=["first", "fence", "fence in text", "second", "second with fence"],
)
async def test_an_answer_can_be_an_object_at_the_first_or_the_second_try(answers: list[str]) -> None:
    client, model = client_of(*(says(answer) for answer in answers))
    assert await client.prompt("杭州?").call().entity(City) == City(name="杭州", people=12)
    assert len(model.prompts) == len(answers)
    asked = model.prompts[0].messages[-1]
    assert isinstance(asked, UserMessage)
    assert asked.text.startswith("杭州?")
    assert '"people"' in asked.text


async def test_the_second_try_is_told_what_did_not_fit() -> None:
    client, model = client_of(says('{"name":"杭州","people":"many"}'), says('{"name":"杭州","people":12}'))
    await client.prompt("?").call().entity(City)
    *_, answer, fault = model.prompts[1].messages
    assert answer == says('{"name":"杭州","people":"many"}')
    assert isinstance(fault, UserMessage)
    assert "people: Input should be a valid integer" in fault.text


async def test_two_answers_that_do_not_fit_are_an_error_without_their_text() -> None:
    client, model = client_of(says("secret text"))
    with pytest.raises(UpstreamInvalid) as caught:
        await client.prompt("?").call().entity(City)
    assert "secret" not in caught.value.detail
    assert len(model.prompts) == 2


async def test_an_object_can_rest_on_tool_results() -> None:
    client, _ = client_of(calls(ADD), says("3"))
    assert await client.prompt("1+2?").tools("add").call().entity(int) == 3


class Politely(BaseAdvisor):
    """Changes the question before and the answer after."""

    order = 10

    def before(self, request: ChatRequest) -> ChatRequest:
        return replace(request, messages=(*request.messages, UserMessage("Please.")))

    def after(self, response: ChatResponse) -> ChatResponse:
        return replace(response, message=says(f"{response.message.text} Thank you."))


async def test_an_advisor_for_one_question_changes_it_before_and_its_answer_after() -> None:
    client, model = client_of(says("ok"))
    assert await client.prompt("?").advisors(Politely()).call().content() == "ok Thank you."
    assert await client.prompt("?").call().content() == "ok"
    assert [prompt.messages[-1] for prompt in model.prompts] == [UserMessage("Please."), UserMessage("?")]
    *_, last = [event async for event in client.prompt("?").advisors(Politely()).stream().events()]
    assert isinstance(last, ChatResponse)
    assert last.message.text == "ok Thank you."


async def test_an_advisor_that_does_nothing_changes_nothing() -> None:
    client, _ = client_of(says("ok"))
    assert await client.prompt("?").advisors(BaseAdvisor()).call().content() == "ok"


async def test_a_chain_can_be_entered_behind_any_of_its_advisors() -> None:
    @dataclass(eq=False)
    class Marking(BaseAdvisor):
        order: int
        mark: str = ""

        def after(self, response: ChatResponse) -> ChatResponse:
            return replace(response, message=says(response.message.text + self.mark))

    outer, middle, inner = Marking(1, " outer"), Marking(2, " middle"), Marking(3, " inner")
    advisors: tuple[Advisor, ...] = (inner, outer, middle)
    chain = AdvisorChain.of(advisors, ScriptedChatModel([says("ok")]))

    async def text(of: AdvisorChain) -> str:
        events = [event async for event in of.proceed(ChatRequest((UserMessage("?"),)))]
        assert isinstance(events[-1], ChatResponse)
        return events[-1].message.text

    assert await text(chain) == "ok inner middle outer"
    assert await text(chain.copy_after(outer)) == "ok inner middle"
    assert await text(chain.copy_after(inner)) == "ok"
    with pytest.raises(ValueError, match="not in tuple"):
        chain.copy_after(BaseAdvisor())
