"""The scripted model that authors of tools test with: ``toolchat.testing``."""

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from toolchat.chat.client import ChatClient
from toolchat.errors import ProviderRateLimited
from toolchat.messages import AssistantMessage, ToolResponseMessage
from toolchat.models.base import Prompt
from toolchat.service.main import create_app
from toolchat.testing import ScriptedModel, Turn, call

TOOLS = """
from toolchat import ToolModule


async def getPrice(shop: str) -> str:
    \"\"\"Look up a price.\"\"\"
    return f"{shop}: 3"


module = ToolModule(functions=(getPrice,), default_query="What is the price?")
"""


async def get_price(shop: str, amount: int = 1) -> int:
    """Look up a price."""
    return 3 * amount


def told(prompt: Prompt) -> str:
    last = prompt.messages[-1]
    assert isinstance(last, ToolResponseMessage)
    return " and ".join(each.text for each in last.responses)


async def test_it_takes_its_turns_in_order_and_keeps_what_it_was_asked() -> None:
    model = ScriptedModel([call("get_price", shop="acme"), "The price is 3."])
    response = await ChatClient.create(model, tools=[get_price]).prompt("How much?").call().response()
    assert (response.message.text, response.rounds) == ("The price is 3.", 2)
    assert (response.usage.input_tokens, response.usage.output_tokens) == (20, 4)
    first, second = model.prompts
    assert [each.name for each in first.tools] == ["get_price"]
    assert told(second) == "3"


async def test_a_turn_may_have_several_calls_with_an_id_each_and_the_next_may_depend_on_their_results() -> None:
    model = ScriptedModel([[call("get_price", shop="a"), call("get_price", shop="b", amount=2)], told])
    response = await ChatClient.create(model, tools=[get_price]).prompt("How much?").call().response()
    assert response.message.text == "3 and 6"
    assert [each.call.id for each in response.executions] == ["call_1_1", "call_1_2"]


async def test_a_text_is_streamed_in_pieces() -> None:
    client = ChatClient.create(ScriptedModel(["The price is 3."]))
    pieces = [each async for each in client.prompt("How much?").stream().content()]
    assert len(pieces) > 1
    assert "".join(pieces) == "The price is 3."


TURNS: list[tuple[Turn, str]] = [
    (AssistantMessage("whole"), "whole"),
    (lambda prompt: f"{len(prompt.messages)} message", "1 message"),
]


@pytest.mark.parametrize(("turn", "text"), TURNS, ids=["message", "function"])
async def test_a_turn_may_be_a_message_or_a_function_of_the_prompt(turn: Turn, text: str) -> None:
    assert await ChatClient.create(ScriptedModel([turn])).prompt("?").call().content() == text


async def test_an_exception_of_the_script_is_raised() -> None:
    with pytest.raises(ProviderRateLimited):
        await ChatClient.create(ScriptedModel([ProviderRateLimited("busy")])).prompt("?").call().content()


async def test_a_script_that_is_too_short_says_so_and_shows_the_last_message() -> None:
    client = ChatClient.create(ScriptedModel([call("get_price", shop="acme")]), tools=[get_price])
    with pytest.raises(AssertionError, match=r"ended after 1 turns, but the model was asked again.*get_price.*'3'"):
        await client.prompt("How much?").call().content()


def test_the_whole_service_answers_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLS_PATH", str(tmp_path))
    (tmp_path / "priced.py").write_text(TOOLS, encoding="utf-8")
    model = ScriptedModel([call("getPrice", shop="acme"), told])
    with TestClient(create_app(model=model), base_url="http://localhost") as client:
        answer = client.get("/priced/chat-tool-function", headers={"Accept": "application/json"}).json()
    assert (answer["answer"], answer["model"]["name"]) == ("acme: 3", "scripted")
    assert [each.name for each in model.prompts[0].tools] == ["getPrice"]
