"""AutoGen: an agent that sends its tool's result without any tools, for the model to reflect on it."""

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient

from tests.clients.conftest import TIME, Model, calls, says

ABILITIES = {"vision": False, "function_calling": True, "json_output": False, "structured_output": False}


async def test_a_reflection_without_tools_sees_what_the_services_tools_had_found(base_url: str, model: Model) -> None:
    async def roll(sides: int) -> int:
        """Roll a die."""
        return sides - 2

    client = OpenAIChatCompletionClient(
        model="toolchat", base_url=base_url, api_key="unused", model_info={**ABILITIES, "family": "unknown"}
    )
    agent = AssistantAgent("dicer", client, tools=[roll], reflect_on_tool_use=True)
    model.plays(calls(TIME, {"name": "roll", "arguments": '{"sides":6}'}), says("Noon, and 4."))
    answer = await agent.run(task="What time is it? And roll a die.")
    await client.close()
    assert getattr(answer.messages[-1], "content", "") == "Noon, and 4."
    first, reflection = (each.body for each in model.requests)
    offered = [[each["function"]["name"] for each in body["tools"]] for body in (first, reflection)]
    assert ["roll" in names for names in offered] == [True, False]
    assert [each["role"] for each in reflection["messages"]][-3:] == ["assistant", "tool", "tool"]
    assert "Asia/Shanghai" in reflection["messages"][-2]["content"]
    assert reflection["messages"][-1]["content"] == "4"
