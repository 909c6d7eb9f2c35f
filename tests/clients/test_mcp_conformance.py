"""The official conformance suite for each protocol version; every failing check is listed here."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from pydantic_core import from_json

from tests.clients.conftest import PACKAGES, node, started
from tests.command_line import with_tools

FIXTURES = '''"""The tools that the suite calls, as far as the service has what they are for."""

import asyncio

from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.errors import ToolExecutionError
from toolchat.tool_calling.function_callback import tool
from toolchat import ToolModule


@tool
async def test_simple_text() -> str:
    """Answer with a text."""
    return "This is a simple text response for testing."


@tool
async def test_error_handling() -> str:
    """Fail."""
    raise ToolExecutionError("This tool intentionally returns an error for testing")


@tool
async def test_tool_with_progress(context: ToolContext) -> str:
    """Tell how far it is."""
    for done in (0, 50, 100):
        context.report(done, of=100)
        await asyncio.sleep(0.15)  # progress is reported at most ten times a second
    return "done"


@tool
async def test_logging_tool() -> str:
    """Do something worth logging."""
    return "done"


@tool(requires_approval=True)
async def test_streaming_elicitation() -> str:
    """Do what the user must agree with."""
    return "done"


@tool(requires_approval=True)
async def test_missing_capability() -> str:
    """Do something that requires elicitation."""
    return "done"


@tool(requires_approval=True)
async def test_input_required_result_elicitation() -> str:
    """Do what the user must agree with."""
    return "done"


@tool(requires_approval=True)
async def test_input_required_result_request_state() -> str:
    """Do what the user must agree with."""
    return "state-ok"


@tool(requires_approval=True)
async def test_input_required_result_tampered_state() -> str:
    """Do what the user must agree with."""
    return "done"


module = ToolModule(
    functions=tuple(each for name, each in sorted(globals().items()) if name.startswith("test_"))
)
'''

NOT_OFFERED = (
    # Capabilities that the service does not declare: it has tools, and nothing else.
    *("completion-complete", "resources-list", "resources-read-text", "resources-read-binary"),
    *("resources-templates-read", "prompts-list", "prompts-get-simple", "prompts-get-with-args"),
    *("prompts-get-embedded-resource", "prompts-get-with-image"),
    # A result is text, with structured content beside it.
    *("tools-call-image", "tools-call-audio", "tools-call-embedded-resource", "tools-call-mixed-content"),
    # A tool's schema comes from its function, which has no "if" and "else". The suite does not score this yet.
    "json-schema-2020-12-tool-found",
)
EXPECTED: dict[str, Sequence[str]] = {
    "2025-11-25": (
        *NOT_OFFERED,
        *("logging-set-level", "tools-call-with-logging", "resources-subscribe", "resources-unsubscribe"),
        # Without a session the server can ask neither the user nor the client's model during a call.
        *(
            "tools-call-sampling",
            "tools-call-elicitation",
            "elicitation-sep1034-general",
            "elicitation-sep1330-general",
        ),
    ),
    "2026-07-28": (
        *NOT_OFFERED,
        "sep-2322-non-tool-incomplete",
        *(f"sep-2549-{what}-list-caching-hints" for what in ("prompts", "resources", "resources-templates")),
        # The service requests consent only, once and under a key of its own. It never requests a name, sampling or
        # roots, so the capability that a call may lack differs from the one that the suite expects.
        *("sep-2322-elicitation-incomplete", "sep-2322-sampling-incomplete", "sep-2322-list-roots-incomplete"),
        *("sep-2322-multiple-inputs-incomplete", "sep-2322-multi-round-r1", "sep-2322-respect-client-capabilities"),
        "sep-2575-server-rejects-undeclared-capability",
        # No parameter is to be sent as a header as well. The suite does not score this yet.
        *("sep-2243-server-no-xmcp-tool", "sep-2243-server-decode-base64", "sep-2243-server-validate-param-match"),
        *("sep-2243-server-reject-invalid-param-chars", "sep-2243-server-reject-param-mismatch"),
    ),
}
"""The checks that fail, by the revision at whose wire they are made."""
EXTENSION = "server-tasks-"
"""Scenarios of an extension that the service does not declare."""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    project = tmp_path_factory.mktemp("project")
    with_tools(project, {"conformance": FIXTURES})
    with started(project, tmp_path_factory.mktemp("service"), "", CHAT_PROVIDER="offline") as url:
        yield f"{url}/mcp"


def failed(results: Path) -> set[str]:
    files = [file for file in results.glob("*/checks.json") if not file.parent.name.startswith(EXTENSION)]
    return {each["id"] for file in files for each in from_json(file.read_bytes()) if each["status"] == "FAILURE"}


@pytest.mark.parametrize("revision", EXPECTED)
def test_the_suites_checks_pass_except_those_of_missing_features(revision: str, url: str, tmp_path: Path) -> None:
    suite = PACKAGES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    done = node(suite, "server", "--url", url, "--requirements", revision, "-o", tmp_path / "out", cwd=tmp_path)
    assert "=== SUMMARY ===" in done.stdout, done.stderr
    assert failed(tmp_path / "out") == set(EXPECTED[revision])
