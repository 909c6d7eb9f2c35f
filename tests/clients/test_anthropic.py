"""Anthropic's own client: whole and streamed messages, tools of both sides, models, counted tokens, and errors."""

from collections.abc import Iterator
from typing import Any

import anthropic
import pytest

from tests.clients.conftest import TIME, Model, calls, says
from tests.players.openai_player import delta, sse, whole

ROLL = {"name": "roll", "arguments": '{"sides":6}'}
TOOL: Any = {
    "name": "roll",
    "description": "Roll a die",
    "input_schema": {"type": "object", "properties": {"sides": {"type": "integer"}}},
}
ASKED: Any = {"model": "claude-opus-4-8", "max_tokens": 64, "messages": [{"role": "user", "content": "Roll"}]}


@pytest.fixture
def client(base_url: str) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=base_url.removesuffix("/v1"), api_key="none", max_retries=0) as client:
        yield client


def test_a_message_has_the_text_and_the_usage(client: anthropic.Anthropic, model: Model) -> None:
    model.plays(says("Hello."))
    answer = client.messages.create(**ASKED)
    assert (answer.content[0].to_dict(), answer.stop_reason) == ({"type": "text", "text": "Hello."}, "end_turn")
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (7, 3)
    assert answer._request_id


def test_a_tool_of_the_client_runs_beside_the_services_and_the_turn_goes_on(
    client: anthropic.Anthropic, model: Model
) -> None:
    model.plays(calls(TIME, ROLL), says("A four."))
    answer = client.beta.messages.create(**ASKED, tools=[TOOL])
    used, known, rolled = answer.content
    assert (used.type, known.type, rolled.type) == ("mcp_tool_use", "mcp_tool_result", "tool_use")
    assert (used.server_name, used.name, used.input) == ("toolchat", TIME["name"], {"timeZoneId": "Asia/Shanghai"})
    assert known.content[0].text.startswith("The current time zone is Asia/Shanghai")
    assert (rolled.name, rolled.input, answer.stop_reason) == ("roll", {"sides": 6}, "tool_use")
    result: Any = {"type": "tool_result", "tool_use_id": rolled.id, "content": "4"}
    said: Any = {"role": "assistant", "content": [each.to_dict() for each in answer.content]}
    told = [*ASKED["messages"], said, {"role": "user", "content": [result]}]
    last = client.beta.messages.create(**ASKED | {"messages": told}, tools=[TOOL])
    assert last.content[0].text == "A four."
    roles = [each["role"] for each in model.requests[1].body["messages"]]
    assert roles[-4:] == ["user", "assistant", "tool", "tool"]


def test_its_tool_runner_asks_until_every_call_has_its_result(client: anthropic.Anthropic, model: Model) -> None:
    @anthropic.beta_tool
    def roll(sides: int) -> str:
        """Roll a die.

        Args:
            sides: how many sides it has
        """
        return str(sides - 2)

    model.plays(calls(TIME, ROLL), says("A four."))
    answer = client.beta.messages.tool_runner(**ASKED, tools=[roll]).until_done()
    assert answer.content[0].to_dict() == {"type": "text", "text": "A four."}
    results = [each["content"] for each in model.requests[1].body["messages"] if each["role"] == "tool"]
    assert (results[0].startswith("The current time zone is"), results[1:]) == (True, ["4"])


def test_a_stream_is_collected_to_the_same_message(client: anthropic.Anthropic, model: Model) -> None:
    model.plays(calls(TIME), sse(delta(reasoning_content="A die."), delta("stop", content="Four.")))
    thinking: Any = {"type": "adaptive"}
    with client.beta.messages.stream(**ASKED, thinking=thinking) as stream:
        kinds = {each.type for each in stream}
        answer = stream.get_final_message()
    assert {"thinking", "text", "content_block_stop", "message_stop"} <= kinds
    assert [each.type for each in answer.content] == ["mcp_tool_use", "mcp_tool_result", "thinking", "text"]
    assert (answer.content[2].thinking, answer.content[3].text) == ("A die.", "Four.")
    assert answer.stop_reason == "end_turn"


def test_a_streamed_call_of_the_clients_tool_has_its_input(client: anthropic.Anthropic, model: Model) -> None:
    model.plays(calls(ROLL))
    with client.messages.stream(**ASKED, tools=[TOOL]) as stream:
        answer = stream.get_final_message()
    assert (answer.content[0].to_dict()["input"], answer.stop_reason) == ({"sides": 6}, "tool_use")


def test_models_are_listed_and_tokens_counted(client: anthropic.Anthropic) -> None:
    listed = list(client.models.list())
    assert [each.id for each in listed][:2] == ["toolchat", "toolchat-plain"]
    assert client.models.retrieve("toolchat").created_at == listed[0].created_at
    fields = {name: ASKED[name] for name in ("model", "messages")}
    few = client.messages.count_tokens(**fields).input_tokens
    assert 0 < few < client.messages.count_tokens(**fields, tools=[TOOL]).input_tokens


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"max_tokens": 0}, anthropic.BadRequestError),
        ({"model": "gpt-4o"}, anthropic.NotFoundError),
    ],
)
def test_errors_of_the_request_are_the_clients_own(
    fields: dict[str, Any], kind: type[anthropic.APIStatusError], client: anthropic.Anthropic
) -> None:
    with pytest.raises(kind) as caught:
        client.messages.create(**ASKED | fields)
    body: Any = caught.value.body
    assert (body["type"], body["request_id"]) == ("error", caught.value.request_id)


@pytest.mark.parametrize(("status", "kind"), [(429, anthropic.RateLimitError), (500, anthropic.InternalServerError)])
def test_errors_of_the_provider_are_the_clients_own(
    status: int, kind: type[anthropic.APIStatusError], client: anthropic.Anthropic, model: Model
) -> None:
    model.plays(whole({"error": {"message": "no"}}, status))
    with pytest.raises(kind):
        client.messages.create(**ASKED)


def test_an_error_within_a_stream_is_raised(client: anthropic.Anthropic, model: Model) -> None:
    model.plays(sse(delta(content="Hel"), done=False, ending="cut"))
    with pytest.raises(anthropic.APIStatusError), client.messages.stream(**ASKED) as stream:
        stream.until_done()
