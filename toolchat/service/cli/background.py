"""``ask --background`` and ``ask --follow``: questions that the running service answers, through a shared store."""

from collections.abc import AsyncGenerator, Sequence
from functools import partial

from pydantic_core import from_json, to_json

from toolchat.errors import ConfigurationError
from toolchat.service.access.principals import ANONYMOUS
from toolchat.service.api.background.records import BackgroundQuestion, BackgroundRecords
from toolchat.service.api.sessions import conversation_or_new
from toolchat.service.cli.dialogue import ANSWERED, FAILED
from toolchat.service.cli.opened_service import OpenedService
from toolchat.service.cli.terminal import print_error, print_note, print_result


def leave_question(service: OpenedService, query: str, tools: Sequence[str] | None) -> int:
    """Store a question for the service that shares the store, and print its id.

    Raises:
        ConfigurationError: the state is in the memory of this process.
    """
    if service.state.store.kind == "memory":
        raise ConfigurationError("--background needs a STATE_URL that the running service shares: a file or a server")
    body: dict[str, object] = {"userInput": query, "sessionId": conversation_or_new("")}
    body |= {} if tools is None else {"tools": list(tools)}
    tenant = service.caller.tenant
    headers = (("host", "localhost"), *((("x-tenant-id", tenant),) if tenant else ()))
    question = BackgroundQuestion("/chat", headers, ANONYMOUS, "")
    service.run(partial(BackgroundRecords(service.state.store).add, question, to_json(body)))
    print_result(question.identifier)
    print_note("the service answers it; to read the answer: toolchat ask --follow " + question.identifier)
    return ANSWERED


def follow_question(service: OpenedService, identifier: str) -> int:
    """Print the events of a background question to its end, as ``ask`` prints an answer."""
    return service.run(partial(_follow, service, identifier))


async def _follow(service: OpenedService, identifier: str) -> int:
    records = BackgroundRecords(service.state.store)
    question = await records.find(identifier, ANONYMOUS)
    if question is None:
        print_error(f"there is no background question {identifier}")
        return FAILED
    await _print(records.events(question))
    ended = await records.find(identifier, ANONYMOUS) or question
    if ended.state == "completed":
        print_result()
        return ANSWERED
    problem = await records.result(ended) or {}
    print_error(f"{problem.get('code', ended.state)}: {problem.get('detail', 'the question has no answer')}")
    return FAILED


async def _print(events: AsyncGenerator[tuple[int, int, tuple[str, str]], None]) -> None:
    begun = 0
    async for attempt, _, (name, data) in events:
        if begun and attempt != begun:
            print_result()
            print_note("the process exited; the answer starts again")
        begun = attempt
        if name == "delta":
            print_result(from_json(data)["text"], end="")
        elif name == "tool_call_finished":
            call = from_json(data)
            print_note(f"- {call['name']} -> {call['outcome']}")
