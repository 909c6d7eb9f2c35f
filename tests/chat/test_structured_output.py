"""Answers as objects of a type."""

import pytest
from pydantic import BaseModel

from tests.chat.scripted import ADD, calls, client_of, says
from toolchat.errors import UpstreamInvalid
from toolchat.messages import UserMessage


class City(BaseModel):
    name: str
    people: int


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


async def test_the_second_attempt_receives_the_validation_errors() -> None:
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
