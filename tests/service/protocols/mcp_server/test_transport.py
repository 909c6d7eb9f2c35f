"""Progress, cancelled calls, what a host without a key learns, and the trace context of a message."""

import asyncio
from pathlib import Path

import httpx
import pytest
from pydantic_core import from_json

from tests.service.protocols.mcp_server.folders.workshop import Seen
from tests.service.protocols.mcp_server.host import FOLDERS, LEGACY, MODERN, Host, messages_of, session_of
from tests.serving import service
from tests.waiting import until
from toolchat.service.access.keys import digest_of
from toolchat.service.settings.service_settings import Tuning

VERSIONS = [MODERN, *LEGACY]
SILENCE = Tuning(stream_keep_alive=0.05)


async def first(stream: httpx.Response, start: str, number: int) -> list[str]:
    """The first lines that start so."""
    lines: list[str] = []
    async for line in stream.aiter_lines():
        if line.startswith(start):
            lines.append(line)
        if len(lines) == number:
            return lines
    raise AssertionError("the stream has ended")


async def told(client: httpx.AsyncClient, version: str, name: str, **arguments: object) -> httpx.Response:
    return await Host(client, version).ask("tools/call", name=name, arguments=arguments, _meta={"progressToken": "t"})


@pytest.mark.parametrize("version", VERSIONS)
async def test_progress_is_reported_under_the_clients_token_before_the_result(
    version: str, client: httpx.AsyncClient
) -> None:
    answer = await told(client, version, "count", to=50)
    assert answer.headers["content-type"].startswith("text/event-stream")
    *notifications, response = messages_of(answer.text)
    assert {each["method"] for each in notifications} == {"notifications/progress"}
    progress = [each["params"] for each in notifications]
    assert {each["progressToken"] for each in progress} == {"t"}
    assert progress[-1] == {"progressToken": "t", "progress": 50, "total": 50, "message": "at 50"}
    assert [each["progress"] for each in progress] == sorted({each["progress"] for each in progress})
    assert (response["id"], response["result"]["content"][0]["text"]) == (1, "counted to 50")
    assert response["result"].get("resultType") == ("complete" if version == MODERN else None)


async def test_progress_that_decreases_is_dropped(client: httpx.AsyncClient) -> None:
    *notifications, response = messages_of((await told(client, MODERN, "countBack")).text)
    assert [each["params"] for each in notifications] == [{"progressToken": "t", "progress": 2}]
    assert response["result"]["content"][0]["text"] == "counted back"


async def test_a_tool_without_progress_is_answered_with_json(client: httpx.AsyncClient) -> None:
    answer = await told(client, MODERN, "quotes")
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize("asked", [{"progressToken": 7}, {}], ids=["json alone", "no token"])
async def test_progress_is_reported_only_on_request(asked: dict[str, int], client: httpx.AsyncClient) -> None:
    accept = {"Accept": "application/json"} if asked else {}
    answer = await Host(client).ask("tools/call", accept, name="count", arguments={"to": 3}, _meta=asked)
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["result"]["content"][0]["text"] == "counted to 3"


@pytest.mark.parametrize("version", VERSIONS)
async def test_comments_keep_the_stream_of_a_silent_call_open(version: str) -> None:
    async with service(FOLDERS, SILENCE, CHAT_PROVIDER="offline") as client:
        body, headers = Host(client, version).request("tools/call", name="wait", arguments={})
        async with client.stream("POST", "/mcp", json=body, headers=headers) as stream:
            assert await first(stream, ":", 3) == [": keep-alive"] * 3


async def test_progress_keeps_it_open_if_the_client_requests_progress() -> None:
    async with service(FOLDERS, Tuning(stream_keep_alive=0.3), CHAT_PROVIDER="offline") as client:
        body, headers = Host(client).request("tools/call", name="wait", arguments={}, _meta={"progressToken": "t"})
        async with client.stream("POST", "/mcp", json=body, headers=headers) as stream:
            told = [from_json(line.removeprefix("data: "))["params"] for line in await first(stream, "data: ", 4)]
    assert [each["progressToken"] for each in told] == ["t"] * 4
    assert 1 == told[0]["progress"] < told[1]["progress"] < told[2]["progress"] < told[3]["progress"] < 2


async def test_a_question_reports_the_running_tools(client: httpx.AsyncClient) -> None:
    answer = await told(client, MODERN, "ask", question="What time is it in Rome?")
    *notifications, response = messages_of(answer.text)
    assert [(each["params"]["progress"], each["params"]["message"]) for each in notifications] == [
        (1, "getCityTimeFunction runs"),
        (2, "getCityTimeFunction has ended"),
    ]
    assert "Rome" in response["result"]["content"][0]["text"]


@pytest.mark.parametrize("token", ["t", None], ids=["as events", "as json"])
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_disconnect_cancels_the_call(version: str, token: str | None, client: httpx.AsyncClient) -> None:
    before = Seen.cancelled
    meta = {} if token is None else {"progressToken": token}
    asking = asyncio.create_task(Host(client, version).ask("tools/call", name="wait", arguments={}, _meta=meta))
    await until(lambda: Seen.waiting)
    asking.cancel()
    await until(lambda: Seen.cancelled == before + 1)
    assert Seen.waiting == 0


