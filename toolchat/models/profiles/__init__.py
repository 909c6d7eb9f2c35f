"""What providers demand beyond the format that they share, as data: one TOML file each, with its sources."""

import tomllib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict

SentBack = Literal["turn", "calls", "all", "never"]
"""With which messages a field goes back: those of the current turn, also earlier ones with calls, all, or none."""


class Profile(BaseModel):
    """How a provider differs from the others."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = ""
    hosts: tuple[str, ...] = ()
    """Its hosts, as patterns; empty: any host."""
    models: tuple[str, ...] = ()
    """Its models, as patterns in lower case; empty: any model."""
    sent_back: Mapping[str, SentBack] = {}
    """The fields of the model's messages that differ from the rule: back within the turn."""
    call_id: str = ""
    """The pattern that the ids of calls must match; empty: any id."""
    renamed: Mapping[str, str] = {}
    """Other names of request fields; an empty one leaves the field out."""
    streams_only: bool = False
    """Whether the model refuses to answer without a stream."""
    errors: Mapping[str, str] = {}
    """Our error codes by the provider's own, where these mean something else elsewhere or nothing."""
    advice: Mapping[str, str] = {}
    """What else to check, by our error codes; ``{0}`` is the prefix of the provider's variables."""


def find_profile(base_url: str, model: str) -> Profile:
    """Return the profile of a model at an address: by host and model, else by host, else by model."""
    host, name = urlsplit(base_url).hostname or "", model.lower()
    known = [each for each in _profiles() if _fits(each.hosts, host) and _fits(each.models, name)]
    return max(known, key=lambda each: (bool(each.hosts), bool(each.models)), default=Profile())


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
