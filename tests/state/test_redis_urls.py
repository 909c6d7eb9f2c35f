"""Addresses of Redis: which are taken, and what is told of them."""

import pytest

from tests.state.outages import AWAY
from toolchat.state.redis import RedisStateStore


@pytest.mark.parametrize(
    "url",
    [
        "http://h",
        "redis://:12/canary@h",
        "redis://h:canary:x",
        "redis://h?canary=1",
        "redis://h?protocol=9",
        "rediss://h?ssl_cert_reqs=canary",
    ],
)
def test_an_unusable_url_is_refused_at_once_without_being_repeated(url: str) -> None:
    with pytest.raises(ValueError, match=r"^the URL of Redis cannot be used$"):
        RedisStateStore(url)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("redis://me:canary@[::1]:1/3", "[::1]:1"),
        ("redis://:canary@localhost:1", "localhost:1"),
        ("unix://me:canary@/nowhere/redis.sock?db=1", "/nowhere/redis.sock"),
    ],
)
async def test_the_warning_has_the_address_of_the_server_and_no_password(
    url: str, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = RedisStateStore(url)
    await store.start()
    await store.aclose()
    (record,) = caplog.records
    assert (record.getMessage(), vars(record)["server"]) == (AWAY, told)
    assert "canary" not in str(vars(record))
