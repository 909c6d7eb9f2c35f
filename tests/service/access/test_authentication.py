"""Who is let in: by what it bears, by where it asks, and by the name that it calls the service."""

import json
import re
import subprocess
from collections.abc import AsyncGenerator
from pathlib import Path

import httpx
import pytest

from tests.command_line import application, environment
from tests.serving import service
from toolchat.errors import ConfigurationError
from toolchat.service.access.keys import digest_of
from toolchat.service.observability.logs import JsonFormatter

PATH = "/time/chat-tool-function"
KEY = "toolchat_right"
ALICE = f"alice={digest_of(KEY)}"


@pytest.fixture(scope="module")
async def guarded() -> AsyncGenerator[httpx.AsyncClient, None]:
    async with service(API_KEYS=ALICE) as client:
        yield client


async def test_a_key_is_taken_from_either_header(guarded: httpx.AsyncClient) -> None:
    bearing = [
        {"authorization": f"bearer  {KEY}"},
        {"X-API-Key": KEY},
        {"X-API-Key": KEY, "Authorization": f"Bearer {KEY}"},
        {"X-API-Key": KEY, "Authorization": "Basic abc"},
    ]
    assert {(await guarded.get(PATH, headers=headers)).status_code for headers in bearing} == {200}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-API-Key": ""},
        {"X-API-Key": KEY + "x"},
        {"X-API-Key": KEY[:-1]},
        {"X-API-Key": digest_of(KEY)},
        {"X-API-Key": KEY, "Authorization": "Bearer another"},
        {"Authorization": "Bearer"},
        {"Authorization": f"Basic {KEY}"},
        {"Authorization": KEY},
        {"Cookie": f"key={KEY}"},
    ],
    ids=str,
)
async def test_other_credentials_are_rejected_with_the_same_problem_document(
    headers: dict[str, str], guarded: httpx.AsyncClient
) -> None:
    answer = await guarded.get(PATH, params={"api_key": KEY, "key": KEY}, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == 'Bearer realm="toolchat"'
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.json()["code"], KEY in answer.text) == ("unauthorized", False)


OPEN = ("/health/live", "/health/ready", "/playground/")
FOLDER = """
from toolchat import ToolModule, tool

@tool
async def look() -> str:
    "Look."
    return "seen"

module = ToolModule(functions=(look,), default_query="look")
"""


def tool_folders(path: Path, **sources: str) -> dict[str, str]:
    """Write tool folders; returns the variable that names them."""
    for name, source in sources.items():
        (path / name).mkdir()
        (path / name / "__init__.py").write_text(source)
    return {"TOOLS_PATH": str(path)}


@pytest.mark.parametrize(
    ("settings", "opened"),
    [
        ({}, ("/docs", "/docs/errors.md", "/openapi.json")),
        ({"OPEN_PATHS": "/tools,/metrics"}, ("/tools", "/metrics")),
        ({"OPEN_PATHS": "/*/chat"}, ("/time/chat", "/docs_search/chat")),
    ],
)
async def test_open_paths_match_whole_segments(
    settings: dict[str, str], opened: tuple[str, ...], tmp_path: Path
) -> None:
    folders = tool_folders(tmp_path, docs_search=FOLDER, healthy=FOLDER.replace("look", "look_well"))
    paths = ("/docs", "/docs/errors.md", "/openapi.json", "/tools", "/metrics", "/time/chat", "/docs_search/chat")
    closed = ("/docs_search/chat-tool-function", "/healthy/chat-tool-function", "/health/", "/health/live/more")
    async with service(API_KEYS=ALICE, **folders, **settings) as client:
        for path in (*OPEN, *paths, *closed):
            expected = {200, 404} if path in (*OPEN, *opened) or path.startswith("/health/live/") else {401}
            assert (await client.get(path)).status_code in expected, path


