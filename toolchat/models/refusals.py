"""What a refusal of a provider, in its exact words, says about the requests that it takes."""

import re
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from toolchat.models.profiles import Profile

_START = r"(?:litellm\.\w+: (?:\w+ - )?)*"
_WORDS: Mapping[str, list[re.Pattern[str]]] = {
    kind: [re.compile(_START + each, re.IGNORECASE) for each in words]
    for kind, words in tomllib.loads(files("toolchat.models").joinpath("refusals.toml").read_text("utf-8")).items()
}
_OPTIONAL = re.compile(
    "temperature|top_p|frequency_penalty|presence_penalty|seed|reasoning(_effort)?|parallel_tool_calls|stream_options"
)
"""Request fields without which the answer is still the one that was asked for, if the provider does not have them."""


def adapted(profile: Profile, status: int, refusal: str) -> Profile | None:
    """The profile of a request as its refusal changes it; ``None`` if that says nothing new, or nothing for sure."""
    change = _change(status, refusal)
    changed = profile.changed(**change)
    return changed if changed != profile else None


def _change(status: int, refusal: str) -> Mapping[str, Any]:
    matches = ((kind, each.match(refusal)) for kind, words in _WORDS.items() for each in words)
    kind, groups = next(((kind, found.groups("")) for kind, found in matches if found), ("", ()))
    if kind == "api" and status < 500:
        return {"api": groups[0].lower()}
    if status not in (400, 422):
        return {}
    if kind == "field":
        name, instead = (*groups, "")[:2]
        return {"renamed": {name: instead}} if instead or _OPTIONAL.fullmatch(name) else {}
    changes: dict[str, Mapping[str, Any]] = {
        "message_field": {"sent_back": dict.fromkeys(groups, "never")},
        "without_reasoning": {"sent_back": {"reasoning_content": "all"}, "filled": {"reasoning_content": " "}},
        "streams_only": {"streams_only": True},
        "not_encrypted": {"renamed": {"include": ""}},
    }
    return changes.get(kind, {})
