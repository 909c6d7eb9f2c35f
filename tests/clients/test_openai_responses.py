"""The official client on Responses: whole answers and every event of a stream, validated by the client's own types."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from openai.types.conversations import Conversation, ConversationItem
from openai.types.responses import Response, ResponseItem, ResponseStreamEvent
from pydantic import BaseModel, TypeAdapter

from tests.clients.conftest import PACKAGES, ROOT, TIME, Model, calls, node, says, started
from tests.clients.test_ai_sdk import SHIP, SHIPS
from tests.clients.test_openai import ROLLED
from tests.command_line import with_tools
from tests.players.openai_player import delta, finish, sse
from tests.programs import require

ROLL: Any = {"type": "function", "name": "roll", "parameters": {"type": "object", "properties": {}}, "strict": False}
TOOLS: Any = {"type": "mcp", "server_label": "toolchat", "server_url": "http://unused"}
EVENT: Any = TypeAdapter(ResponseStreamEvent)
ITEM: Any = TypeAdapter(ResponseItem)
CONVERSATION_ITEM: Any = TypeAdapter(ConversationItem)


@pytest.fixture(scope="module")
def base_url(_played: tuple[Model, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A service with one more tool, which requires approval."""
    project = tmp_path_factory.mktemp("project")
    with_tools(project, {"ship": SHIP})
    with started(project, tmp_path_factory.mktemp("service"), _played[1]) as url:
        yield f"{url}/v1"


@pytest.fixture
def client(base_url: str) -> OpenAI:
    return OpenAI(base_url=base_url, api_key="unused", max_retries=0)


def valid(response: Any) -> Any:
    """The response, if its types allow it: the client itself constructs them unchecked."""
    Response.model_validate(response.model_dump(warnings=False, by_alias=True))
    return response


def streamed(client: OpenAI, **fields: Any) -> list[Any]:
    events = list(client.responses.create(model="toolchat", stream=True, **fields))
    for event in events:
        EVENT.validate_python(event.model_dump(warnings=False, by_alias=True))
    assert [each.sequence_number for each in events] == list(range(len(events)))
    return events


