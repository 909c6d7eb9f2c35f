"""Every tool call knows its caller: the name, the tenant and the roles, through whichever interface it came."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.chat.played import JSON
from tests.command_line import run
from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, sensible_model
from tests.service.access.principals import as_, principals
from tests.service.api.sessions.deciding import approve
from tests.service.protocols.mcp_server.host import Host
from tests.serving import service

FOLDERS = "tests.service.access.folders"
TOOLS = ("callerOfFunction", "callerOfMethod")
OTHER = {"X-Tenant-ID": "other"}
CALLERS = [
    (as_("alice"), "<alice/alice/ask,operate>"),
    (as_("alice", **OTHER), "<alice/alice/ask,operate>"),
    (as_("bob", **OTHER), "<bob/acme/ask>"),
    (as_(""), "<//ask,operate>"),
    (as_("", **OTHER), "</other/ask,operate>"),
]
INTERFACES = ("get", "post", "chat", "stream", "completions", "completion stream", "ai sdk", "mcp", "mcp ask", "run")


def obedient(request: PlayedRequest) -> Answer:
    """A model that calls the tool that the question names."""
    question = next(each for each in request.body["messages"] if each["role"] == "user")["content"]
    request.body["tools"] = [each for each in request.body.get("tools", ()) if each["function"]["name"] in question]
    assert request.body["tools"], f"the tool of {question!r} was not offered"
    return sensible_model()(request)


@pytest.fixture(scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[httpx.AsyncClient, None]:
    keys = principals(tmp_path_factory.mktemp("keys"), bob='tenant = "acme"\nroles = ["ask"]')
    async with (
        OpenAIPlayer(obedient) as player,
        service(FOLDERS, OPENAI_BASE_URL=player.base_url, ALLOW_ANONYMOUS="true", **keys) as client,
    ):
        yield client


async def answer_of(client: httpx.AsyncClient, interface: str, tool: str, headers: dict[str, str]) -> str:
    """The text of the response to a question, or to a call, that runs the tool."""
    query, path = {"query": tool}, f"/identity/chat-tool-{tool.removeprefix('callerOf').lower()}"
    messages: list[dict[str, Any]] = [{"role": "user", "content": tool}]
    completion = {"model": "toolchat", "messages": messages, "stream": interface == "completion stream"}
    part = {"id": "m-1", "role": "user", "parts": [{"type": "text", "text": tool}]}
    match interface:
        case "get":
            response = await client.get(path, params=query, headers=headers)
        case "post":
            response = await client.post(path, json=query, headers=headers)
        case "chat" | "stream":
            response = await client.get("/chat" + "/stream" * (interface == "stream"), params=query, headers=headers)
        case "completions" | "completion stream":
            response = await client.post("/v1/chat/completions", json=completion, headers=headers)
        case "ai sdk":
            response = await client.post("/ai-sdk/chat", json={"id": "c-1", "messages": [part]}, headers=headers)
        case "mcp" | "mcp ask":
            name, arguments = (tool, {}) if interface == "mcp" else ("ask", {"question": tool})
            response = await Host(client).ask("tools/call", headers, name=name, arguments=arguments)
        case _:
            response = await client.post(f"/tools/{tool}", headers=headers)
    assert response.status_code == 200, response.text
    if interface == "completion stream":
        chunks = [json.loads(line[6:]) for line in response.text.split("\n\n") if line.startswith("data: {")]
        return "".join(each["choices"][0]["delta"].get("content") or "" for each in chunks)
    return response.text


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("interface", INTERFACES)
@pytest.mark.parametrize(("headers", "caller"), CALLERS, ids=lambda each: each if isinstance(each, str) else "")
async def test_a_tool_reads_its_caller(
    client: httpx.AsyncClient, interface: str, tool: str, headers: dict[str, str], caller: str
) -> None:
    answer = await answer_of(client, interface, tool, headers)
    assert caller in answer


@pytest.mark.parametrize(
    ("asks", "approves", "caller"),
    [
        (as_("", **OTHER), as_(""), "</other/ask,operate>"),
        (as_("", **OTHER), as_("", **{"X-Tenant-ID": "third"}), "</other/ask,operate>"),
        (as_("bob"), as_("bob", **OTHER), "<bob/acme/ask>"),
    ],
)
async def test_an_approved_call_runs_for_the_requesting_tenant(
    client: httpx.AsyncClient, asks: dict[str, str], approves: dict[str, str], caller: str
) -> None:
    paused = await client.get("/chat", params={"query": "callerAfterApproval"}, headers=asks | JSON)
    approval = paused.json()["approval"]
    answer = await approve(client, f"/approvals/{approval['id']}", approval["calls"][0]["id"], **approves)
    assert caller in answer.text


@pytest.mark.parametrize("tenant", [b"", b"-a", b"a b", b"a;b", b"x" * 65, b"../a", b"a\tb", "租户".encode()])
async def test_a_malformed_tenant_is_refused_on_every_path(client: httpx.AsyncClient, tenant: bytes) -> None:
    for path in ("/chat?query=hello", "/time/chat?query=hello", "/tools"):
        answer = await client.get(path, headers=[(b"X-Tenant-ID", tenant)])
        assert (answer.status_code, answer.json()["code"]) == (422, "validation")
    twice = await client.get("/tools", headers=[("X-Tenant-ID", "a"), ("X-Tenant-ID", "b")])
    assert twice.status_code == 422


async def test_functions_and_methods_that_are_different_tools_are_all_listed(client: httpx.AsyncClient) -> None:
    listed = {each["name"] for each in (await Host(client).result("tools/list"))["tools"]}
    assert set(TOOLS) <= listed
    assert "getCityTimeMethod" not in listed  # the function getCityTimeFunction, once more


@pytest.mark.parametrize("entry", ['tenant = "-"', 'tenant = "a b"', "tenant = 1"])
async def test_a_key_file_with_a_malformed_tenant_stops_the_start(tmp_path: Path, entry: str) -> None:
    with pytest.raises(Exception, match="tenant"):
        async with service(**principals(tmp_path, alice=entry)):
            pass


@pytest.mark.parametrize(("options", "tenant"), [((), ""), (("--tenant", "acme"), "acme")])
def test_the_command_line_names_the_tenant(tmp_path: Path, options: tuple[str, ...], tenant: str) -> None:
    variables = {"TOOLS_PATH": str(Path(__file__).parent / "folders")}
    done = run("tools", "run", "callerOfMethod", *options, cwd=tmp_path, **variables)
    assert (done.returncode, done.stdout) == (0, f"</{tenant}/>\n")
    asked = run(
        "ask", "--tool", "callerOfFunction", "--json", *options, "callerOfFunction, yes", cwd=tmp_path, **variables
    )
    assert f"</{tenant}/>" in asked.stdout


def test_the_command_line_refuses_a_malformed_tenant(tmp_path: Path) -> None:
    done = run("ask", "--tenant", "a b", "hello", cwd=tmp_path)
    assert (done.returncode, "--tenant" in done.stderr) == (2, True)
