"""Settings that cannot be, or that cannot be meant."""

import re
import time

from tests.faults.fault import Bound, Fault, Measure, enter, fault, held
from tests.faults.stage import Stage
from tests.faults.waiting import until

_REFUSED: dict[str, tuple[str, dict[str, str], str]] = {
    "a-port-that-is-no-number": ("`SERVER_PORT=abc`", {"SERVER_PORT": "abc"}, "SERVER_PORT"),
    "a-port-beyond-all": ("`SERVER_PORT=70000`", {"SERVER_PORT": "70000"}, "SERVER_PORT"),
    "a-negative-time-limit": ("`MODEL_TIMEOUT=-1`", {"MODEL_TIMEOUT": "-1"}, "MODEL_TIMEOUT"),
    "a-time-limit-that-is-nan": ("`REQUEST_TIMEOUT=nan`", {"REQUEST_TIMEOUT": "nan"}, "REQUEST_TIMEOUT"),
    "an-address-that-is-none": ("`OPENAI_BASE_URL=nonsense`", {"OPENAI_BASE_URL": "nonsense"}, "OPENAI_BASE_URL"),
    "an-address-with-a-password": ("A password inside `OPENAI_BASE_URL` beside a key",
                                   {"OPENAI_BASE_URL": "http://u:canary@127.0.0.1/v1"}, "OPENAI_BASE_URL"),
    "redis-by-a-foreign-scheme": ("`REDIS_URL=http://127.0.0.1`", {"REDIS_URL": "http://127.0.0.1"}, "REDIS_URL"),
    "an-unknown-provider": ("`CHAT_PROVIDER=nope`", {"CHAT_PROVIDER": "nope"}, "CHAT_PROVIDER"),
    "a-provider-without-its-key": ("`CHAT_PROVIDER=dashscope` without its key",
                                   {"CHAT_PROVIDER": "dashscope"}, "DASHSCOPE_API_KEY"),
    "a-key-with-a-newline": ("A newline inside `OPENAI_API_KEY`", {"OPENAI_API_KEY": "sk-\ncanary"}, "OPENAI_API_KEY"),
    "keys-that-are-no-digests": ("`API_KEYS=me=secret`", {"API_KEYS": "me=canary"}, "API_KEYS"),
    "a-key-file-that-is-not-there": ("`API_KEYS_FILE` that does not exist",
                                     {"API_KEYS_FILE": "/nowhere.toml"}, "API_KEYS_FILE"),
    "proxies-that-are-no-addresses": ("`TRUSTED_PROXIES=proxy`", {"TRUSTED_PROXIES": "proxy"}, "TRUSTED_PROXIES"),
    "fallbacks-that-are-no-json": ("`CHAT_FALLBACKS={`", {"CHAT_FALLBACKS": "{"}, "CHAT_FALLBACKS"),
    "mcp-servers-that-are-not-there": ("`MCP_SERVERS_FILE` that does not exist",
                                       {"MCP_SERVERS_FILE": "/nowhere.json"}, "MCP_SERVERS_FILE"),
    "half-an-identity-provider": ("`JWT_JWKS_URL` without an issuer",
                                  {"JWT_JWKS_URL": "http://127.0.0.1:1/keys"}, "JWT_ISSUER"),
}  # fmt: skip


def _refuses(variables: dict[str, str], named: str) -> Measure:
    async def measure(stage: Stage) -> float:
        service = stage.unstarted(**variables)
        began = time.monotonic()
        service.spawn()
        code = await service.ended(30)
        took = (time.monotonic() - began) * 1000
        said = service.written()
        held(code, "it ended as if all were well")
        held(named in said, f"it says only {said[:200]!r}")
        held("Traceback" not in said and len(said.splitlines()) <= 3, f"it says {len(said.splitlines())} lines")
        held("canary" not in said, "it tells the secret")
        return took

    return measure


for _name, (_done, _variables, _named) in _REFUSED.items():
    _users = f"it does not start, and one line names `{_named}`"
    enter(
        Fault(
            "settings", _name, _done, _users, "ms until it had said so", Bound(None, 15000),
            _refuses(_variables, _named),
        )
    )  # fmt: skip


@fault(users="401 for everybody", figure="questions that were answered", at_most=0)
async def open_to_all_without_a_key(stage: Stage) -> float:
    """`SERVER_HOST=0.0.0.0` without any key: nobody from outside is answered by accident."""
    service = stage.unstarted(SERVER_HOST="0.0.0.0", CHAT_PROVIDER="offline")
    await service.start()
    reply = await service.ask("/time/chat?query=hi")
    held(reply.status == 401, f"answered {reply.status}")
    return len(stage.upstream.calls)


_LIMITS = {
    "a-tool-longer-than-its-question": {"TOOL_TIMEOUT": "100", "REQUEST_TIMEOUT": "50"},
    "a-silence-longer-than-its-question": {"MODEL_TIMEOUT": "100", "REQUEST_TIMEOUT": "50"},
    "a-wait-longer-than-its-question": {"SESSION_WAIT": "130", "REQUEST_TIMEOUT": "120"},
}


def _warns(variables: dict[str, str]) -> Measure:
    async def measure(stage: Stage) -> float:
        service = await stage.own(**variables)
        await until(lambda: service.written().count("\n") >= 3)
        return sum(all(name in line for name in variables) for line in service.written().splitlines())

    return measure


for _name, _variables in _LIMITS.items():
    _done = " and ".join(f"`{name}={value}`" for name, value in _variables.items())
    enter(
        Fault(
            "settings", _name, f"Time limits that do not nest: {_done}", "it starts, and warns with both names",
            "warnings", Bound(1, 2), _warns(_variables),
        )
    )  # fmt: skip


@fault(users="it starts, and says what was meant", figure="lines that do", at_least=1, at_most=2)
async def a_mistyped_variable(stage: Stage) -> float:
    """`OPENAI_BASEURL` is set in place of `OPENAI_BASE_URL`."""
    service = await stage.own(OPENAI_BASEURL="http://127.0.0.1:1/v1")
    return len(re.findall(r".*OPENAI_BASEURL.*", service.written()))
