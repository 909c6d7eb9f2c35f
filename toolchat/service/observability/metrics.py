"""All metrics: names, descriptions and labels, by ``prometheus_client``."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from mmap import PAGESIZE
from pathlib import Path
from typing import Any, TypeVar

from prometheus_client import Counter, Gauge, Histogram, Summary, disable_created_metrics
from prometheus_client.metrics import MetricWrapperBase

OTHER = "other"
"""Label value for unknown names, and for names beyond a limit."""
_MAX_LABELLED = 2000
"""Combinations of label values per metric."""
# Each bound is a series per combination of labels, and a report costs some 10 microseconds per series.
_SECONDS = tuple(0.02 * 4**step for step in range(7))
"""0.02 to 81.92: every second bound of OpenTelemetry's GenAI conventions for ``gen_ai.client.operation.duration``
(https://github.com/open-telemetry/semantic-conventions-genai)."""
_OVERHEAD = (0.0005, 0.002, 0.01, 0.05, 0.2, 1, 5)
"""Finer bounds, for short durations within the process."""
_QUESTION = ("route", "form")
_MODEL = ("provider", "model")

disable_created_metrics()
_durations = partial(Histogram, buckets=_SECONDS)
_overheads = partial(Histogram, buckets=_OVERHEAD)
_sum = partial(Gauge, multiprocess_mode="livesum")  # over the workers
_highest = partial(Gauge, multiprocess_mode="livemax")
_lowest = partial(Gauge, multiprocess_mode="livemin")

INFO = _highest("toolchat_info", "Version, chat model and Python", ("version", "chat_model", "python"))

REQUESTS = Counter("toolchat_requests_total", "HTTP requests", ("route", "outcome"))
QUESTIONS = Counter(
    "toolchat_questions_total", "Chat requests and tool runs", ("route", "variant", "form", "outcome", "principal")
)
QUESTION_SECONDS = _durations(
    "toolchat_question_duration_seconds", "Duration of a chat request, to the end of its response", _QUESTION
)
FIRST_BYTE_SECONDS = _durations(
    "toolchat_question_first_byte_seconds", "Duration of a streamed chat request, to its first byte", ("route",)
)
OVERHEAD_SECONDS = _overheads(
    "toolchat_question_overhead_seconds",
    "Duration of a chat request, excluding time spent in models and tools",
    ("route",),
)
IN_FLIGHT = _sum("toolchat_questions_in_flight", "Chat requests in progress")
REFUSED = Counter("toolchat_questions_refused_total", "Chat requests refused as overloaded")
QUOTAS_ALONE = _highest(
    "toolchat_quotas_alone", "Whether this replica counts shared quotas alone, because Redis is unavailable"
)
QUOTAS_REFUSED = Counter("toolchat_quotas_refused_total", "Chat requests refused by a quota")
WAIT_SECONDS = _durations(
    "toolchat_wait_seconds", "Waiting time for a quota, a rate limit of an upstream, or a lock", ("what",)
)

MODEL_TURNS = Counter("toolchat_model_turns_total", "Model calls, including retries", (*_MODEL, "outcome"))
MODEL_SECONDS = _durations(
    "toolchat_model_turn_duration_seconds", "Duration of a model call, including retries and back-pressure", _MODEL
)
MODEL_FIRST_SECONDS = _durations(
    "toolchat_model_first_chunk_seconds", "Time to the first chunk of a streamed model call", _MODEL
)
MODEL_TOKENS = Summary(
    "toolchat_model_turn_tokens", "Tokens of a model call, as counted by the provider", (*_MODEL, "type")
)
MODEL_CACHED = Counter("toolchat_model_cached_tokens_total", "Input tokens read from the provider's cache", _MODEL)
MODEL_TEXT_CALLS = Counter("toolchat_model_text_calls_total", "Tool calls that the model wrote as text", _MODEL)
MODEL_TOOLS_LEFT_OUT = Counter(
    "toolchat_model_tools_left_out_total", "Model calls without a tool that the provider refuses", (*_MODEL, "tool")
)
MODEL_RETRIES = Counter("toolchat_model_retries_total", "Retries of model calls", (*_MODEL, "outcome"))
MODEL_FALLBACKS = Counter(
    "toolchat_model_fallbacks_total", "Model calls repeated with the next model after a failure", (*_MODEL, "outcome")
)

TOOL_CALLS = Counter("toolchat_tool_calls_total", "Tool calls", ("tool", "outcome", "error_kind", "cached", "repaired"))
TOOL_SECONDS = _durations("toolchat_tool_call_duration_seconds", "Duration of a tool call", ("tool",))
TOOL_RETRIES = Counter("toolchat_tool_retries_total", "Retries of tool calls", ("tool",))
TOOL_THREADS = _sum("toolchat_tool_threads", "Threads that calls of a tool occupy", ("tool",))
TOOL_CALLS_WAITING = _sum("toolchat_tool_calls_waiting", "Calls of a tool that wait for a thread", ("tool",))

UPSTREAM_REQUESTS = Counter(
    "toolchat_upstream_requests_total", "Requests to upstreams, by status or error", ("upstream", "outcome")
)
BREAKER_OPEN = _highest("toolchat_breaker_open", "Whether the circuit of an upstream is open", ("upstream",))
BREAKER_OPENINGS = Counter("toolchat_breaker_openings_total", "Times that the circuit opened", ("upstream",))
BREAKER_REFUSALS = Counter(
    "toolchat_breaker_refusals_total", "Requests refused because the circuit was open", ("upstream",)
)
CONNECTIONS_OPENED = Counter("toolchat_upstream_connections_opened_total", "Connections opened to upstreams")
CONNECTIONS = _sum("toolchat_upstream_connections", "Open connections to upstreams")
CLIENTS_REFUSED = Counter("toolchat_connections_refused_total", "Connections refused for lack of file descriptors")
READERS_LEFT = Counter("toolchat_slow_readers_left_total", "Unread responses that were cut off to free memory")
MCP_SERVER_UP = _lowest("toolchat_mcp_server_up", "Whether an MCP server is connected", ("server",))
MCP_TOOLS_DROPPED = _highest("toolchat_mcp_tools_dropped", "Tools of an MCP server that cannot be used", ("server",))
SPANS_LOST = Counter("toolchat_spans_lost_total", "Spans that could not be sent")
LOG_LOST = Counter("toolchat_log_lines_lost_total", "Log lines that could not be written")

SESSIONS = _sum("toolchat_sessions_active", "Sessions with a turn that runs or waits in this process")
APPROVALS = Counter("toolchat_approvals_total", "Turns paused for approval in this process")
WEBHOOK = Counter(
    "toolchat_approvals_webhook_total", "Tries to post an event about an approval, and events given up", ("outcome",)
)
STORE_UP = _lowest("toolchat_state_store_up", "Whether the state store is available", ("kind",))
STORE_BYTES = _highest(
    "toolchat_state_store_bytes", "Bytes that count for the limit of a store in a file or in memory", ("kind",)
)
STORE_LIMIT = _highest(
    "toolchat_state_store_limit_bytes", "Bytes beyond which a store in a file or in memory evicts", ("kind",)
)
STORE_FAILURES = Counter("toolchat_state_store_failures_total", "Failed operations of the state store", ("kind",))
STORE_SECONDS = _overheads(
    "toolchat_state_store_operation_duration_seconds", "Duration of an operation of a shared state store", ("kind",)
)

LOOP_LAG = _overheads("toolchat_event_loop_lag_seconds", "Delay of a timer that fires every second")
MEMORY = _sum("toolchat_memory_bytes", "Resident memory, of all workers together")
WORKER_REPLACEMENTS = Counter("toolchat_worker_replacements_total", "Replacements of worker processes")

_MetricT = TypeVar("_MetricT", Counter, Gauge, Histogram, Summary)
_children: defaultdict[MetricWrapperBase, dict[tuple[str, ...], Any]] = defaultdict(dict)


def labelled(metric: _MetricT, *values: str) -> _MetricT:
    """Return the metric with these label values; beyond a limit of combinations, with each value ``other``."""
    children = _children[metric]
    child: _MetricT | None = children.get(values)
    if child is None:
        if len(children) >= _MAX_LABELLED:
            return metric.labels(*[OTHER] * len(values))
        child = children[values] = metric.labels(*values)
    return child


class Growth:
    """Adds the growth of a total that is counted elsewhere to a counter."""

    def __init__(self, counter: Counter) -> None:
        self._counter, self._seen = counter, 0

    def update(self, total: int) -> None:
        """Add what the total has grown since the last call; it may have begun anew."""
        self._counter.inc(max(0, total - self._seen))
        self._seen = total


class BoundedNames:
    """Limits the number of different names from outside: every further one is ``other``."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: set[str] = set()

    def of(self, name: str) -> str:
        """Return the name, or ``other`` if it is new and the limit is reached."""
        if name not in self._known:
            if len(self._known) >= self._limit:
                return OTHER
            self._known.add(name)
        return name


@asynccontextmanager
async def watched(update: Callable[[], None]) -> AsyncGenerator[None, None]:
    """Within the block, call ``update`` every second and measure by how much that is late, as everything else is."""
    task = asyncio.create_task(_watch(update))
    try:
        yield
    finally:
        task.cancel()


async def _watch(update: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + 1
        await asyncio.sleep(1)
        LOOP_LAG.observe(max(0.0, loop.time() - due))
        MEMORY.set(_resident_bytes())
        update()


def _resident_bytes() -> int:
    """Resident memory of this process; 0 if the system has no ``/proc``."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * PAGESIZE
    except OSError:
        return 0
