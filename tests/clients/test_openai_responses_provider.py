"""A provider of Responses that validates the service's requests, and answers, by OpenAI's own types."""

import json
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any, get_type_hints

import pytest
from openai.types.responses import Response, ResponseStreamEvent
from openai.types.responses.response_create_params import (
    ResponseCreateParamsNonStreaming,
    ResponseCreateParamsStreaming,
)
from pydantic import TypeAdapter

from tests.clients.conftest import ROOT, TIME, playing, started
from tests.players.openai_player import Answer, PlayedRequest, sse, whole

EVENT: Any = TypeAdapter(ResponseStreamEvent)
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "status": "completed", **TIME}
TEXT = {"type": "output_text", "text": "It is noon.", "annotations": []}
MESSAGE = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [TEXT]}


def response(*output: dict[str, Any], status: str = "completed") -> dict[str, Any]:
    usage = {
        "input_tokens": 3, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0}, "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 5,
    }  # fmt: skip
    made = {
        "id": "resp_1", "object": "response", "created_at": 1, "status": status, "model": "gpt-5", "output": output,
        "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "usage": usage,
    }  # fmt: skip
    dumped: dict[str, Any] = Response.model_validate(made).model_dump(mode="json")
    return dumped


def streamed(*output: dict[str, Any]) -> Answer:
    events: list[dict[str, Any]] = [{"type": "response.created", "response": response(status="in_progress")}]
    for index, item in enumerate(output):
        place = {"output_index": index, "item_id": item["id"], "content_index": 0, "logprobs": []}
        events.append({"type": "response.output_item.added", "output_index": index, "item": item})
        if item["type"] == "function_call":
            events += [
                {"type": "response.function_call_arguments.delta", "delta": each, **place} for each in item["arguments"]
            ]
        if item["type"] == "message":
            events += [{"type": "response.output_text.delta", "delta": each, **place} for each in TEXT["text"]]
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": "response.completed", "response": response(*output)})
    numbered = [{**event, "sequence_number": number} for number, event in enumerate(events)]
    return sse(*(EVENT.validate_python(each).model_dump(mode="json") for each in numbered), done=False)


class Provider:
    """Asks for the time once, then tells it; notes what is wrong with a request."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.bodies: list[Mapping[str, Any]] = []

    def __call__(self, request: PlayedRequest) -> Answer:
        body: Mapping[str, Any] = request.body
        params = ResponseCreateParamsStreaming if body.get("stream") else ResponseCreateParamsNonStreaming
        self.bodies.append(body)
        self.faults += [f"unknown field {name}" for name in body.keys() - get_type_hints(params).keys()]
        try:
            TypeAdapter(params).validate_python(body)
        except ValueError as error:
            self.faults.append(str(error))
        is_answered = any(each.get("type") == "function_call_output" for each in body["input"])
        output = [MESSAGE] if is_answered else [REASONING, CALL]
        return streamed(*output) if body.get("stream") else whole(response(*output))


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Provider, str]]:
    """The provider, and the service that calls it."""
    provider = Provider()
    folder = tmp_path_factory.mktemp("service")
    with playing(provider) as base_url, started(ROOT, folder, base_url, OPENAI_API="responses") as url:
        yield provider, url


@pytest.mark.parametrize("accept", ["text/plain", "text/event-stream"])
def test_every_request_is_valid_and_the_answer_arrives(asked: tuple[Provider, str], accept: str) -> None:
    provider, url = asked
    provider.bodies.clear()
    query = urllib.parse.urlencode({"query": "What time is it?"})
    request = urllib.request.Request(f"{url}/time/chat-tool-function?{query}", headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=60) as answer:
        told = answer.read().decode()
    pieces = [json.loads(line[6:]) for line in told.splitlines() if line.startswith("data: ")]
    text = "".join(each.get("text", "") for each in pieces if set(each) == {"text"}) if pieces else told
    assert text.startswith("It is noon.")
    assert (provider.faults, len(provider.bodies)) == ([], 2)
    assert [each.get("type") for each in provider.bodies[1]["input"][-3:]] == [
        "reasoning", "function_call", "function_call_output",
    ]  # fmt: skip