def test_a_whole_answer_shows_the_services_call_and_has_text_and_tokens(client: OpenAI, model: Model) -> None:
    model.plays(calls(TIME), says("It is noon."))
    answer = valid(client.responses.create(model="toolchat", input="What time is it?"))
    assert [each.type for each in answer.output] == ["mcp_call", "message"]
    assert (answer.output_text, answer.usage.total_tokens) == ("It is noon.", 10)
    valid(client.responses.retrieve(answer.id))
    for item in client.responses.input_items.list(answer.id):
        ITEM.validate_python(item.model_dump(warnings=False))
    client.responses.delete(answer.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(answer.id)


def test_a_conversation_is_created_continued_listed_and_deleted(client: OpenAI, model: Model) -> None:
    model.plays(calls(TIME), says("It is noon."), says("Bye."))
    begun = client.conversations.create(metadata={"a": "b"}, items=[{"role": "user", "content": "Hello."}])
    Conversation.model_validate(begun.model_dump())
    client.responses.create(model="toolchat", input="What time is it?", conversation=begun.id)
    valid(client.responses.create(model="toolchat", input="Bye", conversation={"id": begun.id}))
    client.conversations.items.create(begun.id, items=[{"role": "assistant", "content": "See you."}])
    items = list(client.conversations.items.list(begun.id, order="asc", limit=2))
    for item in items:
        CONVERSATION_ITEM.validate_python(item.model_dump(warnings=False))
    assert [each.type for each in items] == ["message", "message", "mcp_call", *["message"] * 4]
    assert client.conversations.retrieve(begun.id) == begun
    assert client.conversations.delete(begun.id).deleted
    with pytest.raises(openai.NotFoundError):
        client.responses.create(model="toolchat", input="?", conversation=begun.id)


def test_a_stream_has_valid_events_and_its_helper_assembles_them(client: OpenAI, model: Model) -> None:
    model.plays(calls(TIME, ROLLED), calls(TIME), sse(delta(content="It is "), delta(content="noon."), finish("stop")))
    first = streamed(client, input="The time, and a die?", tools=[ROLL])[-1].response
    assert [each.type for each in first.output] == ["mcp_call", "function_call"]
    given: Any = [{"type": "function_call_output", "call_id": first.output[1].call_id, "output": "4"}]
    with client.responses.stream(model="toolchat", input=given, previous_response_id=first.id, tools=[ROLL]) as stream:
        text = "".join(each.delta for each in stream if each.type == "response.output_text.delta")
        final = valid(stream.get_final_response())
    assert (text, final.output_text) == ("It is noon.", "It is noon.")


class Moment(BaseModel):
    hour: int


async def test_the_asynchronous_client_parses_a_typed_answer(base_url: str, model: Model) -> None:
    async with AsyncOpenAI(base_url=base_url, api_key="unused") as client:
        model.plays(calls(TIME), says('{"hour":12}'))
        answer = await client.responses.parse(model="toolchat", input="?", text_format=Moment)
    assert answer.output_parsed == Moment(hour=12)
    assert model.requests[-1].body["response_format"]["json_schema"]["name"] == "Moment"


def test_an_approval_is_an_item_and_so_is_the_decision(client: OpenAI, model: Model) -> None:
    model.plays(calls(SHIPS), says("On its way."))
    first = valid(client.responses.create(model="toolchat", input="Ship order 1", tools=[TOOLS]))
    (request,) = first.output
    decision: Any = {"type": "mcp_approval_response", "approval_request_id": request.id, "approve": True}
    events = streamed(client, input=[decision], previous_response_id=first.id, tools=[TOOLS])
    called, said = events[-1].response.output
    assert (called.output, said.content[0].text) == ('{"shipped":1}', "On its way.")


def test_errors_are_the_clients_own_and_events_of_a_stream(client: OpenAI, model: Model) -> None:
    with pytest.raises(openai.BadRequestError) as missing:
        client.responses.create(model="toolchat", input="?", tools=[{"type": "web_search"}])
    assert missing.value.param == "tools[0]"
    model.plays(sse(delta(content="It is "), done=False, ending="cut"))
    assert [each.type for each in streamed(client, input="?")][-2:] == ["error", "response.failed"]


JS = """
import OpenAI from "openai";
const client = new OpenAI({ baseURL: process.argv[2], apiKey: "unused", maxRetries: 0 });
const stream = client.responses.stream({ model: "toolchat", input: "What time is it?" });
const types = [];
stream.on("event", (event) => types.push(event.type));
const final = await stream.finalResponse();
const next = await client.responses.create({ model: "toolchat", input: "And now?", previous_response_id: final.id });
console.log(JSON.stringify([final.output_text, next.output_text, types.includes("response.mcp_call.completed")]));
"""


def test_the_javascript_client_reads_both(base_url: str, model: Model, tmp_path: Path) -> None:
    model.plays(calls(TIME), says("It is noon."), says("Still noon."))
    assert run_js(tmp_path, JS, base_url) == '["It is noon.","Still noon.",true]'


AI_SDK = """
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, streamText, jsonSchema, stepCountIs, tool } from "ai";
const openai = createOpenAI({ baseURL: process.argv[2], apiKey: "unused" });
const inputSchema = jsonSchema({ type: "object", properties: { sides: { type: "number" } } });
const tools = { roll: tool({ description: "Roll a die", inputSchema, execute: async () => 4 }) };
const options = { model: openai("toolchat"), tools, stopWhen: stepCountIs(3), maxRetries: 0 };
const whole = await generateText({ ...options, prompt: "The time, and a die?" });
const messages = [{ role: "user", content: "?" }, ...whole.response.messages, { role: "user", content: "Again?" }];
const stream = streamText({ ...options, messages });
let text = "";
for await (const part of stream.textStream) text += part;
const names = whole.steps.flatMap((step) => step.toolCalls.map((call) => call.toolName));
console.log(JSON.stringify([whole.text, text, names]));
"""


def test_the_go_client_reads_both(base_url: str, model: Model, tmp_path: Path) -> None:
    model.plays(calls(TIME), says("It is noon."), sse(delta(content="Still "), delta(content="noon."), finish("stop")))
    shutil.copytree(ROOT / "tests" / "clients" / "go_openai", tmp_path / "go")
    command = [require("go"), "run", ".", base_url]
    run = subprocess.run(command, cwd=tmp_path / "go", capture_output=True, text=True, timeout=600, check=False)
    assert run.returncode == 0, run.stderr + run.stdout
    whole, streamed, failed = map(json.loads, run.stdout.splitlines())
    assert (whole["kinds"], whole["text"], whole["tokens"]) == (["mcp_call", "message"], "It is noon.", 10)
    assert (streamed["text"], streamed["last"]) == ("Still noon.", "response.completed")
    assert (failed["code"], failed["status"]) == ("model_not_found", 404)


def test_the_ai_sdk_runs_its_own_tools_and_shows_the_services(base_url: str, model: Model, tmp_path: Path) -> None:
    model.plays(calls(TIME, ROLLED), says("Noon, and 4."), calls(TIME), says("Noon."))
    assert run_js(tmp_path, AI_SDK, base_url) == '["Noon, and 4.","Noon.",["mcp.getCityTimeFunction","roll"]]'
    assert [each["role"] for each in model.requests[1].body["messages"]][-3:] == ["assistant", "tool", "tool"]


def run_js(folder: Path, code: str, base_url: str) -> str:
    """What a module of JavaScript prints."""
    (folder / "main.mjs").write_text(code, encoding="utf-8")
    (folder / "node_modules").symlink_to(PACKAGES)
    run = node("main.mjs", base_url, cwd=folder)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()
