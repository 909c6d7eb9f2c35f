"""The addresses on which the service listens."""

from pathlib import Path

import httpx
import pytest

from tests.command_line import started
from tests.players.redis_server import RedisServer
from tests.serving import client_of


@pytest.mark.parametrize("workers", ["1", "2"])
async def test_all_addresses_are_those_of_both_protocols(workers: str, tmp_path: Path) -> None:
    variables = {"SERVER_HOST": "::", "ALLOW_ANONYMOUS": "true", "CHAT_PROVIDER": "offline"}
    async with RedisServer() as redis:
        with started(cwd=tmp_path, **variables, SERVER_WORKERS=workers, REDIS_URL=redis.url) as (_, url):
            for host in ("127.0.0.1", "[::1]"):
                async with client_of(f"http://{host}:{httpx.URL(url).port}") as client:
                    assert (await client.get("/time/chat?query=hi")).status_code == 200
