"""The settings of the service as a whole; each tool and each provider declares its own beside its code."""

import re
from base64 import b64decode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, SecretStr, field_validator, model_validator

from toolchat.http.environment import is_public
from toolchat.service.settings.base import EnvironmentSettings, Fixed, Retention, environment_name
from toolchat.tool_calling.setting_types import Secret, Url, strip_text


def _upper_case(value: Any) -> Any:
    return value.strip().upper() if isinstance(value, str) else value


def _require_path_prefix(value: str) -> str:
    value = value.rstrip("/")
    if value and not re.fullmatch(r"(?:/[A-Za-z0-9._~-]+)+", value):
        raise ValueError("must start with / and contain only letters, digits and . _ ~ - between slashes")
    return value


def _decoded(secret: SecretStr) -> bytes:
    try:
        return b64decode(secret.get_secret_value().removeprefix("whsec_"), validate=True)
    except ValueError:
        return b""


_DEFAULT_STATE_URL = "sqlite:///data/toolchat.db"
_SHORTEST_KEY = 24


class Settings(EnvironmentSettings):
    """The service as a whole."""

    server_host: str = Field("127.0.0.1", description="Address to listen on; 0.0.0.0 in a container")
    server_port: int = Field(8083, ge=0, le=65535, description="Port to listen on; 0 picks a free one")
    server_root_path: Annotated[str, BeforeValidator(strip_text), AfterValidator(_require_path_prefix)] = Field(
        "", description="Path below which a proxy serves this service, such as /ai, whether it strips that or not"
    )
    server_workers: int = Field(1, ge=1, le=64, description="Worker processes; more than one does not run on Windows")
    server_worker_timeout: float = Field(
        30,
        ge=3,
        le=600,
        description="Seconds without a heartbeat, or for its start, after which one of several workers is replaced",
    )
    server_idle_timeout: float = Field(
        75,
        gt=0,
        le=3600,
        description="Seconds an idle connection stays open; set it higher than the load balancer's idle timeout",
    )
    server_client_timeout: float = Field(
        20,
        gt=0,
        le=600,
        description="Seconds to receive the request headers, again to receive the body, and that a client may read "
        "nothing of its response before it is disconnected",
    )
    openai_api_progress: Literal["", "open-webui"] = Field(
        "",
        description="open-webui: /v1/chat/completions sends tool progress to every client in Open WebUI's format; "
        "empty: only to clients that request it",
    )
    log_level: Annotated[Literal["DEBUG", "INFO", "WARNING", "ERROR"], BeforeValidator(_upper_case)] = Field(
        "INFO", description="Lowest severity that is logged"
    )
    log_provider_messages: bool = Field(
        False,
        description="Whether logs and traces have the chat provider's own words about a failure, at most 300 "
        "characters; they may quote the conversation",
    )
    chat_provider: Literal["auto", "dashscope", "openai_compatible", "offline", "auto_or_offline"] = Field(
        "auto",
        description="dashscope, openai_compatible, offline, or auto: the first one whose key is set, and without any "
        "key the offline model, but only for this machine; auto_or_offline: the offline model for other clients too",
    )
    chat_fallbacks: Annotated[SecretStr, Fixed] | None = Field(
        None,
        description="Models that are tried in this order when the previous one fails, as JSON: "
        '[{"provider": "openai_compatible", "base_url": "https://...", "api_key": "...", "model": "..."}]; '
        "each but the last is tried once",
    )
    system_prompt: str = Field(
        "Answer in the language of the question. When a tool reports an error, say that it failed; "
        "never invent a value that no tool returned.",
        description="System prompt of every chat request",
    )
    state_url: Annotated[Secret, Fixed] | None = Field(
        None,
        description=f"State store: by default {_DEFAULT_STATE_URL}, a file in the working directory; "
        "redis://user:password@host:6379/0, rediss://, unix:// or postgresql://user:password@host:5432/database for "
        "several machines; memory:// for none. REDIS_URL is another name",
    )
    redis_url: Annotated[Secret, Fixed] | None = Field(
        None, description="Another name of STATE_URL, which it precedes", json_schema_extra={"alias_of": "STATE_URL"}
    )
    redis_timeout: float = Field(
        0.5, gt=0, le=60, description="Seconds an operation of Redis or PostgreSQL may take before it is unavailable"
    )
    session_ttl: Retention = Field(
        86_400,
        description="Seconds a conversation is stored after its last turn, or a time such as 12h or 30d; never: it "
        "does not expire, in a file or PostgreSQL. A key of API_KEYS_FILE can have a session_ttl of its own",
    )
    session_wait: float = Field(
        5, ge=0, le=600, description="Seconds to wait for a running turn of the same session before 409 session-busy"
    )
    audit_days: float = Field(365, gt=0, description="Days the record of a decision about a call is stored")
    approvals_webhook_url: Url | None = Field(
        None,
        description="URL to which approvals by somebody else are posted, each with a link to decide; needs PUBLIC_URL",
    )
    approvals_webhook_secret: Secret | None = Field(
        None, description="Secret that signs what is posted there: whsec_ and at least 24 random bytes in base64"
    )
    approvals_webhook_allow_private: bool = Field(
        False, description="Whether APPROVALS_WEBHOOK_URL may be http and lead to an address that is not public"
    )
    memory_max_messages: int = Field(
        400, ge=2, description="Most messages of a conversation; beyond, the older half is not sent"
    )
    memory_max_tokens: int = Field(
        32_000, ge=100, description="Most estimated tokens of a conversation; beyond, the older half is not sent"
    )
    memory_tool_rounds: bool = Field(False, description="Store the tool calls and results of a conversation as well")
    request_timeout: float = Field(600, gt=0, le=3600, description="Seconds a whole chat request may take")
    question_max_chars: int = Field(
        32_000,
        ge=4000,
        le=1_000_000,
        description="Longest question sent by POST; one in a URL has at most 4000 characters",
    )
    max_questions: int = Field(2000, ge=1, description="Concurrent chat requests; any further one gets 503 overloaded")
    shutdown_timeout: int = Field(
        30, ge=0, le=3600, description="Seconds that running requests may take to finish at shutdown"
    )
    model_timeout: float = Field(
        120, gt=0, le=3600, description="Seconds the model may give no sign of life; any byte of its answer is one"
    )
    model_max_attempts: int = Field(
        3, ge=1, le=10, description="Attempts per model call; none is repeated once text has been sent"
    )
    breaker_failures: int = Field(
        5, ge=0, description="Consecutive failures that open the circuit breaker of an upstream; 0: never"
    )
    tool_timeout: float = Field(20, gt=0, le=600, description="Seconds one tool call may take")
    tool_max_rounds: int = Field(10, ge=1, le=100, description="Rounds of tool calls per chat request")
    tool_max_calls: int = Field(150, ge=1, description="Tool calls per chat request, and model calls of its tools")
    tool_max_calls_per_session: int = Field(0, ge=0, description="Tool calls per conversation; 0: no limit")
    tool_throw_exception_on_error: bool = Field(
        False, description="true: a failing tool ends the request with 502 tool-failed; false: the model gets the error"
    )
    tool_call_repairs: int = Field(
        0, ge=0, le=10, description="Times per model call that tool calls with broken JSON are returned to the model"
    )
    tool_search_above: int = Field(
        30, ge=0, description="Number of tools above which the model searches for tools by keyword; 0: never"
    )
    tool_result_max_chars: int = Field(32768, ge=256, description="Longest tool result that is sent to the model")

    @field_validator("approvals_webhook_secret")
    @classmethod
    def _is_key(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and len(_decoded(value)) < _SHORTEST_KEY:
            raise ValueError("must be whsec_ and at least 24 random bytes in base64: openssl rand -base64 32")
        return value

    @model_validator(mode="after")
    def _may_post(self) -> "Settings":
        if self.approvals_webhook_url is None:
            return self
        if self.approvals_webhook_secret is None:
            raise ValueError("APPROVALS_WEBHOOK_URL needs APPROVALS_WEBHOOK_SECRET")
        url = urlsplit(self.approvals_webhook_url)
        if not self.approvals_webhook_allow_private and (url.scheme != "https" or not is_public(url.hostname or "")):
            told = "must be https and lead to a public address, unless APPROVALS_WEBHOOK_ALLOW_PRIVATE=true"
            raise ValueError(f"APPROVALS_WEBHOOK_URL {told}")
        return self

    @property
    def webhook_key(self) -> bytes:
        """The key that signs what is posted."""
        return _decoded(self.approvals_webhook_secret or SecretStr(""))

    @property
    def keeps_for_ever(self) -> bool:
        """Whether the state store can store something that does not expire."""
        return self.store_url.startswith(("sqlite:", "postgresql:", "postgres:"))

    @property
    def store_url(self) -> str:
        """The URL of the state store."""
        url = self.redis_url or self.state_url
        return url.get_secret_value() if url else _DEFAULT_STATE_URL


_INNER_LIMITS = {
    "tool_timeout": (),
    "request_timeout": ("model_timeout", "tool_timeout", "session_wait", "server_client_timeout"),
    "session_ttl": ("request_timeout",),
}
"""The limits inside each limit. SHUTDOWN_TIMEOUT is not one: requests may run longer than it on purpose."""
_TOOL_CALL_LIMIT = "timeout"
"""The setting by which a tool module limits one call of its tools."""

_Limit = tuple[str, float]


def inverted_time_limits(settings: Settings, modules: Iterable[BaseModel], lock: float) -> Iterator[str]:
    """Yield a warning for each limit that is shorter than a limit inside it.

    Args:
        settings: the settings of the service.
        modules: the settings of the registered tool modules.
        lock: seconds after which a conversation's lock expires unless it is renewed.
    """
    tool_calls = [_limit(each, _TOOL_CALL_LIMIT) for each in modules if _TOOL_CALL_LIMIT in type(each).model_fields]
    for outer, names in _INNER_LIMITS.items():
        inner = [_limit(settings, name) for name in names] + (tool_calls if outer == "tool_timeout" else [])
        yield from _warnings(_limit(settings, outer), inner)
    # A lock is renewed after a third of its lifetime: a renewal slower than the other two thirds comes too late.
    rest = ("two thirds of the lifetime of a conversation's lock", lock * 2 / 3)
    yield from _warnings(rest, [_limit(settings, "redis_timeout")])


def _limit(settings: BaseModel, field: str) -> _Limit:
    return environment_name(type(settings), field), getattr(settings, field)


def _warnings(outer: _Limit, inner: Iterable[_Limit]) -> Iterator[str]:
    longer = " and ".join(f"{name} ({seconds:g} s)" for name, seconds in inner if seconds > outer[1])
    if longer:
        yield f"{longer} should not be longer than {outer[0]} ({outer[1]:g} s), which ends first"


@dataclass(frozen=True, slots=True)
class Tuning:
    """Values of the service that are no environment variables; a test passes others."""

    stream_keep_alive: float = 15
    """Seconds of silence after which an event stream sends a comment: proxies close a silent one after 30 to 60."""
    stream_begin: float = 3
    """Seconds after which a stream begins though the model is silent; before, an error has a status of its own."""
    breaker_pause: float = 10
    """Seconds a circuit stays open before a trial request: short for a client that retries, long for an upstream."""
    tool_server_wait: float = 5
    """Seconds until the service is ready without an MCP server: most list their tools in two, others join later."""
    tool_list_refresh: float = 60
    """Seconds between two requests for an MCP server's list of tools, for servers that do not report changes."""
    webhook_pause: float = 5
    """Seconds before the second try of an event for the webhook, and between looks for those of other processes."""
