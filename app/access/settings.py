"""Settings: who may ask, and how much."""

import ipaddress
import re
from typing import Annotated

from pydantic import AfterValidator, Field

from app.settings.base import EnvironmentSettings, Secret, Texts

__all__ = ["AccessSettings"]


def _networks(values: tuple[str, ...]) -> tuple[str, ...]:
    for each in values:
        try:
            ipaddress.ip_network(each, strict=False)
        except ValueError:
            raise ValueError(f"{each[:64]} is no IP address or network") from None
    return values


def _origins(values: tuple[str, ...]) -> tuple[str, ...]:
    for each in values:
        if not re.fullmatch(r"https?://[A-Za-z0-9.\-\[\]:]+", each):
            raise ValueError(f"{each[:64]} is no origin such as https://chat.example.org")
    return tuple(each.lower() for each in values)


def _hosts(values: tuple[str, ...]) -> tuple[str, ...]:
    for each in values:
        if not re.fullmatch(r"[A-Za-z0-9._-]+", each):
            raise ValueError(f"{each[:64]} is no host name (without scheme and port)")
    return tuple(each.lower().removesuffix(".") for each in values)


class AccessSettings(EnvironmentSettings):
    """Who may ask."""

    api_keys: Secret | None = Field(
        None,
        description="Keys by their digests, NAME=SHA256 separated by commas; `python -m app keys new NAME` makes one",
    )
    api_keys_file: str = Field("", description="TOML file with a [[keys]] for each key, its tools, roles and limits")
    allow_anonymous: bool | None = Field(
        None, description="Answer without a key; none: only where no key is set and only this machine can connect"
    )
    open_paths: Texts = Field(
        ("/docs*", "/openapi.json"),
        description="Paths that need no key, with * for anything; /health/ and the playground never do",
    )
    allowed_hosts: Annotated[Texts, AfterValidator(_hosts)] = Field(
        (), description="Names by which the service may be called without a key, beside addresses and localhost"
    )
    cors_origins: Annotated[Texts, AfterValidator(_origins)] = Field(
        (), description="Origins whose pages may ask and read the answer, such as https://chat.example.org"
    )
    trusted_proxies: Annotated[Texts, AfterValidator(_networks)] = Field(
        (), description="Addresses or networks of proxies that may say who the client is (Forwarded, X-Forwarded-For)"
    )
    requests_per_minute: int = Field(
        0, ge=0, description="Questions and tool runs per minute of all together; 0: no limit"
    )
    tokens_per_day: int = Field(0, ge=0, description="Tokens per day (UTC) of all together; 0: no limit")
    questions_per_client: int = Field(
        0, ge=0, description="Questions at once of one key or, without one, one address; 0: half of MAX_QUESTIONS"
    )
