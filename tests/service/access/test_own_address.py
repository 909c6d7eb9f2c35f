"""Under which address the service names itself: to hosts of MCP, in links, and to the pages that it serves."""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx
import pytest

from tests.players.openai_player import OpenAIPlayer, message, whole
from tests.service.protocols.openai.asking import call
from tests.serving import service
from tests.waiting import until
from toolchat.errors import ConfigurationError
from toolchat.service.access.keys import digest_of

METADATA = "/.well-known/oauth-protected-resource/mcp"
KEY = {"X-API-Key": "secret"}
KEYS = {"API_KEYS": f"alice={digest_of('secret')}", "CHAT_PROVIDER": "openai_compatible"}
PROXY = {"TRUSTED_PROXIES": "127.0.0.1"}
HTTPS = {"Host": "ai.example.org", "X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.5"}
QUESTION = {"userInput": "ship it", "tools": ["ship"]}


@asynccontextmanager
async def shop(**variables: str) -> AsyncGenerator[httpx.AsyncClient, None]:
    """A service whose model always calls a tool that needs an approval."""
    async with OpenAIPlayer() as player:
        player.follow(lambda _: whole(message("tool_calls", content=None, tool_calls=[call("ship", '{"number":1}')])))
        async with service(
            "tests.service.protocols.openai.folders", OPENAI_BASE_URL=player.base_url, **variables
        ) as client:
            yield client


@pytest.mark.parametrize(
    ("variables", "sent", "address"),
    [
        (PROXY, HTTPS, "https://ai.example.org"),
        (PROXY, HTTPS | {"X-Forwarded-Host": "chat.example.org:8443"}, "https://chat.example.org:8443"),
        (PROXY | {"SERVER_ROOT_PATH": "/ai"}, HTTPS, "https://ai.example.org/ai"),
        ({"PUBLIC_URL": "https://ai.example.org/"}, {}, "https://ai.example.org"),
        ({"PUBLIC_URL": "https://AI.example.org"}, HTTPS | {"Host": "other.example"}, "https://ai.example.org"),
        ({"PUBLIC_URL": "http://[::1]:8083", "SERVER_ROOT_PATH": "/ai"}, {}, "http://[::1]:8083/ai"),
        ({}, HTTPS, "http://ai.example.org"),
        ({}, {}, ""),
    ],
)
async def test_every_absolute_address_of_the_service_is_the_one_that_clients_call(
    variables: dict[str, str], sent: dict[str, str], address: str
) -> None:
    async with shop(**KEYS, **variables) as client:
        address = address or str(client.base_url)
        metadata = await client.get(METADATA, headers=sent)
        refused = await client.post("/mcp", headers=sent)
        asked = await client.post("/chat", json=QUESTION, headers=sent | KEY | {"Accept": "application/json"})
        later = await client.post("/chat", json=QUESTION, headers=sent | KEY | {"Prefer": "respond-async"})
        where = later.headers["location"].removeprefix(variables.get("SERVER_ROOT_PATH", ""))
        answer: dict[str, str] = {}

        async def is_answered() -> bool:
            answer.update((await client.get(where, headers=KEY)).json().get("answer") or {})
            return bool(answer)

        await until(is_answered)
    assert metadata.json()["resource"] == f"{address}/mcp"
    assert refused.headers["www-authenticate"].endswith(f'resource_metadata="{address}{METADATA}"')
    links = [re.findall(r"open (\S+?)\?", text) for text in (asked.json()["answer"], answer["answer"])]
    assert links == [[f"{address}/playground/"]] * 2


@pytest.mark.parametrize(
    ("page", "status"),
    [("https://ai.example.org", 200), ("https://evil.example", 403), ("null", 403), ("https://[", 403)],
)
async def test_a_page_of_the_public_address_is_no_other_site_whatever_host_the_proxy_sends(
    page: str, status: int
) -> None:
    async with service(CHAT_PROVIDER="offline", PUBLIC_URL="https://ai.example.org") as client:
        assert (await client.get("/time/chat?query=hi", headers={"Origin": page})).status_code == status


@pytest.mark.parametrize("url", ["ai.example.org", "ftp://ai.example.org", "https://ai.example.org/ai", "https://a b"])
async def test_a_public_url_that_is_no_scheme_and_host_stops_the_start(url: str) -> None:
    with pytest.raises(ConfigurationError, match="PUBLIC_URL: must be scheme and host"):
        async with service(PUBLIC_URL=url):
            pass
