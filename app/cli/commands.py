"""Starts of the commands, by what was typed; each is imported only when it is run, and gives its exit code."""

import argparse
import os

from app.cli.startup_signals import hear_of_an_early_end

__all__ = ["ask", "chat", "check", "demo", "evaluate", "mcp", "new_key", "run_tool", "serve", "tools"]


def serve(parsed: argparse.Namespace) -> int:
    """Serve over HTTP."""
    hear_of_an_early_end()
    from app.server import runner as serving

    if parsed.workers is not None:
        os.environ["SERVER_WORKERS"] = parsed.workers
    return serving.serve()


def demo(_: argparse.Namespace) -> int:
    """Serve with invented tool data."""
    hear_of_an_early_end()
    from app.server import runner as serving

    return serving.demo()


def ask(parsed: argparse.Namespace) -> int:
    """Ask one question."""
    from app.cli import ask as asking

    return asking.ask(parsed.query, tools=parsed.tool, approved=parsed.approve, as_json=parsed.json, demo=parsed.demo)


def chat(parsed: argparse.Namespace) -> int:
    """Hold a conversation."""
    from app.cli import chat

    return chat.chat(tools=parsed.tool, approved=parsed.approve, demo=parsed.demo)


def tools(parsed: argparse.Namespace) -> int:
    """List the tools."""
    from app.cli import tools as tool_listing

    return tool_listing.list_tools(demo=parsed.demo)


def run_tool(parsed: argparse.Namespace) -> int:
    """Run one tool by hand."""
    from app.cli import tools as tool_running

    return tool_running.run_tool(parsed.name, parsed.arguments, as_json=parsed.json, demo=parsed.demo)


def new_key(parsed: argparse.Namespace) -> int:
    """Make a key for somebody who may ask."""
    from app.cli import keys

    return keys.new_entry(parsed.name)


def mcp(_: argparse.Namespace) -> int:
    """Speak MCP over standard input and output."""
    from app.cli import mcp_stdio

    return mcp_stdio.serve_stdio()


def check(_: argparse.Namespace) -> int:
    """Ask every upstream that is set up one question."""
    from app.cli import check as checks

    return checks.check()


def evaluate(parsed: argparse.Namespace) -> int:
    """Ask the questions of a file."""
    from app.cli import evaluation

    return evaluation.evaluate(
        parsed.file,
        times=parsed.times,
        at_once=parsed.at_once,
        baseline=parsed.baseline,
        json=parsed.json,
        junit=parsed.junit,
        at_least=parsed.at_least,
        demo=parsed.demo,
    )
