"""Variables that earlier versions read, each with its successor, or with what holds instead; gone in 0.3."""

from collections.abc import Container, Iterable

__all__ = ["REMOVED", "removed_variables"]

REMOVED = {
    "BAIDU_TRANSLATE_CACHE_SECONDS": "translations are cached for an hour",
    "BAIDU_TRANSLATE_MAX_CHARS": "it follows from BAIDU_TRANSLATE_REQUESTS_PER_SECOND",
    "BAIDU_TRANSLATE_MAX_WAIT": "a call waits for at most 8 s; TOOL_TIMEOUT bounds it as a whole",
    "BAIDU_TRANSLATE_TIMEOUT": "a request takes at most 10 s; TOOL_TIMEOUT bounds the call as a whole",
    "BREAKER_PAUSE": "an open circuit is tried again after 10 s",
    "CONNECT_TIMEOUT": "connecting takes at most 5 s; MODEL_TIMEOUT and TOOL_TIMEOUT bound the call as a whole",
    "EXAMPLES_ZONE": "the articles' examples are in the time zone Asia/Shanghai",
    "HTTP_MAX_CONNECTIONS": "there are 2000; MAX_QUESTIONS limits what uses them",
    "JWT_ALGORITHMS": "all asymmetric signatures are accepted",
    "JWT_NAME_CLAIM": "use JWT_CLAIMS=name=CLAIM",
    "JWT_ROLES_CLAIM": "use JWT_CLAIMS=roles=CLAIM",
    "JWT_TENANT_CLAIM": "use JWT_CLAIMS=tenant=CLAIM",
    "JWT_TOOLS_CLAIM": "use JWT_CLAIMS=tools=CLAIM",
    "MCP_SERVERS_REFRESH_SECONDS": "the tools are listed every 60 s, and when a server reports a change",
    "MCP_SERVERS_START_TIMEOUT": "the start waits for 5 s; the tools of a slower server are added later",
    "QUESTIONS_PER_CLIENT": "it is half of MAX_QUESTIONS; use concurrent in an entry of API_KEYS_FILE for less",
    "SERVER_READ_TIMEOUT": "use SERVER_CLIENT_TIMEOUT",
    "SERVER_WRITE_TIMEOUT": "use SERVER_CLIENT_TIMEOUT",
    "STREAM_KEEP_ALIVE": "a comment is sent after 15 s of silence",
    "TOOL_MAX_CALLS_PER_TOOL": "it is 40; use max_calls in @tool for one tool, and TOOL_MAX_CALLS for all",
    "TOOL_MAX_CONCURRENCY": "8 calls of a message run at once; use exclusive=True in @tool for one after another",
    "TOOL_MAX_IDENTICAL_CALLS": "it is 3; use max_identical_calls in @tool for one tool",
    "TOOL_THREADS": "there are 16 threads; write a tool that often waits as an async function",
    "WEATHER_CACHE_SECONDS": "forecasts are cached for ten minutes",
    "WEATHER_TIMEOUT": "a look-up takes at most 10 s; TOOL_TIMEOUT bounds the call as a whole",
}


def removed_variables(names: Iterable[str], known: Container[str]) -> list[str]:
    """Return a warning for each removed variable among the names, unless a tool module reads one of this name."""
    found = dict.fromkeys(name.upper() for name in names if name.upper() in REMOVED and name.upper() not in known)
    return [f"{name}: is no setting any more, and is ignored: {REMOVED[name]}" for name in found]