@pytest.mark.parametrize("value", ["/docs*", "docs", "/", "/a//b", "/a/b*c"])
async def test_a_pattern_of_a_part_of_a_segment_stops_the_start(value: str) -> None:
    with pytest.raises(ConfigurationError, match="OPEN_PATHS"):
        async with service(OPEN_PATHS=value):
            pass


async def test_two_folders_with_one_path_stop_the_start(tmp_path: Path) -> None:
    second = FOLDER.replace("functions", 'path="/time", functions')
    with pytest.raises(ConfigurationError, match="the path /time/chat exists already"):
        async with service(**tool_folders(tmp_path, second=second)):
            pass


async def test_a_missing_role_gets_403(tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    roles = {"asker": "ask", "operator": "operate"}
    entries = [f'[[keys]]\nname = "{n}"\nsha256 = "{digest_of(n)}"\nroles = ["{role}"]\n' for n, role in roles.items()]
    file.write_text("".join(entries))
    async with service(API_KEYS_FILE=str(file)) as client:
        asked = {(name, path): await client.get(path, headers={"X-API-Key": name}) for name in roles
                 for path in (PATH, "/metrics", "/tools", "/")}  # fmt: skip
    refused = {place for place, answer in asked.items() if answer.status_code == 403}
    assert refused == {("asker", "/metrics"), ("operator", PATH)}
    assert {answer.json()["code"] for place, answer in asked.items() if place in refused} == {"forbidden"}


async def test_logs_have_the_name_of_the_principal_and_never_a_key(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    async with service(API_KEYS=ALICE) as client:
        await client.get(PATH, headers={"X-API-Key": KEY})
        await client.get(PATH, headers={"X-API-Key": "guessed-key"})
    lines = [JsonFormatter().format(record) for record in caplog.records if record.name.startswith("toolchat.")]
    assert [json.loads(line)["principal"] for line in lines if "principal" in line] == ["alice"]
    assert not [line for line in lines if KEY in line or "guessed-key" in line or digest_of(KEY) in line]


async def test_without_a_key_the_service_answers_this_machine_by_its_own_names_only() -> None:
    async with service(ALLOWED_HOSTS="chat.example.org") as client:
        for host, status in {"evil.example": 421, "chat.example.org": 200, "localhost:1": 200, "[::1]": 200}.items():
            answer = await client.get(PATH, headers={"Host": host})
            assert answer.status_code == status, host
        assert (await client.get(PATH, headers={"Host": "evil.example"})).json()["code"] == "misdirected"
        assert (await client.get("/playground/", headers={"Host": "evil.example"})).status_code == 421
        assert (await client.get("/health/ready", headers={"Host": "evil.example"})).status_code == 200


async def test_a_request_with_a_key_may_use_any_host_name() -> None:
    async with service(API_KEYS=ALICE) as client:
        assert (await client.get(PATH, headers={"Host": "any.example", "X-API-Key": KEY})).status_code == 200
        assert (await client.get("/playground/", headers={"Host": "any.example"})).status_code == 200


async def test_an_invalid_key_is_rejected_even_if_anonymous_requests_are_allowed() -> None:
    async with service(API_KEYS=ALICE, ALLOW_ANONYMOUS="true") as client:
        assert (await client.get(PATH)).status_code == 200
        assert (await client.get(PATH, headers={"X-API-Key": "wrong"})).status_code == 401


def test_a_key_is_generated_and_printed_once_if_others_can_connect(tmp_path: Path) -> None:
    command = application()
    variables = environment({"SERVER_HOST": "0.0.0.0", "SERVER_PORT": "0", "CHAT_PROVIDER": "offline"})
    with subprocess.Popen(command, cwd=tmp_path, env=variables, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            lines = [json.loads(process.stderr.readline())["message"] for _ in range(6)]
            port = re.findall(r":(\d+) ", lines[0])[0]
            key = re.findall(r"generated one for this run: (\S+)", lines[3])[0]
            assert lines[5].endswith(f":{port}/playground/#key={key}")
            url = f"http://127.0.0.1:{port}{PATH}"
            assert httpx.get(url, trust_env=False).status_code == 401
            assert httpx.get(url, headers={"X-API-Key": key}, trust_env=False).status_code == 200
            process.terminate()
            rest = process.stderr.read()
        finally:
            process.kill()  # otherwise a failure above would wait for the service forever
    assert key not in rest


ORIGIN = "https://chat.example.org"


@pytest.fixture(scope="module")
async def beside() -> AsyncGenerator[httpx.AsyncClient, None]:
    """A service with a key that a page of another origin may ask."""
    async with service(API_KEYS=ALICE, CORS_ORIGINS=ORIGIN) as client:
        yield client


async def test_pages_of_the_origins_that_are_named_may_ask_and_others_not(beside: httpx.AsyncClient) -> None:
    asked = {"Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "authorization"}
    allowed = await beside.options(PATH, headers={"Origin": ORIGIN, **asked})
    assert (allowed.status_code, allowed.headers["access-control-allow-origin"]) == (200, ORIGIN)
    assert "access-control-allow-credentials" not in allowed.headers
    refused = await beside.options(PATH, headers={"Origin": "https://evil.example", **asked})
    assert (refused.status_code, "access-control-allow-origin" in refused.headers) == (400, False)
    unknown = await beside.get(PATH, headers={"Origin": ORIGIN})
    assert (unknown.status_code, unknown.headers["access-control-allow-origin"]) == (401, ORIGIN)


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("/mcp", "authorization, content-type, mcp-protocol-version, mcp-method, mcp-name, mcp-session-id"),
        ("/v1/chat/completions", "authorization,content-type,X-Stainless-OS,x-stainless-retry-count,openai-beta"),
        ("/v1/responses", "x-title, http-referer, traceparent, tracestate, baggage, sentry-trace, x-of-tomorrow"),
    ],
)
async def test_pages_of_those_origins_may_send_any_header_and_read_every_one(
    path: str, sent: str, beside: httpx.AsyncClient
) -> None:
    asked = {"Origin": ORIGIN, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": sent}
    allowed = await beside.options(path, headers=asked | {"Access-Control-Request-Private-Network": "true"})
    refused = await beside.post(path, headers={"Origin": ORIGIN})
    assert (allowed.status_code, allowed.headers["access-control-allow-headers"]) == (200, sent)
    assert (allowed.headers["access-control-allow-origin"], allowed.headers["vary"][:6]) == (ORIGIN, "Origin")
    assert allowed.headers["access-control-allow-private-network"] == "true"
    assert (refused.status_code, "www-authenticate" in refused.headers) == (401, True)
    assert refused.headers["access-control-expose-headers"] == "*"


@pytest.mark.parametrize(
    "origin",
    [
        *("app://obsidian.md", "tauri://localhost", "capacitor://localhost", "ionic://localhost", "http://[::1]:5173"),
        *("chrome-extension://mhjfbmdgcfjbbpaeojofohoefgiehjai", "vscode-webview://1ab2c3d4", "http://my_host:3000"),
        *("https://Chat.example.org", "https://chat.example.org/"),
    ],
)
async def test_pages_of_programs_can_be_named_by_their_own_schemes(origin: str) -> None:
    sent = origin.lower().rstrip("/")  # as browsers write it
    async with service(CHAT_PROVIDER="offline", CORS_ORIGINS=f"https://other.example, {origin}") as client:
        answers = [await client.get("/chat?userInput=hi", headers={"Origin": each}) for each in (sent, f"{sent}.evil")]
    assert [each.headers.get("access-control-allow-origin") for each in answers] == [sent, None]
    assert [each.status_code for each in answers] == [200, 403]


@pytest.mark.parametrize(
    "origin", ["*", "null", "chat.example.org", "https://", "https://a.example/page", "https://*.b"]
)
async def test_what_names_no_page_or_any_page_stops_the_start(origin: str) -> None:
    with pytest.raises(ConfigurationError, match=r"CORS_ORIGINS: .* is no origin"):
        async with service(CORS_ORIGINS=origin):
            pass
