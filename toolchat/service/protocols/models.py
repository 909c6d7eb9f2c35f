"""The service as models: with every tool, with none, or with those of one tool module."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from toolchat.chat.advisors.base import Advisor
from toolchat.chat.client import PromptSpec
from toolchat.errors import NotConfigured, NotFound
from toolchat.messages import Message
from toolchat.models.base import ChatOptions
from toolchat.service.api.service import ServiceState
from toolchat.service.api.sessions import conversation_prompt
from toolchat.service.api.tool_registry import ToolRegistry
from toolchat.service.protocols.partial_turns import restore_turns
from toolchat.service.protocols.wire import CHOICES, BadRequest, ModelRequest, client_tools, with_client_tools
from toolchat.tool_calling.callback import ToolSet
from toolchat.tool_calling.caller import current_caller

ALL_TOOLS = "toolchat"
"""The model with every tool of the service."""
NO_TOOLS = "toolchat-plain"
"""The model without tools, for the titles and tags that chat pages request."""
_MODULE_PREFIX = "toolchat-"
_STARTED = datetime.now(UTC).replace(microsecond=0)
_DOCUMENT = {
    "object": "model",
    "created": int(_STARTED.timestamp()),
    "owned_by": "toolchat",
    "type": "model",
    "created_at": _STARTED.isoformat(),
}


class ModelNotFound(NotFound):
    """There is no model of this name."""

    code = "model-not-found"
    param = "model"

    def __init__(self, model: str, reason: str = "") -> None:
        why = f" ({reason})" if reason else ""
        super().__init__(f"the model {model[:64]!r} does not exist{why}; GET /v1/models lists them")


def model_documents(tools: ToolRegistry) -> list[dict[str, Any]]:
    """All models, without the tool modules that are unavailable or have no tool that the caller may use.

    Each has the fields of OpenAI's format and those of Anthropic's.
    """
    entries = tools.entries.items()
    usable = [
        f"{_MODULE_PREFIX}{name}" for name, each in entries if not each.fault and _is_usable(each.in_conversation())
    ]
    return [{"id": name, "display_name": name, **_DOCUMENT} for name in (ALL_TOOLS, NO_TOOLS, *usable)]


async def model_prompt(
    service: ServiceState,
    sent: ModelRequest,
    messages: tuple[Message, ...],
    conversation_id: str,
    allowed: Sequence[str] | None = None,
) -> PromptSpec:
    """The prompt of a request, with the service's tools that the client allows (``None``: all) and those of its own."""
    functions, tool_choice = sent.functions_of_client(), sent.chosen_tool()
    own = client_tools(functions) if functions else ()
    tools, advisors = _offered(service.tools, sent.model)
    if tool_choice == "none":
        tools, advisors, own = ToolSet(), (), ()
    if allowed is not None:
        tools = ToolSet([tool for name, tool in tools.by_name.items() if name in allowed])
    tools = with_client_tools(tools, own)
    if tool_choice not in (None, *CHOICES) and not _may_use(tools, tool_choice):
        raise BadRequest(f"tool_choice: no tool has the name {tool_choice[:64]}", "tool_choice")
    messages = await restore_turns(service.store, messages)
    prompt = conversation_prompt(service, messages, conversation_id, tools=tools, advisors=advisors)
    named = {} if tool_choice in (None, "none", "auto") else {"tool_choice": tool_choice}
    changed = {name: each for name, each in sent.options().items() if each is not None} | named
    return prompt.options(ChatOptions(**changed)) if changed else prompt


def _offered(tools: ToolRegistry, model: str) -> tuple[ToolSet, Sequence[Advisor]]:
    """The tools of a model, and the advisors that belong to them."""
    if model == ALL_TOOLS:
        return tools.for_conversation(None)
    if model == NO_TOOLS:
        return ToolSet(), ()
    if not model.startswith(_MODULE_PREFIX):
        raise ModelNotFound(model)
    try:
        offered, advisors = tools.for_folder(model.removeprefix(_MODULE_PREFIX))
    except NotFound:
        raise ModelNotFound(model) from None
    except NotConfigured as error:
        raise ModelNotFound(model, error.detail) from error
    if not _is_usable(offered):
        raise ModelNotFound(model)
    return offered, advisors


def _is_usable(tools: ToolSet) -> bool:
    return any(_may_use(tools, name) for name in tools.by_name)


def _may_use(tools: ToolSet, name: str) -> bool:
    """Whether the caller may use the tool of a name; those that the client runs itself are its own."""
    tool = tools.by_name.get(name)
    return tool is not None and (tool.metadata.run_by_caller or current_caller.get().may_use(name))
