"""Which of the calls that a model asks for are run: names, ids and arguments."""

import logging

import pytest
from pydantic_core import from_json

from tests.chat.scripted import calls, client_of, says
from tests.tool_calling.calls import call, only, run


@pytest.mark.parametrize("name", ["getTime", "default_api:ok", "OK", "", "x" * 300, "ok\n", "\ud800", "时间"])
async def test_a_name_that_was_not_offered_runs_nothing_and_is_answered_with_those_that_were(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def ok() -> None:
        raise AssertionError

    with caplog.at_level(logging.INFO):
        answer = await only((name, "{}"), tools=[ok])
    error = from_json(answer.result)["error"]
    assert (answer.outcome, answer.error_kind) == ("error", "unknown-tool")
    assert error["hint"] == "available: ok"
    assert len(answer.result) < 300
    assert "\n" not in error["message"]
    assert caplog.records == []


async def test_a_request_continues_after_an_unknown_tool() -> None:
    client, model = client_of(calls(("default_api:add", '{"a":1,"b":2}')), calls(("add", '{"a":1,"b":2}')), says("3"))
    response = await client.prompt("1+2?").tools("add").call().response()
    assert [each.error_kind for each in response.executions] == ["unknown-tool", None]
    assert response.message.text == "3"
    assert len(model.prompts) == 3


async def test_two_calls_with_one_id_and_name_are_both_run_and_answered() -> None:
    async def echo(text: str) -> str:
        return text

    twice = [call("echo", f'{{"text": "{text}"}}', "same") for text in ("a", "b")]
    result = await run(*twice, tools=[echo])
    assert [each.result for each in result.executions] == ["a", "b"]


@pytest.mark.parametrize("arguments", ["", " ", "\n\t", "{}", "null"])
async def test_no_arguments_run_a_tool_without_parameters(arguments: str) -> None:
    async def ping() -> str:
        return "pong"

    assert (await only(("ping", arguments), tools=[ping])).result == "pong"


@pytest.mark.parametrize(
    "arguments",
    ["{", '{"text": "a"', "{'text': 'a'}", '{"text": "a"} {"text": "b"}', '{"text": "a"}x', '{"text": }',
     '{"text": ' + "[" * 1_100, "[" * 100_000, '{"text": ' + "9" * 5_000 + "}", "[]", '"text"', "3", "true",
     '{"text": null}', '{"text": true}', '{"Text": "a"}', '{"text": "a", "b": 1}', "x", "\x00",
     '{"text": "\\ud800"}', "x" * 1_000_001],
)  # fmt: skip
async def test_invalid_arguments_run_nothing_and_are_reported_to_the_model(arguments: str) -> None:
    ran: list[str] = []

    async def echo(text: str) -> None:
        ran.append(text)

    finished = await only(("echo", arguments), tools=[echo])
    assert (finished.error_kind, ran) == ("invalid-arguments", [])
    assert from_json(finished.result)["error"]["message"]
    assert len(finished.result) < 1000
