"""Why Redis cannot be used, as operators read it."""

import re

import pytest

from tests.players.redis_server import RedisServer
from tests.ports import silent_port
from tests.waiting import PATIENCE
from toolchat.errors import StoreUnavailable
from toolchat.state.redis import RedisStateStore
from toolchat.state.redis_connection import _MEANINGS


async def test_the_cause_tells_apart_what_is_wrong_and_shows_no_password() -> None:
    with silent_port() as port:
        async with RedisServer("canary") as server:
            await server.run("ACL", "SETUSER", "reader", "on", ">canary", "~*", "+get")
            url, nobody = f"127.0.0.1:{server.port}", f"127.0.0.1:{port}"
            causes = {
                f"redis://:canary-wrong@{url}": f"WRONGPASS: {url}",
                f"redis://{url}": f"NOAUTH: {url}",
                f"redis://reader:canary@{url}": f"{_MEANINGS['NOPERM']}: {url}",
                f"redis://:canary@{url}/99": f"ERR: {url}, database 99",
                f"rediss://:canary@{url}": f"no answer in time: {url} by TLS",
                f"redis://:canary@{nobody}": f"connection refused: {nobody}",
                "redis://:canary@redis.invalid": "name not found (…): redis.invalid:6379",
            }
            told = {address: await cause_of(address) for address in causes}
    assert told == causes


async def cause_of(url: str) -> str:
    store = RedisStateStore(url, deadline=0.5 if url.startswith("rediss:") else PATIENCE)
    with pytest.raises(StoreUnavailable) as raised:
        await store.put("memory:a", b"x", ttl=30)
    await store.aclose()
    return re.sub(r"\(.*\)", "(…)", str(raised.value.log_fields["cause"]))
