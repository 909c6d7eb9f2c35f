"""Tools that a provider refuses: one bad definition must not end every question."""

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import toolchat.instruments as instruments
from toolchat.errors import ToolchatError, UpstreamInvalid
from toolchat.models.base import ChatResponse, Prompt
from toolchat.models.provider_errors import unquoted
from toolchat.tool_calling.definition import ToolDefinition

_MOST = 8
"""How many tools are left out of one model call before its refusal counts."""
_PLACE = re.compile(r"\btools(?:\[(\d+)]|\.(\d+)\b(?!\.member))(?:\.function_declarations\[(\d+)])?")
_log = logging.getLogger(__name__)


def refused_tool(refusal: str, tools: Sequence[ToolDefinition], param: str = "") -> ToolDefinition | None:
    """The tool that a refusal names first, or the one at the place that it, or its ``param``, names.

    Only its words count, up to the first quotation of more than a word: what follows may be a user's.
    """
    said = unquoted(refusal)
    places = {tool.name: re.search(rf"(?<![\w.-]){re.escape(tool.name)}(?![\w-]|\.\w)", said) for tool in tools}
    named = [(found.start(), tool) for tool in tools if (found := places[tool.name])]
    if named:
        return min(named, key=lambda each: each[0])[1]
    if place := _PLACE.search(said) or _PLACE.match(param):
        index = int([each for each in place.groups() if each][-1])
        return tools[index] if index < len(tools) else None
    return None


@dataclass(slots=True)
class RefusedTools:
    """The tools that are left out of the requests to the models of a provider, until their definitions change."""

    provider: str
    name: str
    quote: Callable[[ToolchatError], None]
    """Adds the provider's words to what is logged of an error, if they may be."""
    by_model: dict[str, dict[str, ToolDefinition]] = field(default_factory=dict)
    """The definitions by their names, by the model that refuses them."""

    def offer(self, prompt: Prompt) -> "Offer":
        """Begin a model call without the tools that were refused before, except one that it must call."""
        model = prompt.options.model or self.name
        known, chosen = self.by_model.get(model, {}), prompt.options.tool_choice
        return Offer(self, model, prompt, [each for each in known.values() if each.name != chosen])


@dataclass(slots=True)
class Offer:
    """The tools of one model call."""

    of: RefusedTools
    model: str
    asked: Prompt
    out: list[ToolDefinition]
    """The tools to leave out; the last ones were refused in this call."""
    refused: int = 0
    first: UpstreamInvalid | None = None
    """The first refusal, which counts if leaving out tools does not help."""
    reason: UpstreamInvalid | None = None
    """The first refusal in the words that name a tool."""

    @property
    def prompt(self) -> Prompt:
        """The model call without the refused tools."""
        if not self.out:
            return self.asked
        return replace(self.asked, tools=tuple([tool for tool in self.asked.tools if tool not in self.out]))

    def leave_out(self, error: UpstreamInvalid) -> bool:
        """Leave out the tool that a refusal names; false if it names none that the call can do without."""
        if error.retryable or error.log_fields.get("upstream_status") not in (400, 422) or self.refused == _MOST:
            return False
        refusals = [each for each in (error, error.__cause__) if isinstance(each, UpstreamInvalid)]
        offered = self.prompt.tools
        named = [(each, refused_tool(each.provider_message, offered, each.provider_param)) for each in refusals]
        refusal, tool = next(((each, tool) for each, tool in named if tool), (error, None))
        if tool is None or not self._can_do_without(tool):
            return False
        self.first, self.reason = self.first or error, self.reason or refusal
        self.refused += 1
        self.out.append(tool)
        return True

    def _can_do_without(self, tool: ToolDefinition) -> bool:
        """Whether it is a tool of the service: a client learns that its own is wrong."""
        metadata = self.asked.metadata.get(tool.name)
        return tool.name != self.asked.options.tool_choice and not (metadata and metadata.run_by_caller)

    def answered(self, response: ChatResponse) -> ChatResponse:
        """Leave the tools out from now on: without them the provider has answered."""
        if self.reason:
            new = {tool.name: tool for tool in self.out[-self.refused :]}
            self.of.by_model.setdefault(self.model, {}).update(new)
            self.of.quote(self.reason)
            said = {"model": self.model, "tools": ", ".join(new), **self.reason.log_fields}
            _log.error("the provider refuses tools, which are left out from now on", extra=said)
        left_out = frozenset([tool.name for tool in self.out if tool in self.asked.tools])
        for name in left_out:
            instruments.observer.record_tool_left_out(self.of.provider, self.of.name, name)
        return replace(response, left_out=left_out) if left_out else response
