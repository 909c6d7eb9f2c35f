"""Access control at run time: the configuration read from the environment, and the objects made of it."""

import ipaddress
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field
from starlette.types import Scope

from toolchat.http.client import OutboundHttp
from toolchat.service.access.authentication import Authenticator
from toolchat.service.access.hosts import TrustedProxies, host_name, is_loopback
from toolchat.service.access.keys import KeyFile, KeyRegistry, digest_of, new_key, read_key_file, read_keys
from toolchat.service.access.principals import Principal
from toolchat.service.access.tokens import Tokens, TokenSettings
from toolchat.service.request_state import state_of
from toolchat.service.settings.base import EnvironmentSettings, Texts, read_settings
from toolchat.tool_calling.setting_types import Secret


def _networks(values: tuple[str, ...]) -> tuple[str, ...]:
    for each in values:
        try:
            ipaddress.ip_network(each, strict=False)
        except ValueError:
            raise ValueError(f"{each[:64]} is no IP address or network") from None
    return values


def _public_url(value: str) -> str:
    value = value.strip().rstrip("/")
    if value and not re.fullmatch(r"https?://[A-Za-z0-9._\-\[\]:]+", value):
        raise ValueError("must be scheme and host such as https://ai.example.org; a path belongs to SERVER_ROOT_PATH")
    return value.lower()


def _origins(values: tuple[str, ...]) -> tuple[str, ...]:
    for each in values:
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*://[A-Za-z0-9._\-\[\]:]+/?", each):
            raise ValueError(f"{each[:64]} is no origin such as https://chat.example.org or app://obsidian.md")
    return tuple(each.lower().removesuffix("/") for each in values)


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
        (), description="Origins allowed by CORS, such as https://chat.example.org or app://obsidian.md"
    )
    public_url: Annotated[str, AfterValidator(_public_url)] = Field(
        "",
        description="Scheme and host by which clients call the service, such as https://ai.example.org; by default as "
        "TRUSTED_PROXIES say in X-Forwarded-Proto and X-Forwarded-Host, or Host",
    )
    trusted_proxies: Annotated[Texts, AfterValidator(_networks)] = Field(
        (),
        description="IP addresses or networks of proxies that are trusted to name the client's address and the "
        "service's own",
    )
    forwarded_header: str = Field(
        "X-Forwarded-For",
        pattern="^[A-Za-z0-9-]+$",
        description="The only header in which TRUSTED_PROXIES name the client, such as Forwarded or X-Real-IP",
    )
    people_jwt_secret: Secret | None = Field(
        None,
        description="Secret of the HS256 tokens by which a page names people ([keys.people] token_header in "
        "API_KEYS_FILE), such as Open WebUI's FORWARD_USER_INFO_HEADER_JWT_SECRET",
    )
    requests_per_minute: int = Field(
        0, ge=0, description="Chat requests and tool runs per minute of all clients together; 0: no limit"
    )
    tokens_per_day: int = Field(0, ge=0, description="Tokens per day (UTC) of all clients together; 0: no limit")


