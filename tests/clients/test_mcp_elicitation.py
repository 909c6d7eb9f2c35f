"""A host of the official TypeScript SDK, in the version that hosts speak, asks its user before a guarded call."""

from pathlib import Path

import pytest
from pydantic_core import from_json

from tests.clients.conftest import PACKAGES, node, started
from tests.clients.test_mcp import LIGHT
from tests.command_line import with_tools

HOST = """
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const [address, action] = process.argv.slice(2);
const said = { asked: [] };
const capabilities = action === "none" ? {} : { elicitation: {} };
const client = new Client({ name: "host", version: "1" }, { capabilities });
if (action !== "none") {
  client.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
    said.asked.push(params.message);
    return { action, ...(action === "accept" ? { content: {} } : {}) };
  });
}
const transport = new StreamableHTTPClientTransport(new URL(`${address}/mcp`));
await client.connect(transport);
const result = await client.callTool({ name: "switchLight", arguments: { on: true } });
said.version = transport.protocolVersion;
said.text = result.content[0].text;
said.failed = result.isError ?? false;
await transport.terminateSession();
await client.close();
console.log(JSON.stringify(said));
"""


@pytest.mark.parametrize("action", ["accept", "decline", "none"])
def test_the_typescript_sdk_asks_its_user(action: str, base_url: str, tmp_path: Path) -> None:
    with_tools(tmp_path, {"light": LIGHT})
    (tmp_path / "host.mjs").write_text(HOST, encoding="utf-8")
    (tmp_path / "node_modules").symlink_to(PACKAGES)
    with started(tmp_path, tmp_path, base_url) as service:
        done = node("host.mjs", service, action, cwd=tmp_path)
    said = from_json(done.stdout or f'"{done.stderr!r}"')
    assert said["version"] == "2025-11-25", said
    assert said["asked"] == ([] if action == "none" else ['Run switchLight with {"on":true}?'])
    assert said["failed"] is (action != "accept")
    expected = {"accept": "on", "decline": "rejected", "none": "a person must decide about switchLight"}[action]
    assert expected in said["text"]
