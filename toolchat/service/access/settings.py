"""Settings: authentication and global limits."""

import ipaddress
import re
from typing import Annotated

from pydantic import AfterValidator, Field

from toolchat.service.settings.base import EnvironmentSettings, Texts
from toolchat.tool_calling.setting_types import Secret


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


def _paths(values: tuple[str, ...]) -> tuple[str, ...]:
    for each in values:
        if not re.fullmatch(r"(/(\*|[^*/]+))+", each):
            raise ValueError(f"{each[:64]} is no path such as /docs or /time/*, in which * stands for a whole segment")
    return values


class AccessSettings(EnvironmentSettings):
    """Access and limits."""

    api_keys: Secret | None = Field(
        None,
        description=(
            "API keys by their digests, NAME=SHA256 separated by commas; `toolchat keys new NAME` creates one"
        ),
    )
    api_keys_file: str = Field(
        "", description="TOML file with a [[keys]] table for each API key: its tools, roles and limits"
    )
    allow_anonymous: bool | None = Field(
        None,
        description=(
            "Answer requests without an API key; by default only if no key is set and only this machine can connect"
        ),
    )
    open_paths: Annotated[Texts, AfterValidator(_paths)] = Field(
        ("/docs", "/openapi.json"),
        description=(
            "Paths that need no API key, with everything below them; * stands for any one segment. The probes and the "
            "playground never need one"
        ),
    )
    allowed_hosts: Annotated[Texts, AfterValidator(_hosts)] = Field(
        (), description="Host names accepted without an API key, in addition to IP addresses and localhost"
    )
    cors_origins: Annotated[Texts, AfterValidator(_origins)] = Field(
        (), description="Origins allowed by CORS, such as https://chat.example.org"
    )
    trusted_proxies: Annotated[Texts, AfterValidator(_networks)] = Field(
        (), description="IP addresses or networks of proxies that are trusted to name the client's address"
    )
    forwarded_header: str = Field(
        "X-Forwarded-For",
        pattern="^[A-Za-z0-9-]+$",
        description="The only header in which TRUSTED_PROXIES name the client, such as Forwarded or X-Real-IP",
    )
    requests_per_minute: int = Field(
        0, ge=0, description="Chat requests and tool runs per minute of all clients together; 0: no limit"
    )
    tokens_per_day: int = Field(0, ge=0, description="Tokens per day (UTC) of all clients together; 0: no limit")
