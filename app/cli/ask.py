"""``toolchat ask``: one question."""

import sys
from collections.abc import Collection, Sequence

from pydantic_core import to_json

from app.api.fast_router import MAX_QUERY_CHARS
from app.api.responses.active_request import answer_document
from app.cli.dialogue import FAILED, AnswerPrinter, Dialogue, exit_code
from app.cli.serve import opened_service
from app.cli.terminal import complain, say
from toolchat.errors import ConfigurationError, ToolchatError

__all__ = ["ask", "is_question"]

_MOST_BYTES = 4 * (MAX_QUERY_CHARS + 1)


def ask(given: str | None, *, tools: Sequence[str] | None, approved: Collection[str], as_json: bool, demo: bool) -> int:
    """Ask one question; print the answer as it comes, and what the tools did to standard error.

    Args:
        given: the question; ``-``, or nothing where something is piped in, reads it from standard input.
        tools: names of the function tools to offer; ``None`` offers all.
        approved: names of tools that may run without being approved each time.
        as_json: print the answer's JSON document instead.
        demo: let a sandbox play the tools' upstreams.

    Returns:
        0; 1 when the question could not be answered, or a tool failed; 3 when its answer waits for an approval.

    Raises:
        ConfigurationError: the service cannot start as it is set up, there is no such tool, or no question.
    """
    query = _piped() if given == "-" or (given is None and not sys.stdin.isatty()) else given
    if query is None:
        raise ConfigurationError('the question is missing: toolchat ask "…", or - to read it from standard input')
    if not is_question(query):
        return FAILED
    with opened_service(demo=demo) as service:
        dialogue, printer = Dialogue(service, tools, approved), AnswerPrinter()
        try:
            response = dialogue.ask(query, None if as_json else printer)
        except ToolchatError as error:
            complain(f"{error.code}: {error.detail}")
            return FAILED
        if as_json:
            say(to_json(answer_document(response, service.state.chat.model.provider), indent=2).decode())
        else:
            printer.finish(response)
    return exit_code(response)


def is_question(query: str) -> bool:
    """Whether a question is one that HTTP would take as well; says so if not."""
    if query.strip() and len(query) <= MAX_QUERY_CHARS:
        return True
    complain(f"the question must have 1 to {MAX_QUERY_CHARS} characters")
    return False


def _piped() -> str:
    """What standard input holds, as UTF-8; of what is too long only so much that it can be seen."""
    return sys.stdin.buffer.read(_MOST_BYTES).decode("utf-8-sig", "replace").rstrip("\r\n")
