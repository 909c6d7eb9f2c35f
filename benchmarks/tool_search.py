"""What a question costs with many tools, with and without the search for them.

``python -m benchmarks.tool_search`` asks the client of the service, over a real connection, a model that plays one
question: it searches where it is offered the search, calls one tool and answers. Both ways are asked by turns in one
process. Prompt tokens are those of the requests as they were sent, estimated as for the memory, all turns together.
"""

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.processes import cores, running
from toolchat.chat.advisors.tool_loop import ToolCallingAdvisor
from toolchat.chat.advisors.tool_search import SEARCH_TOOL, ToolSearchAdvisor
from toolchat.chat.client import ChatClient, PromptSpec
from toolchat.http.client import OutboundHttp
from toolchat.messages import estimate_tokens
from toolchat.models.base import ChatModel, ChatResponse
from toolchat.service.composition.models import choose_chat_model
from toolchat.service.settings.service_settings import Settings
from toolchat.tool_calling.callback import StaticToolCallbackResolver, ToolCallback
from toolchat.tool_calling.definition import ToolDefinition
from toolchat.tool_calling.function_callback import FunctionToolCallback
from toolchat.tool_calling.manager import ToolCallingManager

COUNTS = (10, 100, 500)
_ROUNDS, _QUESTIONS = 15, 40
_WANTED = "getWeatherForecast"
_QUESTION = "How will the weather be in Rome tomorrow?"
_QUERY = {"query": "weather forecast of a city"}
_VERBS = "create list update delete export import archive approve cancel assign merge copy print send check"
_NOUNS = (
    "Invoice Order Customer Contract Shipment Payment Refund Ticket Project Task Meeting Document Report Account "
    "Product Supplier Budget Employee Vacation Expense Campaign Coupon Warehouse Delivery Return Survey Lead Offer "
    "License Device Backup Server Domain Mailbox"
)
_HEADER = """\
| tools | turns | with | prompt tokens | with | ratio | CPU, ms | with | ratio | first one with, ms |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"""


async def answered(city: str = "here") -> str:
    """Answer as every tool does."""
    return f"Nothing out of the ordinary in {city}."


def definitions(count: int) -> list[ToolDefinition]:
    """So many tools, each with three parameters; the one that the question needs stands in the middle."""
    names = [(verb, noun) for noun in _NOUNS.split() for verb in _VERBS.split()]
    tools = [_defined(f"{verb}{noun}", f"{verb.capitalize()} a {noun.lower()}") for verb, noun in names[: count - 1]]
    return [*tools[: count // 2], _defined(_WANTED, "Look up the weather forecast"), *tools[count // 2 :]]


def _defined(name: str, purpose: str) -> ToolDefinition:
    properties = {
        "city": {"type": "string", "description": "City that it is about, in English", "maxLength": 80},
        "day": {"type": "string", "format": "date", "description": "Day on which it takes effect; today by default"},
        "detail": {"type": "string", "enum": ["short", "full"], "default": "short", "description": "How much to tell"},
    }
    schema = {"type": "object", "properties": properties, "required": ["city"], "additionalProperties": False}
    return ToolDefinition(name, f"{purpose} for one city. Use it when the user asks for exactly that.", schema)


def reply(body: Mapping[str, Any]) -> dict[str, Any]:
    """The model's turn: a search where it is offered, the tool, or the answer."""
    *_, last = body["messages"]
    names = [each["function"]["name"] for each in body["tools"]]
    if _WANTED not in names:
        return _calling(SEARCH_TOOL, _QUERY)
    if last["role"] == "tool" and "ordinary" in last["content"]:
        return {"role": "assistant", "content": "Nothing out of the ordinary."}
    return _calling(_WANTED, {"city": "Rome"})


def _calling(name: str, arguments: object) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
    }


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer the requests of one connection; the usage has the estimated tokens of what was sent."""
    with suppress(asyncio.IncompleteReadError):
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            at = head.index(b"content-length:") + len(b"content-length:")
            sent = (await reader.readexactly(int(head[at:].split(b"\r\n")[0]))).decode()
            writer.write(_answer(sent))
    writer.close()


def _answer(sent: str) -> bytes:
    message = reply(json.loads(sent))
    usage = {"prompt_tokens": estimate_tokens(sent), "completion_tokens": 0}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if "tool_calls" in message else "stop"}
    content = json.dumps({"id": "1", "model": "bench", "choices": [choice], "usage": usage}).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(content) + content


async def play() -> None:
    """Be the model, on a free port, which is printed."""
    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=2**24)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def asking(model: ChatModel, tools: Sequence[ToolCallback], *, above: int) -> PromptSpec:
    """The question, as the service would ask it with this setting."""
    search = (ToolSearchAdvisor(above),) if above else ()
    loop = ToolCallingAdvisor(ToolCallingManager())
    client = ChatClient(model, StaticToolCallbackResolver(tools), (loop, *search), Settings().system_prompt)
    return client.prompt(_QUESTION).tools(*tools)


async def milliseconds(question: PromptSpec, questions: int) -> float:
    """CPU time of one question in this process, on average."""
    began = time.process_time()
    for _ in range(questions):
        await question.call().response()
    return 1000 * (time.process_time() - began) / questions


async def row(model: ChatModel, count: int) -> str:
    """Measure one number of tools."""
    tools = [FunctionToolCallback.from_function(answered, definition=each) for each in definitions(count)]
    ways = [asking(model, tools, above=above) for above in (0, 30)]
    await ways[0].call().response()
    first = await milliseconds(ways[1], 1)
    answers: list[ChatResponse] = [await each.call().response() for each in ways]
    if any(answer.executions[-1].call.name != _WANTED for answer in answers):
        raise RuntimeError("a question was not answered by the tool that it needs")
    pairs = [[await milliseconds(each, _QUESTIONS) for each in ways] for _ in range(_ROUNDS)]
    told, searched = (answer.usage.input_tokens for answer in answers)
    ratio = statistics.median(pair[1] / pair[0] for pair in pairs)
    cpu = " | ".join(f"{statistics.median(column):.2f}" for column in zip(*pairs, strict=True))
    turns = " | ".join(str(answer.rounds) for answer in answers)
    return (
        f"| {count} | {turns} | {told:,} | {searched:,} | {searched / told:.2f} | {cpu} | {ratio:.2f} | {first:.1f} |"
    )


async def measure(port: int) -> None:
    """Print the table."""
    os.environ["OPENAI_BASE_URL"] = f"http://127.0.0.1:{port}/v1"
    settings = Settings(chat_provider="openai_compatible")
    http = OutboundHttp(connect_timeout=5, max_connections=10)
    try:
        model = choose_chat_model(settings).create(http)
        print(_HEADER)
        for count in COUNTS:
            print(await row(model, count), flush=True)
    finally:
        await http.aclose()


def main() -> None:
    """Start the model on the other core, and measure on this one."""
    import uvloop

    own, others = cores()
    with tempfile.TemporaryDirectory() as folder:
        command = ["python", "-m", "benchmarks.tool_search", "model"]
        with running(command, others, Path(folder, "model.log")) as process:
            os.sched_setaffinity(0, {own})
            uvloop.run(measure(int(process.first_line())))


if __name__ == "__main__":
    asyncio.run(play()) if sys.argv[1:] == ["model"] else main()
