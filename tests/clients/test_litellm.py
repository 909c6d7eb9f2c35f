"""litellm, which proxies and many programs use."""

from typing import Any

import litellm
import pytest

from tests.clients.conftest import TIME, Model, calls, says

ASKED = [{"role": "user", "content": "What time is it?"}]


@pytest.fixture
def given(base_url: str) -> dict[str, Any]:
    return {"model": "openai/toolchat", "api_base": base_url, "api_key": "unused", "messages": ASKED}


def test_a_whole_answer_has_text_and_tokens(given: dict[str, Any], model: Model) -> None:
    model.plays(calls(TIME), says("It is noon."))
    answer: Any = litellm.completion(**given)
    assert answer.choices[0].message.content == "It is noon."
    assert not answer.choices[0].message.tool_calls
    assert answer.usage.total_tokens == 10


async def test_a_stream_is_text(given: dict[str, Any], model: Model) -> None:
    model.plays(calls(TIME), says("It is noon."))
    stream: Any = await litellm.acompletion(**given, stream=True)
    assert "".join([each.choices[0].delta.content or "" async for each in stream]) == "It is noon."


def test_a_tool_of_the_client_comes_back(given: dict[str, Any], model: Model) -> None:
    model.plays(calls({"name": "roll", "arguments": "{}"}))
    function = {"name": "roll", "description": "Roll a die", "parameters": {"type": "object", "properties": {}}}
    answer: Any = litellm.completion(**given, tools=[{"type": "function", "function": function}])
    assert answer.choices[0].finish_reason == "tool_calls"
    assert answer.choices[0].message.tool_calls[0].function.name == "roll"


def test_an_unknown_model_raises_the_clients_exception(given: dict[str, Any]) -> None:
    with pytest.raises(litellm.NotFoundError):
        litellm.completion(**(given | {"model": "openai/gpt-4o"}))