CANCEL = {"jsonrpc": "2.0", "method": "notifications/cancelled"}


@pytest.mark.parametrize("accept", ["application/json, text/event-stream", "application/json"])
@pytest.mark.parametrize("version", LEGACY)
async def test_a_notification_cancels_the_call_of_its_session_alone(
    version: str, accept: str, client: httpx.AsyncClient
) -> None:
    before = Seen.cancelled
    own, other = [await session_of(client, version) | {"Accept": accept} for _ in range(2)]
    nameless = {name: value for name, value in own.items() if name != "mcp-session-id"}
    body, _ = Host(client, version).request("tools/call", name="wait", arguments={})
    calls = [asyncio.create_task(client.post("/mcp", json=body, headers=each)) for each in (own, other, nameless)]
    await until(lambda: Seen.waiting == 3)
    for headers, identifier in ((nameless, 1), (own, "1"), (own, 2), (own, [1]), (own, None), (own, 1), (own, 1)):
        told = {**CANCEL, "params": {"requestId": identifier}}
        assert (await client.post("/mcp", json=told, headers=headers)).status_code == 202
    answer = await calls[0]
    assert (answer.status_code, answer.json()["id"], answer.json()["error"]["code"]) == (200, 1, -32800)
    assert (Seen.waiting, Seen.cancelled) == (2, before + 1)
    for each in calls[1:]:
        each.cancel()
    await until(lambda: Seen.waiting == 0)


METADATA = "/.well-known/oauth-protected-resource/mcp"
KEYS = {"API_KEYS": f"alice={digest_of('secret')}", "CHAT_PROVIDER": "offline"}
TOKENS = {
    "JWT_JWKS_URL": "http://127.0.0.1:9/keys",
    "JWT_ISSUER": "https://id.example.org",
    "JWT_AUDIENCE": "toolchat",
}

FOLDER = """from fastapi import APIRouter
from toolchat import ToolModule, tool

router = APIRouter()

@router.get("/token")
async def shown() -> str:
    return "it"

@tool
async def one() -> str:
    \"\"\"Get one.\"\"\"
    return "1"

module = ToolModule(functions=(one,), router=router)
"""


def challenge(answer: httpx.Response) -> str:
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
    return answer.headers["www-authenticate"]


@pytest.mark.parametrize(
    ("variables", "servers"),
    [
        (KEYS, {}),
        (TOKENS, {"authorization_servers": ["https://id.example.org"]}),
        (KEYS | TOKENS, {"authorization_servers": ["https://id.example.org"]}),
    ],
    ids=["keys", "tokens", "both"],
)
async def test_a_refused_host_finds_how_to_authenticate(variables: dict[str, str], servers: dict[str, object]) -> None:
    async with service(**variables) as client:
        refused = await Host(client).ask("tools/list", {"X-API-Key": "wrong"})
        url = f"{client.base_url}{METADATA}"
        assert challenge(refused) == f'Bearer realm="toolchat", resource_metadata="{url}"'
        assert challenge(await client.get("/mcp")).endswith(f'"{url}"')
        metadata = (await client.get(url)).json()
    expected = {
        "resource": f"{client.base_url}/mcp",
        "resource_name": "toolchat",
        "bearer_methods_supported": ["header"],
    }
    assert metadata == expected | servers


async def test_only_mcp_names_the_metadata_and_the_host_header_cannot_end_its_quotes() -> None:
    async with service(**KEYS) as client:
        for path in ("/chat", "/mcp/x", "/v1/models"):
            assert "resource_metadata" not in (await client.get(path)).headers["www-authenticate"]
        odd = await Host(client).ask("tools/list", {"Host": 'a", x="b'})
        assert challenge(odd).count('"') == 4


async def test_there_is_no_metadata_where_no_key_is_needed() -> None:
    async with service(CHAT_PROVIDER="offline") as client:
        assert (await client.get(METADATA)).status_code == 404


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer expired"}], ids=["no key", "a wrong key"])
async def test_what_hosts_look_for_and_is_not_there_is_not_found(headers: dict[str, str]) -> None:
    async with service(**KEYS) as client:
        for name in (
            "oauth-authorization-server",
            "openid-configuration",
            "oauth-protected-resource",
            "agent-card.json",
        ):
            for path in (f"/.well-known/{name}", f"/.well-known/{name}/x", f"/mcp/.well-known/{name}"):
                answer = await client.get(path, headers=headers)
                assert (path, answer.status_code, answer.json()["code"]) == (path, 404, "not-found")
        for path in ("/register", "/token", "/authorize", "/register/"):
            assert (await client.post(path, headers=headers, json={})).status_code == 404
        for path in ("/register/x", "/tokens", "/chat", "/.well-known"):
            assert (await client.get(path, headers=headers)).status_code == 401


async def test_a_folder_that_is_called_like_such_an_endpoint_keeps_its_key(tmp_path: Path) -> None:
    (tmp_path / "token").mkdir()
    (tmp_path / "token" / "__init__.py").write_text(FOLDER)
    async with service(**KEYS, TOOLS_PATH=str(tmp_path)) as client:
        answers = [await client.get("/token", headers=each) for each in ({}, {"X-API-Key": "secret"})]
    assert [each.status_code for each in answers] == [401, 200]
