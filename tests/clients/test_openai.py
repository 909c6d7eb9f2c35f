"""The official client: complete, streamed and typed answers, tools, and errors."""

import json
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel

from tests.clients.conftest import TIME, Model, calls, says
from tests.players.openai_player import delta, finish, sse, whole

ASKED: Any = [{"role": "user", "content": "What time is it in Shanghai?"}]
ROLL: Any = {
    "type": "function",
    "function": {
        "name": "roll",
        "description": "Roll a die",
        "parameters": {"type": "object", "properties": {"sides": {"type": "integer"}}},
    },
}
ROLLED = {"name": "roll", "arguments": '{"sides":6}'}
PROGRESS = {"X-Toolchat-Progress": "open-webui"}


@pytest.fixture
def client(base_url: str) -> OpenAI:
    return OpenAI(base_url=base_url, api_key="unused")


def test_the_models_are_listed_and_found(client: OpenAI) -> None:
    names = [each.id for each in client.models.list()]
    assert names[:2] == ["toolchat", "toolchat-plain"]
    assert client.models.retrieve("toolchat-time").owned_by == "toolchat"


def test_a_whole_answer_has_its_text_its_tokens_and_its_id(client: OpenAI, model: Model) -> None:
    model.plays(calls(TIME), says("It is noon."))
    answer = client.chat.completions.create(model="toolchat", messages=ASKED)
    assert answer.choices[0].message.content == "It is noon."
    assert answer.choices[0].message.tool_calls is None
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.total_tokens == 10
    assert answer._request_id


def test_a_stream_is_chunks_each_with_a_choice_and_tokens_at_its_end(client: OpenAI, model: Model) -> None:
    model.plays(calls(TIME), sse(delta(content="It is "), delta("stop", content="noon.")))
    chunks = list(
        client.chat.completions.create(
            model="toolchat",
            messages=ASKED,
            stream=True,
            stream_options={"include_usage": True},
            extra_headers=PROGRESS,
        )
    )
    assert "".join(each.choices[0].delta.content or "" for each in chunks[:-1]) == "It is noon."
    assert all(each.choices[0].delta.tool_calls is None for each in chunks[:-1])
    assert [each.choices[0].finish_reason for each in chunks[:-1]][-1] == "stop"
    assert (chunks[-1].choices, chunks[-1].usage is not None) == ([], True)
    assert sum((each.model_extra or {}).get("event") is not None for each in chunks) == 2


async def test_the_asynchronous_client_gets_both_as_well(base_url: str, model: Model) -> None:
    async with AsyncOpenAI(base_url=base_url, api_key="unused") as client:
        model.plays(says("noon"), sse(delta(content="no"), delta(content="on"), finish("stop")))
        answer = await client.chat.completions.create(model="toolchat", messages=ASKED)
        stream = await client.chat.completions.create(model="toolchat", messages=ASKED, stream=True)
        text = "".join([each.choices[0].delta.content or "" async for each in stream])
    assert (answer.choices[0].message.content, text) == ("noon", "noon")


class Moment(BaseModel):
    hour: int
    zone: str


def test_a_typed_answer_is_parsed(client: OpenAI, model: Model) -> None:
    model.plays(calls(TIME), says('{"hour":12,"zone":"Asia/Shanghai"}'))
    answer = client.beta.chat.completions.parse(model="toolchat", messages=ASKED, response_format=Moment)
    assert answer.choices[0].message.parsed == Moment(hour=12, zone="Asia/Shanghai")
    assert [each.body["response_format"]["type"] for each in model.requests] == ["json_schema"] * 2


def test_the_clients_tools_come_back_and_lead_to_the_answer(client: OpenAI, model: Model) -> None:
    model.plays(calls(TIME, ROLLED), says("Noon, and 4."))
    first = client.chat.completions.create(model="toolchat", messages=ASKED, tools=[ROLL])
    said = first.choices[0].message
    assert first.choices[0].finish_reason == "tool_calls"
    assert said.tool_calls is not None
    (call,) = said.tool_calls
    assert call.type == "function"
    assert (call.function.name, json.loads(call.function.arguments)) == ("roll", {"sides": 6})
    result: Any = {"role": "tool", "tool_call_id": call.id, "content": "4"}
    again: Any = [*ASKED, said.model_dump(exclude_none=True), result]
    answer = client.chat.completions.create(model="toolchat", messages=again, tools=[ROLL])
    assert answer.choices[0].message.content == "Noon, and 4."
    assert [each["role"] for each in model.requests[-1].body["messages"]][-3:] == ["assistant", "tool", "tool"]


def test_the_stream_helper_assembles_a_call(client: OpenAI, model: Model) -> None:
    model.plays(calls(ROLLED))
    with client.chat.completions.stream(model="toolchat", messages=ASKED, tools=[ROLL]) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_completion()
    assert "tool_calls.function.arguments.done" in kinds
    said = final.choices[0].message.tool_calls
    assert said is not None
    (call,) = said
    assert (call.function.name, call.function.arguments) == ("roll", '{"sides":6}')


def test_errors_become_the_clients_exceptions_with_the_field(client: OpenAI, model: Model) -> None:
    with pytest.raises(openai.NotFoundError) as missing:
        client.chat.completions.create(model="gpt-4o", messages=ASKED)
    assert (missing.value.code, missing.value.param) == ("model_not_found", "model")
    with pytest.raises(openai.BadRequestError) as bad:
        client.chat.completions.create(model="toolchat", messages=ASKED, temperature=9)
    assert bad.value.param == "temperature"
    assert bad.value.request_id
    model.plays(whole({"error": {"message": "x", "code": "context_length_exceeded"}}, 400))
    with pytest.raises(openai.BadRequestError) as long:
        client.chat.completions.create(model="toolchat", messages=ASKED)
    assert long.value.code == "context_length_exceeded"


def test_errors_that_cannot_succeed_are_not_retried(client: OpenAI, model: Model) -> None:
    model.plays(whole({"error": {"message": "no"}}, 401), says("never asked"))
    with pytest.raises(openai.InternalServerError) as refused:
        client.chat.completions.create(model="toolchat", messages=ASKED)
    assert refused.value.code == "provider_auth"
    assert len(model.requests) == 1


def test_an_error_during_the_stream_is_raised(client: OpenAI, model: Model) -> None:
    model.plays(sse(delta(content="It is "), done=False, ending="cut"))
    told = []
    with pytest.raises(openai.APIError) as broken:  # noqa: PT012 - the stream itself raises
        for chunk in client.chat.completions.create(model="toolchat", messages=ASKED, stream=True):
            told.append(chunk.choices[0].delta.content)
    assert (told, broken.value.code) == (["It is "], "upstream_invalid")


def test_a_session_is_remembered(client: OpenAI, model: Model) -> None:
    model.plays(says("one"), says("two"))
    for text in ("first", "second"):
        client.chat.completions.create(
            model="toolchat", messages=[{"role": "user", "content": text}], extra_headers={"X-Session-ID": "s-1"}
        )
    contents = [each["content"] for each in model.requests[-1].body["messages"]]
    assert contents[-3:] == ["first", "one", "second"]