@dataclass(frozen=True, slots=True)
class AccessConfiguration:
    """The validated settings of access control."""

    settings: AccessSettings
    tokens: TokenSettings
    keys: KeyRegistry
    """The keys of ``API_KEYS``."""
    file: Path | None
    file_keys: KeyRegistry
    generated_key: str
    """The key generated because other machines can connect and no key is set; otherwise empty."""
    is_local: bool = True
    """Whether this machine is the only client: no other address, no key, no token and no proxy is configured."""
    keeps_for_ever: bool = True
    """Whether the state store can store conversations that do not expire."""

    @classmethod
    def read(cls, host: str, *, keeps_for_ever: bool = True) -> "AccessConfiguration":
        """Read the settings of a service that listens on ``host``."""
        settings, tokens = read_settings(AccessSettings), read_settings(TokenSettings)
        keys = read_keys(settings.api_keys.get_secret_value() if settings.api_keys else "")
        file = Path(settings.api_keys_file) if settings.api_keys_file else None
        file_keys = read_key_file(file, keeps_for_ever=keeps_for_ever) if file else KeyRegistry()
        has_no_key = not keys and file is None and not tokens.is_set
        generated_key = new_key() if has_no_key and settings.allow_anonymous is None and not is_loopback(host) else ""
        if generated_key:
            keys = KeyRegistry({digest_of(generated_key): Principal("owner")})
        is_local = is_loopback(host) and has_no_key and not (settings.trusted_proxies or settings.public_url)
        return cls(settings, tokens, keys, file, file_keys, generated_key, is_local, keeps_for_ever)

    @property
    def anonymous(self) -> bool | None:
        """Whether requests without a key are accepted; ``None``: only from this machine."""
        if self.settings.allow_anonymous is not None:
            return self.settings.allow_anonymous
        has_keys = bool(self.keys) or self.file is not None or self.tokens.is_set
        return False if has_keys else None


class Access:
    """Access control of the running service, as the guard uses it."""

    def __init__(self, configuration: AccessConfiguration) -> None:
        settings = configuration.settings
        self._configuration = configuration
        self._generated_key = configuration.generated_key
        self.proxies = TrustedProxies(settings.trusted_proxies, settings.forwarded_header)
        """Names the client of a request."""
        self.origins = frozenset(settings.cors_origins)
        """Other origins whose pages may send requests."""
        self.authenticator = Authenticator(
            configuration.keys.with_keys(configuration.file_keys),
            anonymous=configuration.anonymous,
            open_paths=settings.open_paths,
            hosts=[*settings.allowed_hosts, *filter(None, [host_name(urlsplit(settings.public_url).netloc)])],
            people_secret=settings.people_jwt_secret,
        )
        keeps, file = configuration.keeps_for_ever, configuration.file
        self._file = KeyFile(file, self._replace_keys, keeps_for_ever=keeps) if file else None

    @property
    def needs_key(self) -> bool:
        """Whether every request needs a key, wherever it comes from."""
        return self._configuration.anonymous is False

    @property
    def issuer(self) -> str:
        """The identity provider whose tokens are accepted; empty if there is none."""
        tokens = self._configuration.tokens
        return tokens.jwt_issuer if tokens.is_set else ""

    def own_address(self, scope: Scope) -> str:
        """The service's address as the client of a request knows it, without a slash at the end."""
        known = state_of(scope).own_address
        origin = self._configuration.settings.public_url or self.proxies.origin(scope)
        return known or f"{origin}{scope.get('root_path', '')}"

    def claim_generated_key(self) -> str:
        """The generated key, for the first caller, which prints it; empty for all later ones."""
        made, self._generated_key = self._generated_key, ""
        return made

    def reload(self) -> None:
        """Reload the key file, if there is one."""
        if self._file is not None:
            self._file.reload()

    @asynccontextmanager
    async def running(self, http: OutboundHttp) -> AsyncGenerator[None, None]:
        """Watch the key file and accept tokens as long as the block runs."""
        if generated_key := self.claim_generated_key():  # another server runs the application, and does not print it
            print(generated_key_notice(generated_key), file=sys.stderr)  # noqa: T201
        async with self._file.watched() if self._file else nullcontext():
            if self._configuration.tokens.is_set:
                self.authenticator.tokens = Tokens(self._configuration.tokens, http)
            yield

    def _replace_keys(self, keys: KeyRegistry) -> None:
        self.authenticator.keys = self._configuration.keys.with_keys(keys)


def generated_key_notice(key: str) -> str:
    """The message that shows a generated key."""
    return (
        f"Reachable from other machines, no API key set; generated one for this run: {key}\n"
        "Set API_KEYS or API_KEYS_FILE for permanent keys; ALLOW_ANONYMOUS=true accepts requests without one."
    )
