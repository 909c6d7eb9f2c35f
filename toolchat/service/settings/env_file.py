"""Variables that no setting reads: broken lines of ``.env``, mistyped names, and variables of earlier versions."""

import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from toolchat.errors import ConfigurationError
from toolchat.service.settings.base import EnvironmentSettings, environment_name
from toolchat.service.settings.typos import TypoIndex, suggest

REMOVED = {
    "BAIDU_TRANSLATE_CACHE_SECONDS": "translations are cached for an hour",
    "BAIDU_TRANSLATE_MAX_CHARS": "it follows from BAIDU_TRANSLATE_REQUESTS_PER_SECOND",
    "BAIDU_TRANSLATE_MAX_WAIT": "a call waits for at most 8 s; TOOL_TIMEOUT bounds it as a whole",
    "BAIDU_TRANSLATE_TIMEOUT": "a request takes at most 10 s; TOOL_TIMEOUT bounds the call as a whole",
    "BREAKER_PAUSE": "an open circuit is tried again after 10 s",
    "CONNECT_TIMEOUT": "connecting takes at most 5 s; MODEL_TIMEOUT and TOOL_TIMEOUT bound the call as a whole",
    "DASHSCOPE_ENABLE_THINKING": 'use DASHSCOPE_OPTIONS={"extra_body": {"enable_thinking": true}}',
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
    "STATE_MAX_ENTRIES": "use STATE_URL=sqlite:///data/toolchat.db?max_entries=N",
    "STREAM_KEEP_ALIVE": "a comment is sent after 15 s of silence",
    "TOOL_MAX_CALLS_PER_TOOL": "it is 40; use max_calls in @tool for one tool, and TOOL_MAX_CALLS for all",
    "TOOL_MAX_CONCURRENCY": "8 calls of a message run at once; use exclusive=True in @tool for one after another",
    "TOOL_MAX_IDENTICAL_CALLS": "it is 3; use max_identical_calls in @tool for one tool",
    "TOOL_THREADS": "there are 16 threads; write a tool that often waits as an async function",
    "WEATHER_CACHE_SECONDS": "forecasts are cached for ten minutes",
    "WEATHER_TIMEOUT": "a look-up takes at most 10 s; TOOL_TIMEOUT bounds the call as a whole",
}
"""Variables that earlier versions read, each with its successor, or with what holds instead; gone in 0.3."""


def check_env_file(path: Path) -> list[str]:
    """Check that every line of ``.env`` can be parsed; python-dotenv would skip a broken line silently.

    Returns:
        The names of the variables that it sets, in their order.

    Raises:
        ConfigurationError: a line cannot be parsed, or the path is not a file.
    """
    from dotenv.parser import parse_stream

    if not path.exists() and not path.is_symlink():
        return []
    if not path.is_file():
        raise ConfigurationError(".env: is not a file")
    try:
        with path.open(encoding="utf-8") as stream:
            bindings = list(parse_stream(stream))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f".env: cannot be read ({type(error).__name__})") from None
    if lines := [binding.original.line for binding in bindings if binding.error]:
        raise ConfigurationError("\n".join(f".env: line {line} cannot be read" for line in lines[:10]))
    return [binding.key for binding in bindings if binding.key]


def known_variables() -> set[str]:
    """Return every variable that the imported settings classes read, including those of the tool modules."""
    # A class with subclasses is the base of the tool modules' settings and reads no variable itself.
    classes = [each for each in _subclasses(EnvironmentSettings) if not each.__subclasses__()]
    return {environment_name(each, field) for each in classes for field in each.model_fields}


def unread_variables(in_file: Iterable[str], known: Collection[str]) -> list[str]:
    """Return a warning for each variable that was removed, or that no setting reads although it looks intended for us.

    Every variable in ``.env`` is, except those of Docker Compose. The environment is full of other programs'
    variables, so only those one typo away from a known name are reported.
    """
    written = {name.upper(): name for name in in_file if not name.upper().startswith("COMPOSE_")}
    names = dict.fromkeys([*written, *(name.upper() for name, value in os.environ.items() if value.strip())])
    removed = [name for name in names if name in REMOVED and name not in known]
    lines = [f"{name}: is no setting any more, and is ignored: {REMOVED[name]}" for name in removed]
    typos = TypoIndex(known)
    for name in (each for each in names if each not in REMOVED):
        similar = None if name in known else typos.find(name) or (suggest(name, known) if name in written else None)
        if similar or (name in written and name not in known):
            hint = f"; did you mean {similar}?" if similar else ""
            lines.append(f"{written.get(name, name)}: no setting has this name{hint}")
    return lines


def _subclasses(kind: type[EnvironmentSettings]) -> Iterator[type[EnvironmentSettings]]:
    for each in kind.__subclasses__():
        yield each
        yield from _subclasses(each)
