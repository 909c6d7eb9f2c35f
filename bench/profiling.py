"""Where the time of a question goes: the service samples its own stack by CPU time while it answers.

``python -m bench.profiling OUTPUT`` serves toolchat; SIGURG begins the sampling, the end of the service writes it.
"""

import linecache
import signal
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import FrameType

from pydantic_core import from_json, to_json

from bench.processes import ROOT

__all__ = ["profile", "share_of", "shares_table"]

_INTERVAL = 0.001
_SECONDS = 8

_PACKAGES = {
    "server": ("uvicorn", "httptools", "uvloop"),
    "framework": ("fastapi", "starlette", "pydantic", "dishka", "anyio"),
    "upstream client": ("aiohttp", "yarl", "multidict", "dashscope", "httpx"),
}
_PARTS = {
    "server": ("server/",),
    "logs": ("observability/logs.py",),
    "tools": ("tools/",),
}
_LIBRARY = {"JSON": ("json/",), "logs": ("logging/",)}
_APP = f"{ROOT / 'app'}/"
_ENGINE = f"{ROOT / 'toolchat'}/"
_SITE = "/site-packages/"
_JSON_CALLS = ("from_json(", "to_json(", "json.loads(", "json.dumps(", "validate_json(")


def share_of(path: str, line: str) -> str:
    """Which share a running line belongs to; empty for the standard library, which works for its caller."""
    if path.startswith(_APP):
        place = _place(_PARTS, path.removeprefix(_APP)) or "our core"
    elif path.startswith(_ENGINE):
        place = "upstream client" if path.startswith(f"{_ENGINE}http/") else "our core"
    elif _SITE in path:
        place = _place(_PACKAGES, path.rpartition(_SITE)[2])
    else:
        place = _place(_LIBRARY, "/".join(path.split("/")[-2:]))
    return "JSON" if place and any(call in line for call in _JSON_CALLS) else place


def _place(places: Mapping[str, tuple[str, ...]], path: str) -> str:
    return next((share for share, starts in places.items() if path.startswith(starts)), "")


def shares_table(shares: Mapping[str, int], functions: Mapping[str, int]) -> str:
    """The shares as a table, with the dearest functions below."""
    total = max(sum(shares.values()), 1)
    ordered = sorted(shares.items(), key=lambda each: -each[1])
    lines = ["| share | of the CPU time |", "| --- | --- |"]
    lines += [f"| {name} | {count / total:.0%} |" for name, count in ordered]
    dearest = sorted(functions.items(), key=lambda each: -each[1])[:20]
    lines += ["", "| function | of the CPU time |", "| --- | --- |"]
    lines += [f"| `{name}` | {count / total:.1%} |" for name, count in dearest]
    return "\n".join([*lines, "", f"{total:,} samples"])


async def profile(folder: Path, provider: str, tool: str) -> str:
    """Serve toolchat with the sampler, ask for some seconds, and give the table."""
    from bench.catalogue import toolchat_environment
    from bench.load import ask, question
    from bench.stage import BenchError, Stage

    output, path = folder / "profile.json", f"/{tool}/chat-tool-function"

    def environment(port: int, upstream: str) -> Mapping[str, str]:
        return toolchat_environment(provider, port, upstream)

    def command(_: int) -> list[str]:
        return ["python", "-m", "bench.profiling", str(output)]

    with Stage(folder) as stage:
        async with stage.started("profiled", command, environment, path) as (target, _):
            await ask(target.ports, question(path), connections=32, seconds=1)
            target.processes[0][0].popen.send_signal(signal.SIGURG)
            load = await ask(target.ports, question(path), connections=32, seconds=_SECONDS)
    if load.wrong:
        raise BenchError(f"{load.wrong} of {load.asked} answers were wrong: {load.sample[:500]!r}")
    found = from_json(output.read_bytes())
    return f"{shares_table(found['shares'], found['functions'])} of {load.asked:,} questions, none answered wrongly"


class _Sampler:
    def __init__(self) -> None:
        self.shares: Counter[str] = Counter()
        self.functions: Counter[str] = Counter()

    def begin(self, *_: object) -> None:
        signal.signal(signal.SIGPROF, self.take)
        signal.setitimer(signal.ITIMER_PROF, _INTERVAL, _INTERVAL)

    def take(self, _: int, frame: FrameType | None) -> None:
        while frame is not None:
            code = frame.f_code
            # A frame may be between two lines; an exception here would be one of the code that is interrupted.
            share = share_of(code.co_filename, linecache.getline(code.co_filename, frame.f_lineno or 0))
            if share:
                self.shares[share] += 1
                self.functions[f"{_shown(code.co_filename)}:{code.co_name}"] += 1
                return
            frame = frame.f_back
        self.shares["event loop"] += 1


def _shown(path: str) -> str:
    if path.startswith(_APP):
        return path.removeprefix(_APP)
    return path.rpartition(_SITE)[2] if _SITE in path else "/".join(path.split("/")[-2:])


def _serve(output: Path) -> int:
    from app.__main__ import main

    sampler = _Sampler()
    signal.signal(signal.SIGURG, sampler.begin)
    sys.argv[1:] = []
    code = main()
    signal.setitimer(signal.ITIMER_PROF, 0)
    output.write_bytes(to_json({"shares": sampler.shares, "functions": sampler.functions}))
    return code


if __name__ == "__main__":
    sys.exit(_serve(Path(sys.argv[1])))
