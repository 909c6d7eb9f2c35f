"""What a host without a key learns: RFC 9728, the metadata of the protected resource."""

from pathlib import Path

import httpx
import pytest

from tests.protocols.mcp_server.host import Host
from tests.serving import service
from toolchat.service.access.keys import digest_of

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
