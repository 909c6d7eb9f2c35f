"""pydantic-ai: an agent with a tool of its own, typed answers, and streams."""

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models import Model as PydanticModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from tests.clients.conftest import TIME, Model, calls, says


@pytest.fixture(params=[OpenAIChatModel, OpenAIResponsesModel])
def chat(request: pytest.FixtureRequest, base_url: str) -> PydanticModel:
    return request.param("toolchat", provider=OpenAIProvider(base_url=base_url, api_key="unused"))


async def test_an_agent_gets_an_answer_that_used_the_services_tools(chat: PydanticModel, model: Model) -> None:
    model.plays(calls(TIME), says("It is noon."))
    answer = await Agent(chat).run("What time is it?")
    assert answer.output == "It is noon."
    assert answer.usage.total_tokens == 10


async def test_an_agents_own_tool_runs_in_the_agent_beside_the_services(chat: PydanticModel, model: Model) -> None:
    rolled: list[int] = []
    agent = Agent(chat, instructions="Be brief.")

    @agent.tool_plain
    def roll(sides: int) -> int:
        """Roll a die."""
        rolled.append(sides)
        return 4

    model.plays(calls(TIME, {"name": "roll", "arguments": '{"sides":6}'}), says("Noon, and 4."))
    answer = await agent.run("What time is it? And roll a die.")
    assert (answer.output, rolled) == ("Noon, and 4.", [6])
    assert [each["role"] for each in model.requests[-1].body["messages"]][-3:] == ["assistant", "tool", "tool"]


class Moment(BaseModel):
    hour: int


async def test_an_output_type_is_requested_until_it_is_valid(chat: PydanticModel, model: Model) -> None:
    # The agent offers a tool for its answer and requires a call; the service's own tool does not end that.
    agent = Agent(chat, output_type=Moment)
    model.plays(calls(TIME), calls({"name": "final_result", "arguments": '{"hour":12}'}))
    answer = await agent.run("What time is it?")
    assert answer.output == Moment(hour=12)
    assert [each.body.get("tool_choice") for each in model.requests] == ["required", "required"]


async def test_an_agents_stream_is_text(chat: PydanticModel, model: Model) -> None:
    model.plays(calls(TIME), says("It is noon."))
    async with Agent(chat).run_stream("What time is it?") as answer:
        assert await answer.get_output() == "It is noon."
