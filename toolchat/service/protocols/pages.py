"""What the protocols of pages share: a page sends the whole conversation with every request, and may run tools."""

from collections.abc import Sequence

from toolchat.chat.client import PromptSpec
from toolchat.messages import Message
from toolchat.service.api.responses.event_stream import StreamFormat
from toolchat.service.api.service import ServiceState
from toolchat.service.api.sessions import conversation_prompt
from toolchat.service.protocols.answers import ResponseContext, SavedTurns
from toolchat.service.protocols.partial_turns import restore_turns
from toolchat.service.protocols.wire import ToolDescription, client_tools, with_client_tools

MAX_BODY_BYTES = 8 * 1024 * 1024
"""Enough for a conversation with its tool results."""


class PageStream(SavedTurns, StreamFormat):
    """A stream for a page."""

    def __init__(self, client_tools: Sequence[ToolDescription] = (), *, in_session: bool = False) -> None:
        self.context = ResponseContext("", frozenset([name for name, _, _ in client_tools]), in_session=in_session)


async def page_prompt(
    service: ServiceState, messages: tuple[Message, ...], own: Sequence[ToolDescription], conversation_id: str
) -> PromptSpec:
    """The prompt for a page's messages, with the tools of every conversation and those that the page runs."""
    messages = await restore_turns(service.store, messages)
    tools, advisors = service.tools.for_conversation(None)
    tools = with_client_tools(tools, client_tools(own))
    return conversation_prompt(service, messages, conversation_id, tools=tools, advisors=advisors)
