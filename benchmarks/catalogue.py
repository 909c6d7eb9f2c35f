"""The services that are compared, and how each is started."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import java
from benchmarks.processes import ROOT

__all__ = ["CALLS", "LIMIT", "SERVICES", "Service", "toolchat_environment"]


PEERS_PYTHON = ROOT / "benchmarks" / ".venv" / "bin" / "python"
LIMIT = "limit"

CALLS = {"time": 2, "weather": 3}
"""Upstream calls that one question needs, by its tool."""

_NO_TELEMETRY = {
    "AGNO_TELEMETRY": "false",
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
}

_FRAMEWORKS = {
    "pydantic-ai": ("pydantic_ai_agent", "pydantic-ai-slim"),
    "langchain": ("langchain_agent", "langchain"),
    "openai-agents": ("openai_agents", "openai-agents"),
    "haystack": ("haystack_agent", "haystack-ai"),
    "agno": ("agno_agent", "agno"),
}


@dataclass(frozen=True, slots=True)
class Service:
    """One row of the table."""

    name: str
    title: str
    kind: str
    """``toolchat``, ``framework``, ``spring`` or ``limit``."""
    package: str = ""
    """The distribution whose version the report names."""
    module: str = ""
    """What is run, for all but toolchat."""
    provider: str = ""
    asked: tuple[str, ...] = tuple(CALLS)
    """The tools that questions need."""
    virtual_threads: bool = False

    @property
    def path(self) -> str:
        """The path of a question; ``{tool}`` is its tool."""
        return "/{tool}/chat-tool-function"

    @property
    def needs_peers(self) -> bool:
        """Whether it runs in the environment of the peers."""
        return self.kind == "framework"

    def command(self, port: int) -> Sequence[str]:
        """The program that serves on a port."""
        if self.kind == "toolchat":
            return ["python", "-m", "app"]
        if self.kind == "spring":
            return java.command()
        program = str(PEERS_PYTHON) if self.needs_peers else "python"
        return [program, "-m", f"benchmarks.services.{self.module}", str(port)]

    def environment(self, port: int, upstream: str) -> Mapping[str, str]:
        """The variables that it needs; ``upstream`` is the fake's address without a path."""
        if self.kind == "toolchat":
            return toolchat_environment(self.provider, port, upstream)
        if self.kind == "spring":
            threads = str(self.virtual_threads).lower()
            return {"SERVER_PORT": str(port), "BENCH_UPSTREAM": upstream, "BENCH_VIRTUAL_THREADS": threads}
        return {"BENCH_UPSTREAM": upstream, **_NO_TELEMETRY}

    def missing(self) -> str:
        """Why it cannot be run; empty when it can."""
        if self.kind == "spring":
            return java.lacking(virtual_threads=self.virtual_threads)
        needed: Path = PEERS_PYTHON
        lacks_peers = self.needs_peers and not needed.exists()
        return f"{needed} is not there: make benchmarks/.venv/.peers" if lacks_peers else ""


def toolchat_environment(provider: str, port: int, upstream: str, **more: str) -> dict[str, str]:
    """Set toolchat up: everything at its default but the addresses and the keys."""
    model = (
        {"DASHSCOPE_API_KEY": "bench", "DASHSCOPE_BASE_URL": f"{upstream}/api/v1"}
        if provider == "dashscope"
        else {"OPENAI_API_KEY": "bench", "OPENAI_BASE_URL": f"{upstream}/v1"}
    )
    return {
        **model,
        "SERVER_PORT": str(port),
        "WEATHER_BASE_URL": f"{upstream}/v1",
        "WEATHER_API_KEY": "bench",
        **more,
    }


def _toolchat(name: str, title: str, provider: str) -> Service:
    return Service(name, f"toolchat, {title}", "toolchat", provider=provider)


SERVICES: Mapping[str, Service] = {
    each.name: each
    for each in (
        _toolchat("toolchat", "OpenAI-compatible", "openai"),
        _toolchat("toolchat-dashscope", "DashScope", "dashscope"),
        *(Service(name, name, "framework", package, module) for name, (module, package) in _FRAMEWORKS.items()),
        Service("spring", "Spring AI, platform threads", "spring", asked=("time",)),
        Service("spring-virtual", "Spring AI, virtual threads", "spring", asked=("time",), virtual_threads=True),
        Service(LIMIT, "limit (bare ASGI, aiohttp)", "limit", "aiohttp", "limit"),
    )
}
"""By name, in the order of the table."""
