"""What the settings say about access, put together."""

import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from app.access.authentication import Authenticator
from app.access.hosts import Proxies, is_loopback
from app.access.keys import KeyFile, KeyRegistry, digest_of, new_key, read_key_file, read_keys
from app.access.principals import Principal
from app.access.settings import AccessSettings
from app.access.tokens import Tokens, TokenSettings
from app.settings.base import read_settings
from toolchat.http.client import OutboundHttp

__all__ = ["Access", "AccessConfiguration", "generated_key_notice"]


@dataclass(frozen=True, slots=True)
class AccessConfiguration:
    """Who may ask, as it was read from the environment, checked."""

    settings: AccessSettings
    tokens: TokenSettings
    keys: KeyRegistry
    """Of ``API_KEYS``."""
    file: Path | None
    file_keys: KeyRegistry
    generated_key: str
    """A key that was made because others can connect and nobody has one; empty where that is not so."""

    @classmethod
    def read(cls, host: str) -> "AccessConfiguration":
        """Read it for a service that listens on ``host``.

        Raises:
            ConfigurationError: a key, the file or another setting cannot be used.
        """
        settings, tokens = read_settings(AccessSettings), read_settings(TokenSettings)
        keys = read_keys(settings.api_keys.get_secret_value() if settings.api_keys else "")
        file = Path(settings.api_keys_file) if settings.api_keys_file else None
        file_keys = read_key_file(file) if file else KeyRegistry()
        nobody = not keys and file is None and not tokens.is_set
        generated_key = new_key() if nobody and settings.allow_anonymous is None and not is_loopback(host) else ""
        if generated_key:
            keys = KeyRegistry({digest_of(generated_key): Principal("owner")})
        return cls(settings, tokens, keys, file, file_keys, generated_key)

    @property
    def anonymous(self) -> bool | None:
        """Whether to answer without a key; ``None``: to those who connect from this machine."""
        if self.settings.allow_anonymous is not None:
            return self.settings.allow_anonymous
        has_keys = bool(self.keys) or self.file is not None or self.tokens.is_set
        return False if has_keys else None


class Access:
    """Who may ask: what the door of the service needs while it runs."""

    def __init__(self, configuration: AccessConfiguration) -> None:
        settings = configuration.settings
        self._configuration = configuration
        self._generated_key = configuration.generated_key
        self.origins = frozenset(settings.cors_origins)
        """Other origins whose pages may ask."""
        self.authenticator = Authenticator(
            configuration.keys.with_keys(configuration.file_keys),
            anonymous=configuration.anonymous,
            open_paths=settings.open_paths,
            hosts=settings.allowed_hosts,
            proxies=Proxies(settings.trusted_proxies),
        )
        self._file = KeyFile(configuration.file, self._take) if configuration.file else None

    @property
    def needs_key(self) -> bool:
        """Whether nobody is answered without a key, from wherever it asks."""
        return self._configuration.anonymous is False

    def claim_generated_key(self) -> str:
        """The key that was made at start, for whoever says it first; empty to everybody after."""
        made, self._generated_key = self._generated_key, ""
        return made

    def reload(self) -> None:
        """Read the key file again, if there is one; may be called from a signal handler."""
        if self._file is not None:
            self._file.reload()

    @asynccontextmanager
    async def running(self, http: OutboundHttp) -> AsyncGenerator[None, None]:
        """Keep keys up to date as long as the block runs."""
        if generated_key := self.claim_generated_key():  # no server of ours says it
            print(generated_key_notice(generated_key), file=sys.stderr)  # noqa: T201
        async with AsyncExitStack() as stack:
            if self._file is not None:
                await stack.enter_async_context(self._file.watched())
            if self._configuration.tokens.is_set:
                self.authenticator.tokens = Tokens(self._configuration.tokens, http)
            yield

    def _take(self, keys: KeyRegistry) -> None:
        self.authenticator.keys = self._configuration.keys.with_keys(keys)


def generated_key_notice(key: str) -> str:
    """What is said of a key that was made at start."""
    return (
        f"Others can connect and no key is set, so this one was made, for this run: {key}\n"
        "API_KEYS or API_KEYS_FILE set keys that stay; ALLOW_ANONYMOUS=true answers without any."
    )
