"""Anthropic's own client for JavaScript, whose tool runner asks until every call has its result."""

from pathlib import Path
from typing import Any

from pydantic_core import from_json

from tests.clients.conftest import PACKAGES, TIME, Model, calls, node, says
from tests.players.openai_player import delta, sse

ROLL = {"name": "roll", "arguments": '{"sides":6}'}
AGENT = """
import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({ baseURL: process.argv[2], apiKey: "none", maxRetries: 0 });
const asked = { model: "claude-opus-4-8", max_tokens: 64, messages: [{ role: "user", content: "Roll" }] };
const roll = {
  name: "roll",
  description: "Roll a die",
  input_schema: { type: "object", properties: { sides: { type: "integer" } } },
  run: async ({ sides }) => `${sides - 2}`,
};
const rolled = await client.beta.messages.toolRunner({ ...asked, tools: [roll] });
const thought = await client.messages.stream({ ...asked, thinking: { type: "adaptive" } }).finalMessage();
const failed = await client.messages.create({ ...asked, model: "gpt-4o" }).catch((error) => error);
const { data } = await client.models.list();
console.log(JSON.stringify({
  rolled: rolled.content,
  thought: thought.content,
  failed: failed instanceof Anthropic.NotFoundError,
  model: data[0].id,
}));
"""


def test_its_tool_runner_its_streams_and_its_errors_work(base_url: str, model: Model, tmp_path: Path) -> None:
    thinks = sse(delta(reasoning_content="A die."), delta("stop", content="Four."))
    model.plays(calls(TIME, ROLL), says("A four."), thinks)
    (tmp_path / "node_modules").symlink_to(PACKAGES)
    (tmp_path / "agent.mjs").write_text(AGENT, encoding="utf-8")
    done = node("agent.mjs", base_url.removesuffix("/v1"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = from_json(done.stdout)
    assert told["rolled"] == [{"type": "text", "text": "A four."}]
    assert [each["type"] for each in told["thought"]] == ["thinking", "text"]
    assert (told["failed"], told["model"]) == (True, "toolchat")
    results = [each["content"] for each in model.requests[1].body["messages"] if each["role"] == "tool"]
    assert (results[0].startswith("The current time zone is"), results[1:]) == (True, ["4"])
