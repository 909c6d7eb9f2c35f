"""What providers demand beyond the format that they share, as data: one TOML file each, with its sources."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict

from toolchat.messages import AssistantMessage
from toolchat.models.base import ChatResponse

SentBack = Literal["turn", "calls", "all", "never"]
"""With which messages a field goes back: those of the current turn, also earlier ones with calls, all, or none."""
BY = "by"
"""The key of an assistant message's ``extra`` for the address and the model that wrote it."""
_FITTING_ID = 9
"""Characters of the ids that replace others: Mistral takes no other length."""


class Profile(BaseModel):
    """How a provider differs from the others."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = ""
    by: str = ""
    """The address and the model: with it their messages are signed."""
    hosts: tuple[str, ...] = ()
    """Its hosts, as patterns; empty: any host."""
    models: tuple[str, ...] = ()
    """Its models, as patterns in lower case; empty: any model."""
    api: Literal["", "/chat/completions", "/responses"] = ""
    """The path of the model's API; empty: the configured one."""
    sent_back: Mapping[str, SentBack] = {}
    """The fields of the model's messages that differ from the rule: back within the turn. ``*``: all others."""
    filled: Mapping[str, Any] = {}
    """What goes back in place of a field that the model has not written."""
    filled_call: Mapping[str, Any] = {}
    """The same for the first call of a message."""
    call_id: re.Pattern[str] | None = None
    """What the ids of calls must match."""
    added: Mapping[str, Any] = {}
    """Fields of every request."""
    renamed: Mapping[str, str] = {}
    """Other names of request fields; an empty one leaves the field out."""
    images: bool = False
    """Whether the model takes images."""
    streams_only: bool = False
    """Whether the model refuses to answer without a stream."""
    reads_text_calls: bool = True
    """Whether an answer that consists of calls written as text is read as these calls."""
    errors: Mapping[str, str] = {}
    """Our error codes by the provider's own, where these mean something else elsewhere or nothing."""
    advice: Mapping[str, str] = {}
    """What else to check, by our error codes; ``{0}`` is the prefix of the provider's variables."""

    def changed(self, **fields: Any) -> Self:
        """Copy with other fields; mappings gain entries."""
        merged = {name: {**getattr(self, name), **it} if isinstance(it, Mapping) else it for name, it in fields.items()}
        return type(self)(**{**dict(self), **merged})

    def request(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a request as the provider takes them."""
        if not self.renamed and not self.added:
            return dict(fields)
        names = {name: self.renamed.get(name, name) for name in fields}
        return {**self.added, **{new: fields[name] for name, new in names.items() if new}}

    def signed(self, response: ChatResponse) -> ChatResponse:
        """A response of the model, with its sign if the message holds more than others could use."""
        message = response.message
        if not message.extra and not any(call.extra for call in message.tool_calls):
            return response
        return replace(response, message=replace(message, extra={**message.extra, BY: self.by}))

    def wrote(self, message: AssistantMessage) -> bool:
        """Whether the model wrote a message, or nobody signed it: only then its fields go back."""
        return bool(message.extra.get(BY, self.by) == self.by)

    def extra_of(self, message: AssistantMessage, *, in_turn: bool) -> dict[str, Any]:
        """The fields of a message that go back."""
        if not message.extra and not self.filled:
            return {}
        fields = {**self.filled, **(message.extra if self.wrote(message) else {})}
        return {name: value for name, value in fields.items() if self._goes_back(name, message, in_turn=in_turn)}

    def extra_of_call(self, message: AssistantMessage, place: int) -> Mapping[str, Any]:
        """The fields of one of a message's calls that go back."""
        fields = message.tool_calls[place].extra
        if fields and not self.wrote(message):
            fields = {}
        if not fields and not place:
            fields = self.filled_call
        return {name: value for name, value in fields.items() if self._mode(name) != "never"} if fields else fields

    def fitting_id(self, call_id: str) -> str:
        """The id of a call as the provider takes it; the same for a call and its result, in every request."""
        if self.call_id is None or self.call_id.fullmatch(call_id):
            return call_id
        return sha256(call_id.encode()).hexdigest()[:_FITTING_ID]

    def _goes_back(self, name: str, message: AssistantMessage, *, in_turn: bool) -> bool:
        mode = self._mode(name)
        return mode == "all" or (mode != "never" and (in_turn or (mode == "calls" and bool(message.tool_calls))))

    def _mode(self, name: str) -> SentBack:
        return "never" if name == BY else self.sent_back.get(name) or self.sent_back.get("*", "turn")


def find_profile(base_url: str, model: str, overrides: Mapping[str, Any] = {}) -> Profile:
    """Return the profile of a model at an address: that of its host, else of its model, with what both together add."""
    host, name = urlsplit(base_url).hostname or "", model.lower()
    known = [each for each in _profiles() if _fits(each.hosts, host) and _fits(each.models, name)]
    found = Profile()
    for each in sorted([it for it in known if it.hosts] or known, key=lambda it: bool(it.models)):
        found = found.changed(**each.model_dump(exclude_unset=True))
    return found.changed(**overrides).changed(by=f"{host}/{model}")


def profile_named(name: str) -> Profile:
    """Return the profile of that name."""
    return next(each for each in _profiles() if each.name == name)


def _fits(patterns: tuple[str, ...], value: str) -> bool:
    return not patterns or any(fnmatchcase(value, pattern) for pattern in patterns)


@cache
def _profiles() -> tuple[Profile, ...]:
    found = sorted((each for each in files(__name__).iterdir() if each.name.endswith(".toml")), key=lambda it: it.name)
    return tuple(
        Profile(name=each.name.removesuffix(".toml"), **tomllib.loads(each.read_text("utf-8"))) for each in found
    )
