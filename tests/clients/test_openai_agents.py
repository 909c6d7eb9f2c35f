"""OpenAI's Agents SDK on chat completions and on its default API: tools of the agent, typed answers, streams."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIConversationsSession,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI
from pydantic import BaseModel

from tests.clients.conftest import TIME, Model, calls, says

ROLLED = {"name": "roll", "arguments": '{"sides":6}'}


@function_tool
def roll(sides: int) -> int:
    """Roll a die."""
    return sides - 2


class Moment(BaseModel):
    hour: int


set_tracing_disabled(True)  # traces would be sent to OpenAI


@pytest.fixture
async def client(base_url: str) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=base_url, api_key="unused", max_retries=0) as client:
        yield client


def agent(client: AsyncOpenAI, kind: Any = OpenAIChatCompletionsModel, **fields: Any) -> Agent[Any]:
    return Agent("Teller", model=kind("toolchat", openai_client=client), **fields)


async def test_the_agents_tool_runs_in_the_agent_beside_the_services(client: AsyncOpenAI, model: Model) -> None:
    model.plays(calls(TIME, ROLLED), says("Noon, and 4."))
    answer = await Runner.run(agent(client, tools=[roll], instructions="Be brief."), "The time, and a die?")
    assert answer.final_output == "Noon, and 4."
    assert [each["role"] for each in model.requests[-1].body["messages"]][-3:] == ["assistant", "tool", "tool"]


async def test_a_handoff_is_a_tool_of_the_client(client: AsyncOpenAI, model: Model) -> None:
    other = agent(client, instructions="You know the time.").clone(name="Clock")
    model.plays(calls({"name": "transfer_to_clock", "arguments": "{}"}), calls(TIME), says("Noon."))
    answer = await Runner.run(agent(client, handoffs=[other]), "What time is it?")
    assert (answer.final_output, answer.last_agent.name) == ("Noon.", "Clock")


async def test_a_typed_answer_is_parsed(client: AsyncOpenAI, model: Model) -> None:
    model.plays(calls(TIME), says('{"hour":12}'))
    answer = await Runner.run(agent(client, output_type=Moment), "What time is it?")
    assert answer.final_output == Moment(hour=12)


async def test_a_stream_is_text(client: AsyncOpenAI, model: Model) -> None:
    model.plays(calls(TIME), says("It is noon."))
    answer = Runner.run_streamed(agent(client), "What time is it?")
    kinds = [event.type async for event in answer.stream_events()]
    assert "raw_response_event" in kinds
    assert answer.final_output == "It is noon."


async def test_its_default_api_shows_the_services_calls_and_runs_its_own(client: AsyncOpenAI, model: Model) -> None:
    model.plays(calls(TIME, ROLLED), says("Noon, and 4."), calls(TIME), says("Noon."))
    teller = agent(client, OpenAIResponsesModel, tools=[roll])
    first = await Runner.run(teller, "The time, and a die?")
    assert first.final_output == "Noon, and 4."
    assert [each["role"] for each in model.requests[1].body["messages"]][-3:] == ["assistant", "tool", "tool"]
    second = Runner.run_streamed(teller, [*first.to_input_list(), {"role": "user", "content": "And now?"}])
    kinds = [event.item.type async for event in second.stream_events() if event.type == "run_item_stream_event"]
    assert (second.final_output, kinds) == ("Noon.", ["tool_call_item", "message_output_item"])


async def test_its_default_api_continues_a_conversation_of_the_service(client: AsyncOpenAI, model: Model) -> None:
    model.plays(calls(ROLLED), says("4."), says("It was 4."))
    teller = agent(client, OpenAIResponsesModel, tools=[roll])
    await Runner.run(teller, "Roll a die", conversation_id="agents")
    answer = await Runner.run(teller, "Which one?", conversation_id="agents")
    assert answer.final_output == "It was 4."
    texts = [each["content"] for each in model.requests[-1].body["messages"] if each["role"] == "user"]
    assert texts == ["Roll a die", "Which one?"]


async def test_its_session_keeps_the_conversation_in_the_service(client: AsyncOpenAI, model: Model) -> None:
    model.plays(calls(TIME, ROLLED), says("Noon, and 4."), says("It was 4."))
    teller, session = (
        agent(client, OpenAIResponsesModel, tools=[roll]),
        OpenAIConversationsSession(openai_client=client),
    )
    await Runner.run(teller, "The time, and a die?", session=session)
    answer = await Runner.run(teller, "Which one?", session=session)
    assert answer.final_output == "It was 4."
    roles = [each["role"] for each in model.requests[-1].body["messages"][1:]]
    assert roles == ["user", "assistant", "tool", "tool", "assistant", "user"]
    kinds = [each.get("type", "message") for each in await session.get_items()]
    assert kinds == ["message", "mcp_call", "function_call", "function_call_output", *["message"] * 3]
    await session.clear_session()
    assert await session.get_items() == []
