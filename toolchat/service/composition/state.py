"""The state store that ``STATE_URL`` names."""

from typing import Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import BaseModel, ConfigDict, Field

from toolchat.errors import ConfigurationError
from toolchat.service.settings.base import NEEDS_A_FILE, source_of
from toolchat.service.settings.service_settings import Settings
from toolchat.state.base import FOREVER, StateStore
from toolchat.state.sqlite import SqliteStateStore
from toolchat.state.sqlite_file import IN_MEMORY
from toolchat.tool_calling.caller import current_client_key

_MEMORY_MB = 64
_FILE_MB = 1024
_FORMS = (
    "must be memory://, sqlite:///relative/path or sqlite:////absolute/path with ?synchronous=full, ?max_mb=N or "
    "both by & if wanted, "
    "redis://[user:password@]host[:port][/number], rediss:// for TLS, or unix://[user:password@]/path[?db=number], "
    "with ?prefix=NAME: if several deployments share the server (valkey:// and valkeys:// are accepted as well), "
    "or postgresql://user:password@host[:port]/database with ?schema=NAME for the same and options of libpq; "
    "the user and the password percent-encoded"
)


def state_store(settings: Settings) -> StateStore:
    """The store that the settings ask for; nothing is opened before it is started.

    Raises:
        ConfigurationError: it cannot be used, or there are several processes and nothing that they share.
    """
    try:
        store = _store(settings)
        store.check()
    except ConfigurationError as error:
        raise ConfigurationError(f"{source_of('REDIS_URL' if settings.redis_url else 'STATE_URL')}: {error}") from None
    if store.kind == "memory" and settings.server_workers > 1:
        told = f"{settings.server_workers} processes do not share memory"
        raise ConfigurationError(f"SERVER_WORKERS: {told}: set STATE_URL to a file or a server, or leave it at 1")
    if settings.session_ttl == FOREVER and not settings.keeps_for_ever:
        raise ConfigurationError(f"SESSION_TTL: {NEEDS_A_FILE}")
    return store


def _store(settings: Settings) -> StateStore:
    url = settings.store_url
    if url.startswith(("sqlite:", "memory:")):
        return _sqlite(url)
    is_postgresql = url.startswith(("postgresql:", "postgres:"))
    package = "psycopg[binary]" if is_postgresql else "redis"
    try:
        if is_postgresql:
            from toolchat.state.postgresql import PostgresqlStateStore

            address, schema = _without_option(url, "schema", "toolchat")
            return PostgresqlStateStore(address, schema=schema, deadline=settings.redis_timeout)
        from toolchat.state.redis import RedisStateStore

        address, prefix = _without_option(url, "prefix", "toolchat:")
        return RedisStateStore(address, prefix=prefix, deadline=settings.redis_timeout)
    except ImportError as missing:  # psycopg's has no name if libpq is missing
        if (missing.name or "psycopg").partition(".")[0] not in ("psycopg", "redis"):
            raise  # the package is there, and lacks something itself
        raise ConfigurationError(f"needs the package {package}: pip install {package}") from None
    except ValueError:
        raise ConfigurationError(_FORMS) from None


def _without_option(url: str, ours: str, default: str) -> tuple[str, str]:
    """The URL without the option that is ours, and the option's value."""
    address, _, query = url.partition("?")
    options = [each.partition("=") for each in query.split("&") if each]
    others = "&".join("".join(each) for each in options if each[0] != ours)
    found = next((unquote(value) for name, _, value in options if name == ours), default)
    return f"{address}?{others}" if others else address, found


def _sqlite(url: str) -> SqliteStateStore:
    parts = urlsplit(url)
    path = IN_MEMORY if parts.scheme == "memory" else unquote(parts.path.removeprefix("/"))
    try:
        options = _Options(**dict(parse_qsl(parts.query, keep_blank_values=True)))
    except ValueError:
        options = None
    if options is None or parts.netloc or not path or (path == IN_MEMORY and parts.path):
        raise ConfigurationError(_FORMS)
    return SqliteStateStore(
        path,
        max_bytes=(options.max_mb or (_MEMORY_MB if path == IN_MEMORY else _FILE_MB)) * 2**20,
        client_key=current_client_key,
        synchronous=options.synchronous == "full",
    )


class _Options(BaseModel):
    """The options behind the path of a file."""

    model_config = ConfigDict(extra="forbid")

    max_mb: int = Field(0, ge=1)
    synchronous: Literal["normal", "full"] = "normal"
