"""What a refusal of a provider, in its exact words, says about the requests that it takes."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from toolchat.models.profiles import Profile

_DATA: dict[str, list[str]] = tomllib.loads(files("toolchat.models").joinpath("refusals.toml").read_text("utf-8"))
WRAPPERS = f"(?:{'|'.join(_DATA.pop('wrappers'))}){{0,8}}"
"""The pattern of what gateways put before the words of the provider behind them, in any case of letters."""
_OPTIONAL = {name.replace("_", ""): name for name in _DATA.pop("optional")}
"""Request fields without which the answer is still the one that was asked for, if the provider does not have them; by
their names without ``_``, which some providers write in camel case."""


@cache
def _patterns() -> list[tuple[str, re.Pattern[str]]]:
    """What each kind of refusal says; compiled at the first one, as that takes 20 ms."""
    return [(kind, re.compile(WRAPPERS + each, re.IGNORECASE)) for kind, words in _DATA.items() for each in words]


def adapted(profile: Profile, status: int, refusal: str) -> Profile | None:
    """The profile of a request as its refusal changes it; ``None`` if that says nothing new, or nothing for sure."""
    change = _change(status, refusal)
    changed = profile.changed(**change)
    return changed if changed != profile else None


def _change(status: int, refusal: str) -> Mapping[str, Any]:
    matches = ((kind, each.match(refusal)) for kind, each in _patterns())
    kind, groups = next(((kind, found.groups("")) for kind, found in matches if found), ("", ()))
    if kind == "api" and status < 500:
        return {"api": groups[0].lower()}
    if status not in (400, 422):
        return {}
    if kind == "field":
        names, instead = (*groups, "")[:2]
        words = re.findall(r"\w+", names.replace("_", "").lower())
        return {
            "renamed": {names: instead} if instead else {_OPTIONAL[each]: "" for each in words if each in _OPTIONAL}
        }
    changes: dict[str, Mapping[str, Any]] = {
        "message_field": {"sent_back": dict.fromkeys(groups, "never")},
        "without_reasoning": {"sent_back": {"reasoning_content": "all"}, "filled": {"reasoning_content": " "}},
        "streams_only": {"streams_only": True},
        "not_encrypted": {"renamed": {"include": ""}},
    }
    return changes.get(kind, {})
