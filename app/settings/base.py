"""Configuration from the environment and ``.env``: read once, validated at start, one line per fault."""

import re
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from toolchat.errors import ConfigurationError

__all__ = [
    "BaseUrl",
    "EnvironmentSettings",
    "Secret",
    "Settings",
    "Texts",
    "Url",
    "environment_name",
    "read_settings",
]


def _stripped(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value


def _in_capitals(value: Any) -> Any:
    return value.strip().upper() if isinstance(value, str) else value


def _listed(value: Any) -> Any:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def _header_safe(value: SecretStr) -> SecretStr:
    text = value.get_secret_value()
    if not (text.isascii() and text.isprintable()):
        raise ValueError("must be printable ASCII without line breaks")
    return value


def _base_url(value: str) -> str:
    if not value.startswith(("http://", "https://")) or not value.isascii() or " " in value:
        raise ValueError("must be a URL that starts with http:// or https://")
    try:
        parts = urlsplit(value)
        # Credentials in it stand in the way of a key, and errors would tell them.
        usable = bool(parts.hostname) and (parts.port is None or parts.port > 0) and "@" not in parts.netloc
    except ValueError:
        usable = False
    if not usable:
        raise ValueError("must be a URL with a host, a port between 1 and 65535 if any, and no user name or password")
    return value.rstrip("/")


def _without_query(value: str) -> str:
    if "?" in value or "#" in value:
        raise ValueError("must be a URL that paths can be put behind: without ? and #")
    return value


def _root_path(value: str) -> str:
    value = value.rstrip("/")
    if value and not re.fullmatch(r"(?:/[A-Za-z0-9._~-]+)+", value):
        raise ValueError("must begin with / and have only letters, digits and . _ ~ - between slashes")
    return value


Secret = Annotated[SecretStr, BeforeValidator(_stripped), AfterValidator(_header_safe)]
"""A key: surrounding blanks are dropped, and it is never printed."""

Texts = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_listed)]
"""Texts, separated by commas."""

Url = Annotated[str, BeforeValidator(_stripped), AfterValidator(_base_url)]
"""A URL without a trailing slash."""

BaseUrl = Annotated[Url, AfterValidator(_without_query)]
"""A URL that paths are put behind."""


class EnvironmentSettings(BaseSettings):
    """Base of every settings class: an empty or blank variable counts as not set, unknown ones are left alone."""

    model_config = SettingsConfigDict(
        env_file=".env", env_file_encoding="utf-8", env_ignore_empty=True, extra="ignore", frozen=True
    )

    @model_validator(mode="before")
    @classmethod
    def _without_blanks(cls, values: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in values.items() if not (isinstance(value, str) and not value.strip())}


