"""The mechanisms that rows claim to test: how each is taken out of the code, and the rows that must fail without it."""

from dataclasses import dataclass
from pathlib import Path

__all__ = ["MECHANISMS", "Mechanism"]


@dataclass(frozen=True)
class Mechanism:
    """A mechanism, and the change of the code that takes it out."""

    name: str
    file: str
    code: str
    """A text that occurs once in the file."""
    without: str
    """What takes its place."""
    rows: tuple[str, ...]
    """All of them must fail."""

    def remove_from(self, root: Path) -> None:
        """Take the mechanism out of a copy of the code.

        Raises:
            ValueError: the code has changed: the text does not occur once.
        """
        path = root / self.file
        text = path.read_text(encoding="utf-8")
        if text.count(self.code) != 1:
            raise ValueError(f"{self.name}: its text occurs {text.count(self.code)} times in {self.file}")
        path.write_text(text.replace(self.code, self.without), encoding="utf-8")


_IS_FINAL = "if not error.retryable or attempt >= most or late:"

# By file: the mechanism, its text in the file, what takes the text's place, and the rows.
_CHANGES: dict[str, list[tuple[str, str, str, str]]] = {
    "toolchat/state/redis.py": [
        ("expiry of stored records", "ARGV[write.v], 'PX', write.px)", "ARGV[write.v])", "sessions-expire"),
    ],
    "toolchat/state/sqlite_file.py": [
        ("commit to the file before the answer", 'database.execute("COMMIT")', 'database.execute("ROLLBACK")',
         "a-process-killed-with-its-file"),
        ("wait for another process that writes to the file", "round(1000 * busy_seconds)", "0",
         "a-file-whose-writes-are-slow"),
    ],
    "toolchat/state/watched.py": [
        ("deadline of Redis", "self._task.cancel()", "pass", "redis-stopped redis-replies-stall"),
        ("refusal at once while Redis is unavailable",
         "self.available = False\n            self._became", "self._became",
         "redis-known-to-be-stopped no-silent-degradation"),
        ("rate of log lines about Redis", "if time.monotonic() - self._warned_at >= _WARNING_SECONDS:", "if True:",
         "no-silent-degradation"),
    ],
    "toolchat/state/base.py": [
        ("fence of a session and of an idempotency key", "return {self.name: (self.token, None)}", "return {}",
         "a-replica-stopped-beyond-its-lock a-replica-stopped-before-it-claims-a-key "
         "a-process-stopped-beyond-its-lock-in-a-file"),
        ("lock of a session", "checks={lock.name: (None, _FREE)}", "checks={}",
         "one-session-by-many-at-once one-session-in-a-file-by-many-at-once"),
        ("release of a lock that Redis grants too late", "self._release_later(lock, ttl)", "pass",
         "a-session-after-a-stall"),
        ("check of stored values", "except (ValueError, LookupError, TypeError, AttributeError) as error:",
         "except ZeroDivisionError as error:", "spoilt-values"),
    ],
    "toolchat/state/locks.py": [
        ("renewal of locks", "self._run_shielded(self._renew(queue, lock))", "pass", "a-turn-longer-than-its-lock"),
        ("limit of the wait for a session", "async with asyncio.timeout_at(deadline):", "if turn:",
         "waiting-for-one-session"),
        ("turns of clients in a session's queue", "self.waiting.setdefault(client_key, deque())",
         "self.waiting.setdefault('', deque())", "a-stranger-floods-a-session"),
    ],
    "toolchat/service/api/idempotency.py": [
        ("lock of an idempotency key", "self._locks.hold(_key(idempotent))",
         "self._locks.hold(f'{_key(idempotent)}{id(stack)}')", "one-key-at-two-replicas"),
        ("record that a request with a key has started", "            await self._store.save(self._idempotent, lock)\n",
         "            pass\n", "a-key-whose-replica-died"),
        ("stored result of an idempotency key", "return ChatResponse(*entry.answer) if entry.answer else None",
         "return None", "one-key-fifty-times one-key-at-two-replicas"),
    ],
    "toolchat/service/api/approvals.py": [
        ("claim of an approval", "if not outcome.is_done:", "if False:", "one-approval-at-two-replicas"),
    ],
    "toolchat/service/api/dependencies.py": [
        ("owner in the names of stored data", "return current_request_caller().principal.owner + name", "return name",
         "what-another-key-has-stored"),
        ("refusal of other sites' pages",
         "if not (current_request_caller().principal.name or _has_key_header(request) or _is_allowed(request)):",
         "if False:", "cross-site-fetch cross-site-origin cross-site-referer same-site-fetch"),
    ],
    "toolchat/service/api/sessions.py": [
        ("pattern of session ids (CR and LF)", "if not _SESSION_ID.fullmatch(given):", "if False:",
         "session-injection"),
    ],
    "toolchat/service/api/guard.py": [
        ("exactly one `Host`", "            _check_host(scope)\n", "", "no-host two-hosts"),
        ("cancellation when a client leaves", "            task.cancel()\n\n    stop", "            pass\n\n    stop",
         "leavers-before-the-first-token leavers-of-whole-answers"),
    ],
    "toolchat/service/access/hosts.py": [
        ("check of `Host`", "if not (name in allowed or _is_localhost(name) or is_address(name)):", "if False:",
         "foreign-host host-with-a-user"),
    ],
    "toolchat/service/api/body_limits.py": [
        ("size of a body", "if size > longest:", "if False:", "long-body announced-too-long"),
        ("time for a body", "async with asyncio.timeout(self._seconds):", "async with asyncio.timeout(None):",
         "slow-bodies"),
    ],
    "toolchat/service/server/http_protocol.py": [
        ("size of headers", 'raise httptools.HttpParserError("headers too large")', "pass", "huge-header many-headers"),
        ("time for headers (slow-loris)", "self._timer = self.loop.call_later(seconds, self.transport.close)", "pass",
         "half-sent-headers"),
    ],
    "toolchat/service/server/client_limits.py": [
        ("limit of connections", "if connections <= self.max_connections:", "if True:",
         "open-files-used-up used-up-files-are-told-once"),
        ("time for a client to read", '("TCP_USER_TIMEOUT", round(self.timeout * 1000)), ', "",
         "a-slow-reader-is-hung-up-on"),
    ],
    "toolchat/service/api/service.py": [
        ("concurrency limit", "is_full, held = self.in_flight >= self._limit,", "is_full, held = False,",
         "more-questions-than-places"),
        ("concurrency limit of one client", "if is_full or held >= self._per_client:", "if is_full:",
         "one-client-takes-all-places"),
    ],
    "toolchat/service/access/quotas.py": [
        ("requests per minute of all replicas",
         "self._store, self._own = store, SqliteStateStore()", "self._store = self._own = SqliteStateStore()",
         "a-rate-limit-of-two-replicas"),
    ],
    "toolchat/service/access/usage.py": [
        ("requests per minute", "if limits.interval and self.even > latest", "if False", "a-rate-limit-is-kept"),
        ("tokens per day", "and self.tokens >= most:", "and False:", "a-token-limit-is-kept"),
    ],
    "toolchat/service/server/runner.py": [
        ("drain on SIGTERM", "            if time.monotonic() < self._drain_until:\n                return False\n", "",
         "questions-while-draining"),
        ("`SHUTDOWN_TIMEOUT`", "if time.monotonic() < self._drain_until:", "if True:",
         "streams-longer-than-the-grace"),
    ],
    "toolchat/service/server/workers.py": [
        ("replacement of a worker that hangs", '"timeout": math.ceil(settings.server_worker_timeout),',
         '"timeout": 0,', "a-worker-that-hangs"),
    ],
    "toolchat/service/api/responses/event_stream.py": [
        ("`error` event of a stream", "await self.write(self.on_error(last), is_last=True)", "pass",
         "upstream-reset-stream streams-longer-than-the-grace"),
        ("comments in a silent stream", "await self.write(self.keep_alive())", "pass", "silence-within-a-stream"),
    ],
    "toolchat/service/api/responses/active_request.py": [
        ("time limit of a question", "ModelTimeouts(deadline=inf, idle=limit,", "ModelTimeouts(deadline=inf, idle=inf,",
         "upstream-slower-than-the-question upstream-that-never-ends"),
    ],
    "toolchat/models/resilience.py": [
        ("limit of a model's silence", "idle=self._idle_timeout", "idle=self._total_timeout",
         "upstream-frozen-mid-stream upstream-frozen-stream upstream-frozen"),
        ("no retry after a model's silence", " or timeouts.expired", "", "upstream-frozen-stream upstream-frozen"),
        ("retries of a model call", _IS_FINAL, "if True:", "upstream-500-once upstream-reset-once upstream-429-once"),
        ("limit of retries", _IS_FINAL, "if not error.retryable or late:", "upstream-500 upstream-retries-are-bounded"),
        ("no retry once a client has text", "is_final = listener.has_text or", "is_final =",
         "upstream-cut-stream upstream-no-end"),
    ],
    "toolchat/models/openai/model.py": [
        ("a partial answer is discarded", "if not turn.finished:", "if False:",
         "upstream-no-end upstream-cut-in-a-session"),
    ],
    "toolchat/http/breakers.py": [
        ("circuit breaker", "return 0 < self._max_failures <= self._failed", "return False", "upstream-comes-back"),
    ],
    "toolchat/http/pool.py": [
        ("connect limit", "aiohttp.ClientTimeout(connect=limits.connect_timeout)", "aiohttp.ClientTimeout()",
         "upstream-that-does-not-connect"),
        ("refusal of redirects", "if not 200 <= response.status < 300:", "if False:",
         "upstream-redirects"),
        ("size of an upstream's response", "if size > max_bytes:", "if size > 30 * max_bytes:",
         "upstream-endless-body upstream-gzip-bomb"),
        ("proxies of the environment", "proxy=proxy and proxy.url,", "proxy=None,",
         "a-forward-proxy-for-https a-forward-proxy-for-http"),
    ],
    "toolchat/http/environment.py": [
        ("check of certificates", "context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)",
         "context = ssl._create_unverified_context()", "upstream-with-a-foreign-certificate"),
    ],
    "toolchat/chat/advisors/tool_loop.py": [
        ("refusal of calls that were cut off", "if response.finish_reason in CUT:", "if False:",
         "a-call-cut-by-the-length-limit"),
        ("limit of rounds", "self.rounds >= max_rounds or (bool(", "(bool(", "a-model-that-calls-for-ever"),
    ],
    "toolchat/tool_calling/limits.py": [
        ("limit of a tool's calls", "if len(earlier) >= per_tool:", "if False:", "many-calls-at-once"),
        ("limit of identical calls", "if repeated else None", "if False else None", "a-model-that-repeats-itself"),
    ],
    "toolchat/tool_calling/input_validation.py": [
        ("length of arguments", "if len(tool_input) > _MAX_INPUT_CHARS:", "if False:", "arguments-huge"),
    ],
    "toolchat/tool_calling/manager.py": [
        ("retries of a tool", "for attempt in range(self.callback.metadata.retries):", "for attempt in range(0):",
         "tool-fails-twice"),
        ("time limit of a tool", "timer = loop.call_later(self.seconds, resolve_future, ended)",
         "timer = loop.call_later(3600, resolve_future, ended)", "tool-hangs tools-side-by-side"),
        ("length of a result", "result=shorten(result.text, self.max_result_chars),", "result=result.text,",
         "tool-gives-50-mb"),
    ],
    "toolchat/tool_calling/exception_processor.py": [
        ("secrecy of exceptions", 'ToolExecutionError("the tool failed", kind=', "ToolExecutionError(str(error), kind=",
         "tool-raises"),
    ],
    "app/tools/baidu_translate/rate_limiter.py": [
        ("rate of requests to Baidu", "if wait <= 0 and not self._lines:", "if True:", "translations-beyond-the-plan"),
        ("turns of clients in the queue for Baidu", "self._lines.setdefault(client_key, deque())",
         "self._lines.setdefault('', deque())", "translations-of-another-client"),
    ],
}  # fmt: skip

MECHANISMS: tuple[Mechanism, ...] = tuple(
    Mechanism(name, file, code, without, tuple(rows.split()))
    for file, changes in _CHANGES.items()
    for name, code, without, rows in changes
)
