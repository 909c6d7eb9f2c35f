"""Every series that there is: its name, its meaning and its labels."""

from app.observability.series import Family

__all__ = ["FAMILIES", "OVERHEAD", "SECONDS", "TOKENS"]

SECONDS = tuple(0.01 * 2**step for step in range(14))
"""0.01 to 81.92: the bounds of OpenTelemetry's GenAI conventions for ``gen_ai.client.operation.duration`` and
``time_to_first_chunk`` (https://github.com/open-telemetry/semantic-conventions-genai)."""
TOKENS = tuple(4**step for step in range(14))
"""1 to 67,108,864: theirs for ``gen_ai.client.token.usage``."""
OVERHEAD = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)
"""For what the process itself takes, which the others would put into one bucket."""
_QUESTION = ("route", "form")
_MODEL = ("provider", "model")

INFO = Family("gauge", "info", "Version, chat model and Python", ("version", "chat_model", "python"))

REQUESTS = Family("counter", "requests_total", "HTTP requests that were answered", ("route", "outcome"))
QUESTIONS = Family(
    "counter",
    "questions_total",
    "Requests that asked a question or ran a tool",
    ("route", "variant", "form", "outcome", "principal"),
)
QUESTION_SECONDS = Family(
    "histogram", "question_duration_seconds", "From a question's request to the end of its answer", _QUESTION, SECONDS
)
FIRST_BYTE_SECONDS = Family(
    "histogram", "question_first_byte_seconds", "From a question's request to its first byte", _QUESTION, SECONDS
)
OVERHEAD_SECONDS = Family(
    "histogram",
    "question_overhead_seconds",
    "What the service itself took: all but the waiting for models and tools",
    _QUESTION,
    OVERHEAD,
)
IN_FLIGHT = Family("gauge", "questions_in_flight", "Questions that are being answered")
REFUSED = Family("counter", "questions_refused_total", "Questions refused as overloaded")
QUOTAS_ALONE = Family("gauge", "quotas_alone", "Whether shared quotas are counted by this replica alone")
QUOTAS_REFUSED = Family("counter", "quotas_refused_total", "Questions that a quota refused")
WAIT_SECONDS = Family(
    "histogram",
    "wait_seconds",
    "Waiting for a place where a quota limits them, for an upstream's pace, for a lock",
    ("what",),
    SECONDS,
)

MODEL_TURNS = Family("counter", "model_turns_total", "Turns of the chat model, retries included", (*_MODEL, "outcome"))
MODEL_SECONDS = Family(
    "histogram", "model_turn_duration_seconds", "Of a turn, retries and the listener's time included", _MODEL, SECONDS
)
MODEL_FIRST_SECONDS = Family(
    "histogram", "model_first_chunk_seconds", "To the first piece of a streamed turn", _MODEL, SECONDS
)
MODEL_TOKENS = Family(
    "histogram", "model_turn_tokens", "Tokens of a turn, as the provider counts", (*_MODEL, "type"), TOKENS
)
MODEL_CACHED = Family("counter", "model_cached_tokens_total", "Input tokens that the provider had at hand", _MODEL)
MODEL_RETRIES = Family("counter", "model_retries_total", "Turns that were begun again", (*_MODEL, "outcome"))
MODEL_FALLBACKS = Family(
    "counter",
    "model_fallbacks_total",
    "Turns that went on to the next model since this one failed",
    (*_MODEL, "outcome"),
)

TOOL_CALLS = Family(
    "counter", "tool_calls_total", "Tool calls", ("tool", "outcome", "error_kind", "cached", "repaired")
)
TOOL_SECONDS = Family("histogram", "tool_call_duration_seconds", "Of a tool call", ("tool",), SECONDS)
TOOL_RETRIES = Family("counter", "tool_retries_total", "Tool calls that were begun again", ("tool",))

UPSTREAM_REQUESTS = Family(
    "counter", "upstream_requests_total", "Requests to upstreams, by status or error", ("upstream", "outcome")
)
BREAKER_OPEN = Family("gauge", "breaker_open", "Whether an upstream that failed is not asked for now", ("upstream",))
BREAKER_OPENINGS = Family("counter", "breaker_openings_total", "Times that a breaker opened", ("upstream",))
BREAKER_REFUSALS = Family(
    "counter", "breaker_refusals_total", "Requests that an open breaker did not let through", ("upstream",)
)
CONNECTIONS_OPENED = Family("counter", "upstream_connections_opened_total", "Connections to upstreams that were opened")
CONNECTIONS = Family("gauge", "upstream_connections", "Connections to upstreams that are open")
CLIENTS_REFUSED = Family("counter", "connections_refused_total", "Connections that open files do not suffice for")
READERS_LEFT = Family("counter", "slow_readers_left_total", "Long answers that gave way to others, as nobody read them")
MCP_SERVER_UP = Family("gauge", "mcp_server_up", "Whether an MCP server whose tools are offered is there", ("server",))
SPANS_LOST = Family("counter", "spans_lost_total", "Spans of traces that did not arrive, or found no room")
LOG_LOST = Family("counter", "log_lines_lost_total", "Lines of the log that could not be written")

SESSIONS = Family("gauge", "sessions_active", "Conversations with a turn that runs or waits in this process")
APPROVALS = Family("counter", "approvals_total", "Answers that paused for approval at this process")
STORE_UP = Family("gauge", "state_store_up", "Whether the state store can be reached", ("kind",))
STORE_FAILURES = Family("counter", "state_store_failures_total", "Operations that the store failed", ("kind",))
STORE_SECONDS = Family(
    "histogram", "state_store_operation_duration_seconds", "Of an operation of a shared store", ("kind",), OVERHEAD
)

LOOP_LAG = Family("histogram", "event_loop_lag_seconds", "How late a timer rang that rings each second", (), OVERHEAD)
GC_COLLECTIONS = Family("counter", "gc_collections_total", "Garbage collections", ("generation",))
GC_SECONDS = Family("counter", "gc_pause_seconds_total", "What garbage collections took", ("generation",))
WORKER_REPLACEMENTS = Family(
    "counter", "worker_replacements_total", "Times that a worker ended and another took its place"
)
WORKERS_UNHEARD = Family(
    "counter", "workers_unheard_total", "Times that another worker did not tell its figures when they were asked for"
)
CPU_SECONDS = Family("counter", "process_cpu_seconds_total", "CPU time of the process")
MEMORY = Family("gauge", "process_resident_memory_bytes", "Resident memory of the process")
STARTED = Family("gauge", "process_start_time_seconds", "When the process began to count, in Unix time")

FAMILIES = tuple(each for each in globals().copy().values() if isinstance(each, Family))
"""In the order in which they are told."""
