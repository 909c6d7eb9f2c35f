"""Advisors around a question: their order, what they may change, and what they may tell."""

from collections.abc import Callable
from dataclasses import Field, fields, replace
from typing import Any

import pytest

from tests.chat.scripted import ADD, MarkingAdvisor, WatchedModel, add, answer_of, calls, client_of, receipt, says
from toolchat.chat.advisors.base import Advisor, AdvisorChain, BaseAdvisor
from toolchat.chat.client import PromptSpec
from toolchat.chat.request import Approval, ChatRequest, Notice, Resume
from toolchat.messages import Usage, UserMessage
from toolchat.models.base import ChatOptions, ChatResponse
from toolchat.service.api.advisors import SandboxNoticeAdvisor
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.function_callback import FunctionToolCallback


async def test_advisors_wrap_whole_answers_and_streams_alike_in_their_order() -> None:
    client, _ = client_of(says("hi"), advisors=[MarkingAdvisor(1, "!"), MarkingAdvisor(2, "?")])
    assert await client.prompt("").call().content() == "hi?!"
    *_, last = [event async for event in client.prompt("").stream().events()]
    assert isinstance(last, ChatResponse)
    assert last.message.text == "hi?!"


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


async def test_a_chain_can_be_entered_behind_any_of_its_advisors() -> None:
    outer, middle, inner = MarkingAdvisor(1, " outer"), MarkingAdvisor(2, " middle"), MarkingAdvisor(3, " inner")
    advisors: tuple[Advisor, ...] = (inner, outer, middle)
    chain = AdvisorChain.of(advisors, WatchedModel([says("ok")]))
    assert await answer_of(chain) == "ok inner middle outer"
    assert await answer_of(chain.copy_after(outer)) == "ok inner middle"
    assert await answer_of(chain.copy_after(inner)) == "ok"
    with pytest.raises(ValueError, match="not in tuple"):
        chain.copy_after(BaseAdvisor())


@pytest.mark.parametrize(
    "name",
    ["", "Todo", "to do", "a\n", "a\ndata: x", "todo1", "进度", "delta", "usage", "done", "error", "tool_call_started",
     "tool_call_finished"],
)  # fmt: skip
def test_a_notice_with_a_name_that_a_stream_cannot_carry_is_refused(name: str) -> None:
    # Other characters break the event's form, and the service's own names mean something else to clients.
    with pytest.raises(ValueError, match="notice"):
        Notice(name, {})
    assert Notice("my_progress", {}).name == "my_progress"


async def test_an_answer_from_sandbox_data_has_the_notice_in_both_formats() -> None:
    invented = FunctionToolCallback.from_function(add).in_sandbox()
    client, _ = client_of(calls(ADD), says("3"), advisors=[SandboxNoticeAdvisor()])
    answer = await client.prompt("?").tools(invented).call().content()
    assert answer == "3" + SandboxNoticeAdvisor.notice
    client, _ = client_of(calls(ADD), says("3"), advisors=[SandboxNoticeAdvisor()])
    assert "".join([piece async for piece in client.prompt("?").tools(invented).stream().content()]) == answer
    client, _ = client_of(says("I need no tool"), advisors=[SandboxNoticeAdvisor()])
    assert await client.prompt("?").tools(invented).call().content() == "I need no tool"


async def test_text_that_is_put_behind_an_answer_afterwards_is_a_piece_of_the_stream() -> None:
    class Signed(BaseAdvisor):
        def after(self, response: ChatResponse) -> ChatResponse:
            return response.with_text(f"{response.message.text} (signed)")

    client, _ = client_of(says("ok"), advisors=(Signed(),))
    pieces = [piece async for piece in client.prompt("?").stream().content()]
    assert pieces == ["o", "k", " (signed)"]


@pytest.mark.parametrize(
    ("change", "changed"),
    [
        (lambda spec: spec.tools(add), "tools"),
        (lambda spec: spec.tool_context({"tenant": "other"}), "context"),
        (lambda spec: spec.messages([UserMessage("!")]), "messages"),
        (lambda spec: PromptSpec(spec.client, spec.request.with_messages(())), "messages"),
    ],
    ids=["tools", "context", "messages", "messages of an advisor"],
)
def test_a_changed_copy_of_a_request_keeps_all_other_fields(
    change: Callable[[PromptSpec], PromptSpec], changed: str
) -> None:
    client, _ = client_of(says("ok"))
    paused = ChatResponse(says("paused"), "approval_required", Usage(), "")
    given = ChatRequest(
        (UserMessage("?"),),
        (FunctionToolCallback.from_function(receipt),),
        ToolContext({"tenant": "acme"}),
        ChatOptions(temperature=1),
        True,
        Resume(paused.message, {"call_0": Approval(True)}, paused),
    )
    assert not [each.name for each in fields(ChatRequest) if getattr(given, each.name) == _default(each)]
    copy = change(PromptSpec(client, given)).request
    differing = [each.name for each in fields(ChatRequest) if getattr(copy, each.name) != getattr(given, each.name)]
    assert differing == [changed]


def _default(field: Field[Any]) -> object:
    return field.default_factory() if callable(field.default_factory) else field.default
