"""The phases of a response's messages, which OpenAI's models want back."""

from dataclasses import replace

from tests.models.openai.playing import CITY, QUESTION, STREAMED, WEATHER
from tests.models.openai.test_responses_wire import CALL, REASONING, played, response, streamed, text_item, turn
from tests.models.responding import response_of
from tests.players.openai_player import whole
from toolchat.messages import ToolResponse, ToolResponseMessage, UserMessage
from toolchat.models.base import Prompt


async def test_the_phase_of_a_message_is_sent_back_in_every_turn() -> None:
    # https://openrouter.ai/docs/cookbook/evaluate-and-optimize/model-migrations/gpt-5-4
    told = text_item("Let me look.") | {"phase": "commentary"}
    asked = (await turn(streamed(REASONING, told, CALL), STREAMED)).message
    conversation = (QUESTION, asked, ToolResponseMessage((ToolResponse("call_1", "get_weather", "晴"),)))
    async with played([whole(response(text_item("晴")))] * 3) as (model, player):
        await response_of(model, Prompt(conversation, (WEATHER,)))
        await response_of(model, Prompt((*conversation, UserMessage("again")), (WEATHER,)))
        changed = replace(asked, text="Other words.")
        await response_of(model, Prompt((QUESTION, changed, *conversation[2:]), (WEATHER,)))
    running, later, edited = (request.body["input"] for request in player.requests)
    called = {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": CITY}
    assert running[1:4] == [REASONING, told, called]
    assert later[1:3] == [told, called]
    assert edited[1:4] == [REASONING, {"role": "assistant", "content": "Other words."}, called]
