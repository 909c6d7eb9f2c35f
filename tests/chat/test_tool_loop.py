"""The tool loop of a question: which tools it runs, and how it comes to an end."""

import pytest

from tests.chat.scripted import ADD, calls, client_of, says
from toolchat.chat.request import ChatRequest
from toolchat.errors import ToolLoop
from toolchat.messages import AssistantMessage
from toolchat.models.base import ChatResponse, Prompt


async def test_only_offered_tools_can_run_even_when_others_exist() -> None:
    client, _ = client_of(calls(ADD), says("sorry"))
    response = await client.prompt("?").tools("receipt").call().response()
    assert response.executions[0].error_kind == "unknown-tool"
    assert response.message.text == "sorry"


async def test_a_model_that_asks_for_tools_for_ever_is_asked_once_more_without_them() -> None:
    def turn(prompt: Prompt) -> AssistantMessage:
        return calls(("add", f'{{"a":{len(prompt.messages)},"b":0}}')) if prompt.tools else says("enough")

    client, model = client_of(turn)
    response = await client.prompt("?").tools("add").call().response()
    assert response.message.text == "enough"
    assert len(model.prompts) == 4
    assert len(response.executions) == 3


async def test_a_model_that_cannot_stop_even_then_is_an_error() -> None:
    client, model = client_of(lambda prompt: calls(("add", f'{{"a":{len(prompt.messages)},"b":0}}')))
    with pytest.raises(ToolLoop):
        await client.prompt("?").tools("add").call().content()
    assert len(model.prompts) == 4


async def test_the_same_call_for_ever_is_run_three_times_and_then_ends() -> None:
    client, model = client_of(lambda prompt: calls(ADD) if prompt.tools else says("3 it is"), max_rounds=50)
    response = await client.prompt("?").tools("add").call().response()
    assert response.message.text == "3 it is"
    assert [each.error_kind for each in response.executions] == [None, None, None, "repeated-call"]
    assert len(model.prompts) == 5


async def test_a_tool_marked_return_direct_is_the_answer() -> None:
    client, model = client_of(calls(("receipt", '{"number":7}'), ("receipt", '{"number":8}')))
    response = await client.prompt("?").tools("receipt").call().response()
    assert response.message.text == "receipt 7\n\nreceipt 8"
    assert response.finish_reason == "return_direct"
    assert len(model.prompts) == 1


async def test_a_batch_that_mixes_direct_and_other_tools_goes_back_to_the_model() -> None:
    client, _ = client_of(calls(("receipt", '{"number":7}'), ADD), says("both"))
    assert await client.prompt("?").tools("receipt", "add").call().content() == "both"


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


async def test_a_direct_result_is_a_piece_of_the_stream_once() -> None:
    client, _ = client_of(calls(("receipt", '{"number": 7}')))
    pieces = [piece async for piece in client.prompt("?").tools("receipt").stream().content()]
    assert pieces == ["receipt 7"]
