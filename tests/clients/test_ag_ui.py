"""AG-UI's own client, which checks every event and their order: the service's tools, the page's, and an approval."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic_core import from_json

from tests.clients.conftest import PACKAGES, TIME, Model, calls, node, says, started
from tests.clients.test_ai_sdk import SHIP, SHIPS
from tests.command_line import with_tools

ROLL = {"name": "roll", "arguments": '{"sides":6}'}
PAGE = """
import { HttpAgent } from "@ag-ui/client";

const parameters = { type: "object", properties: { sides: { type: "integer" } } };
const tools = [{ name: "roll", description: "Roll a die", parameters }];
const agent = new HttpAgent({ url: process.argv[2] });
const say = (content) => agent.addMessage({ id: crypto.randomUUID(), role: "user", content });

say("Roll");
await agent.runAgent({ tools });
const { id: toolCallId } = agent.messages.flatMap((each) => each.toolCalls ?? []).at(-1);
agent.addMessage({ id: crypto.randomUUID(), role: "tool", toolCallId, content: "4" });
await agent.runAgent({ tools });

say("Ship order 1");
await agent.runAgent({ tools });
const payload = { approved: true };
const resume = agent.pendingInterrupts.map(({ id }) => ({ interruptId: id, status: "resolved", payload }));
await agent.runAgent({ tools, resume });
console.log(JSON.stringify({ asked: resume.length, left: agent.pendingInterrupts.length, messages: agent.messages }));
"""


@pytest.fixture
def url(_played: tuple[Model, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address for pages, of a service with one more tool."""
    project = tmp_path_factory.mktemp("project")
    with_tools(project, {"ship": SHIP})
    with started(project, tmp_path_factory.mktemp("service"), _played[1]) as url:
        yield f"{url}/ag-ui"


def test_a_page_runs_its_tool_approves_a_call_and_keeps_the_whole_conversation(
    url: str, model: Model, tmp_path: Path
) -> None:
    model.plays(calls(TIME, ROLL), says("A four."), calls(SHIPS), says("On its way."))
    (tmp_path / "node_modules").symlink_to(PACKAGES)
    (tmp_path / "page.mjs").write_text(PAGE, encoding="utf-8")
    done = node("page.mjs", url, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = from_json(done.stdout)
    assert (told["asked"], told["left"]) == (1, 0)
    roles = [each["role"] for each in told["messages"]]
    assert roles == ["user", "assistant", "tool", "tool", "assistant", "user", "assistant", "tool", "assistant"]
    assert [told["messages"][place]["content"] for place in (3, 4, 7, 8)] == [
        "4",
        "A four.",
        '{"shipped":1}',
        "On its way.",
    ]
