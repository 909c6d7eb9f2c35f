"""All metrics: names, descriptions and labels."""

from app.observability.series import Family

__all__ = ["FAMILIES", "OVERHEAD", "SECONDS", "TOKENS"]

SECONDS = tuple(0.01 * 2**step for step in range(14))
"""0.01 to 81.92: the bucket bounds of OpenTelemetry's GenAI conventions for ``gen_ai.client.operation.duration`` and
``time_to_first_chunk`` (https://github.com/open-telemetry/semantic-conventions-genai)."""
TOKENS = tuple(4**step for step in range(14))
"""1 to 67,108,864: the bounds of the same conventions for ``gen_ai.client.token.usage``."""
OVERHEAD = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)
"""Finer bounds, for short durations within the process."""
_QUESTION = ("route", "form")
_MODEL = ("provider", "model")

INFO = Family("gauge", "info", "Version, chat model and Python", ("version", "chat_model", "python"))

REQUESTS = Family("counter", "requests_total", "HTTP requests", ("route", "outcome"))
QUESTIONS = Family(
    "counter",
    "questions_total",
    "Chat requests and tool runs",
    ("route", "variant", "form", "outcome", "principal"),
)
QUESTION_SECONDS = Family(
    "histogram",
    "question_duration_seconds",
    "Duration of a chat request, to the end of its response",
    _QUESTION,
    SECONDS,
)
FIRST_BYTE_SECONDS = Family(
    "histogram",
    "question_first_byte_seconds",
    "Duration of a chat request, to the first byte of its response",
    _QUESTION,
    SECONDS,
)
OVERHEAD_SECONDS = Family(
    "histogram",
    "question_overhead_seconds",
    "Duration of a chat request, excluding time spent in models and tools",
    _QUESTION,
    OVERHEAD,
)
IN_FLIGHT = Family("gauge", "questions_in_flight", "Chat requests in progress")
REFUSED = Family("counter", "questions_refused_total", "Chat requests refused as overloaded")
QUOTAS_ALONE = Family(
    "gauge", "quotas_alone", "Whether this replica counts shared quotas alone, because Redis is unavailable"
)
QUOTAS_REFUSED = Family("counter", "quotas_refused_total", "Chat requests refused by a quota")
WAIT_SECONDS = Family(
    "histogram",
    "wait_seconds",
    "Waiting time for a quota, a rate limit of an upstream, or a lock",
    ("what",),
    SECONDS,
)

MODEL_TURNS = Family("counter", "model_turns_total", "Model calls, including retries", (*_MODEL, "outcome"))
MODEL_SECONDS = Family(
    "histogram",
    "model_turn_duration_seconds",
    "Duration of a model call, including retries and back-pressure",
    _MODEL,
    SECONDS,
)
MODEL_FIRST_SECONDS = Family(
    "histogram", "model_first_chunk_seconds", "Time to the first chunk of a streamed model call", _MODEL, SECONDS
)
MODEL_TOKENS = Family(
    "histogram", "model_turn_tokens", "Tokens of a model call, as counted by the provider", (*_MODEL, "type"), TOKENS
)
MODEL_CACHED = Family("counter", "model_cached_tokens_total", "Input tokens read from the provider's cache", _MODEL)
MODEL_RETRIES = Family("counter", "model_retries_total", "Retries of model calls", (*_MODEL, "outcome"))
MODEL_FALLBACKS = Family(
    "counter",
    "model_fallbacks_total",
    "Model calls repeated with the next model after a failure",
    (*_MODEL, "outcome"),
)

TOOL_CALLS = Family(
    "counter", "tool_calls_total", "Tool calls", ("tool", "outcome", "error_kind", "cached", "repaired")
)
TOOL_SECONDS = Family("histogram", "tool_call_duration_seconds", "Duration of a tool call", ("tool",), SECONDS)
TOOL_RETRIES = Family("counter", "tool_retries_total", "Retries of tool calls", ("tool",))

UPSTREAM_REQUESTS = Family(
    "counter", "upstream_requests_total", "Requests to upstreams, by status or error", ("upstream", "outcome")
)
BREAKER_OPEN = Family("gauge", "breaker_open", "Whether the circuit of an upstream is open", ("upstream",))
BREAKER_OPENINGS = Family("counter", "breaker_openings_total", "Times that the circuit opened", ("upstream",))
BREAKER_REFUSALS = Family(
    "counter", "breaker_refusals_total", "Requests refused because the circuit was open", ("upstream",)
)
CONNECTIONS_OPENED = Family("counter", "upstream_connections_opened_total", "Connections opened to upstreams")
CONNECTIONS = Family("gauge", "upstream_connections", "Open connections to upstreams")
CLIENTS_REFUSED = Family("counter", "connections_refused_total", "Connections refused for lack of file descriptors")
READERS_LEFT = Family("counter", "slow_readers_left_total", "Unread responses that were cut off to free memory")
MCP_SERVER_UP = Family("gauge", "mcp_server_up", "Whether an MCP server is connected", ("server",))
SPANS_LOST = Family("counter", "spans_lost_total", "Spans that could not be queued or sent")
LOG_LOST = Family("counter", "log_lines_lost_total", "Log lines that could not be written")

SESSIONS = Family("gauge", "sessions_active", "Sessions with a turn that runs or waits in this process")
APPROVALS = Family("counter", "approvals_total", "Turns paused for approval in this process")
STORE_UP = Family("gauge", "state_store_up", "Whether the state store is available", ("kind",))
STORE_FAILURES = Family("counter", "state_store_failures_total", "Failed operations of the state store", ("kind",))
STORE_SECONDS = Family(
    "histogram",
    "state_store_operation_duration_seconds",
    "Duration of an operation of a shared state store",
    ("kind",),
    OVERHEAD,
)

LOOP_LAG = Family("histogram", "event_loop_lag_seconds", "Delay of a timer that fires every second", (), OVERHEAD)
GC_COLLECTIONS = Family("counter", "gc_collections_total", "Garbage collections", ("generation",))
GC_SECONDS = Family("counter", "gc_pause_seconds_total", "Duration of garbage collections", ("generation",))
WORKER_REPLACEMENTS = Family("counter", "worker_replacements_total", "Replacements of worker processes")
WORKERS_UNHEARD = Family("counter", "workers_unheard_total", "Failed requests for the metrics of another worker")
CPU_SECONDS = Family("counter", "process_cpu_seconds_total", "CPU time of the process")
MEMORY = Family("gauge", "process_resident_memory_bytes", "Resident memory of the process")
STARTED = Family("gauge", "process_start_time_seconds", "Start of the process, in Unix time")

FAMILIES = tuple(each for each in globals().copy().values() if isinstance(each, Family))
"""All of them, in the order of the exposition."""