class Settings(EnvironmentSettings):
    """What the service as a whole needs; each tool and each provider has its own beside its code."""

    server_host: str = Field("127.0.0.1", description="Address to listen on; 0.0.0.0 in a container")
    server_port: int = Field(8083, ge=0, le=65535, description="Port to listen on; 0 picks a free one")
    server_root_path: Annotated[str, BeforeValidator(_stripped), AfterValidator(_root_path)] = Field(
        "", description="Path prefix that a proxy strips before it hands requests on, such as /ai; none below a host"
    )
    server_workers: int = Field(
        1, ge=1, le=64, description="Processes that answer; more than one needs REDIS_URL, and Linux"
    )
    server_worker_timeout: float = Field(
        30, gt=0, le=600, description="Seconds that one of several workers may show no life before it is replaced"
    )
    server_idle_timeout: float = Field(
        75,
        gt=0,
        le=3600,
        description="Seconds a connection stays open between requests; longer than a balancer keeps it",
    )
    server_read_timeout: float = Field(20, gt=0, le=600, description="Seconds to get headers out, and again for a body")
    server_write_timeout: float = Field(
        20, gt=0, le=600, description="Seconds a client may read nothing of what waits for it, before it counts as gone"
    )
    stream_keep_alive: float = Field(
        15, gt=0, le=600, description="Seconds of silence after which a comment keeps an event stream open"
    )
    openai_api_progress: Literal["", "open-webui"] = Field(
        "", description="open-webui: /v1/chat/completions tells its page what tools do; none: only who asks for it"
    )
    log_level: Annotated[Literal["DEBUG", "INFO", "WARNING", "ERROR"], BeforeValidator(_in_capitals)] = Field(
        "INFO", description="Least severity that is logged"
    )
    chat_provider: Literal["auto", "dashscope", "openai_compatible", "offline"] = Field(
        "auto",
        description="dashscope, openai_compatible, offline, or auto: the first of them whose key is set, else offline",
    )
    system_prompt: str = Field(
        "Answer in the language of the question. When a tool reports an error, say that the look-up failed; "
        "never invent a value that a tool did not return.",
        description="Instructions put above every question",
    )
    redis_url: Secret | None = Field(
        None,
        description="Where replicas share state, such as redis://user:password@host:6379/0, rediss:// or unix://; "
        "none keeps it in memory",
    )
    redis_timeout: float = Field(
        0.5, gt=0, le=60, description="Seconds that Redis has for one operation before it counts as away"
    )
    state_max_entries: int = Field(
        10_000, ge=1, description="Values of each kind kept in memory, 64 MiB in all; the least recently used give way"
    )
    session_ttl: float = Field(
        86_400, gt=0, le=31_536_000, description="Seconds that a conversation is kept after its last turn"
    )
    session_wait: float = Field(
        5, ge=0, le=600, description="Seconds to wait for a running turn of the same session before 409 session-busy"
    )
    memory_max_messages: int = Field(40, ge=2, description="Messages of a conversation that the model is given again")
    memory_max_tokens: int = Field(8000, ge=100, description="Tokens of a conversation, estimated, likewise")
    memory_tool_rounds: bool = Field(False, description="Keep the tool calls and results of a conversation, too")
    request_timeout: float = Field(120, gt=0, le=3600, description="Seconds a whole question may take")
    max_questions: int = Field(2000, ge=1, description="Questions answered at once; one more gets 503 overloaded")
    shutdown_timeout: int = Field(30, ge=0, le=3600, description="Seconds that running answers may take at shutdown")
    model_timeout: float = Field(60, gt=0, le=3600, description="Seconds one turn of the chat model may take")
    model_idle_timeout: float = Field(30, gt=0, le=3600, description="Seconds a streaming chat model may stay silent")
    model_max_attempts: int = Field(3, ge=1, le=10, description="Tries per model turn, before any text has gone out")
    breaker_failures: int = Field(5, ge=0, description="Failures in a row until an upstream is let alone; 0: never")
    breaker_pause: float = Field(10, gt=0, le=3600, description="Seconds without asking it; then one request tries")
    connect_timeout: float = Field(5, gt=0, le=60, description="Seconds to connect to any upstream")
    http_max_connections: int = Field(2000, ge=1, description="Open connections to all upstreams together")
    tool_timeout: float = Field(20, gt=0, le=600, description="Seconds one tool call may take")
    tool_max_concurrency: int = Field(8, ge=1, le=1000, description="Calls of one message that run side by side")
    tool_max_rounds: int = Field(10, ge=1, le=100, description="Rounds of tool calls per question")
    tool_max_calls: int = Field(150, ge=1, description="Tool calls per question")
    tool_max_calls_per_tool: int = Field(40, ge=1, description="Calls of one tool per question")
    tool_max_calls_per_session: int = Field(0, ge=0, description="Tool calls per conversation; 0 for no limit")
    tool_max_identical_calls: int = Field(3, ge=1, description="Calls of one tool with the same arguments per question")
    tool_throw_exception_on_error: bool = Field(
        False, description="A failing tool ends the question with 502 tool-failed instead of being told to the model"
    )
    tool_call_repairs: int = Field(
        0, ge=0, le=10, description="Times per model turn that calls with broken JSON go back to the model at once"
    )
    tool_search_above: int = Field(
        30,
        ge=0,
        description="Most tools that the model is told of; where there are more it searches for those it needs; 0: all",
    )
    tool_result_max_chars: int = Field(32768, ge=256, description="Longest tool result that the model is given")
    tool_threads: int = Field(16, ge=1, le=256, description="Threads for tools that block")


_SettingsT = TypeVar("_SettingsT", bound=EnvironmentSettings)


def environment_name(settings: type[EnvironmentSettings], field: str) -> str:
    """Name the environment variable that a settings field is read from."""
    alias = settings.model_fields[field].validation_alias
    return alias if isinstance(alias, str) else f"{settings.model_config.get('env_prefix', '')}{field}".upper()


def read_settings(settings: type[_SettingsT]) -> _SettingsT:
    """Read a settings class from the environment and ``.env``.

    Raises:
        ConfigurationError: a value cannot be used; one line per fault, each naming its variable, no value shown.
    """
    try:
        return settings()
    except ValidationError as error:
        raise ConfigurationError("\n".join(_fault(settings, fault) for fault in error.errors())) from None


def _fault(settings: type[EnvironmentSettings], fault: Any) -> str:
    field = str(fault["loc"][0]) if fault["loc"] else ""
    name = environment_name(settings, field) if field in settings.model_fields else field.upper()
    return f"{name}: {fault['msg'].removeprefix('Value error, ')}"
