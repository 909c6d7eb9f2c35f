"""OpenAI's Agents SDK, set to chat completions: tools of the agent, typed answers, streams, and its default API."""

from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI
from pydantic import BaseModel

from wire_clients.conftest import TIME, Model, calls, says

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


async def test_its_default_api_is_refused_with_what_to_set(client: AsyncOpenAI, model: Model) -> None:
    with pytest.raises(openai.NotFoundError, match="set the client to chat completions"):
        await Runner.run(agent(client, OpenAIResponsesModel), "What time is it?")
    assert model.requests == []
