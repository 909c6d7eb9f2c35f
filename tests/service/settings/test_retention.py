"""For how long conversations are stored: by the deployment, and by a key's own entry."""

import time
from pathlib import Path

import httpx
import pytest

from tests.service.access.principals import as_, principals
from tests.serving import client_of, configured, serving
from toolchat.errors import ConfigurationError
from toolchat.service.main import create_app
from toolchat.service.settings.service_settings import Settings
from toolchat.state.base import FOREVER

DAY = 86_400.0


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("3600", 3600), ("12h", 12 * 3600), ("30d", 30 * DAY), (" 1.5 d ", 1.5 * DAY), ("Never", FOREVER)],
)
def test_a_retention_is_a_number_of_seconds_or_a_time(written: str, seconds: float) -> None:
    assert Settings.model_validate({"session_ttl": written}).session_ttl == seconds


@pytest.mark.parametrize("written", ["0", "-1", "30 days", "forever", "inf", "nan", "10000d", "d"])
def test_any_other_retention_is_refused(written: str) -> None:
    with pytest.raises(ConfigurationError, match="SESSION_TTL: must be"):
        configured(SESSION_TTL=written)


@pytest.mark.parametrize("url", ["memory://", "redis://localhost"])
def test_for_ever_needs_a_store_that_can(url: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="SESSION_TTL: never needs a file or PostgreSQL"):
        configured(SESSION_TTL="never", STATE_URL=url)
    keys = principals(tmp_path, bob='session_ttl = "never"')
    with pytest.raises(ConfigurationError, match="session_ttl of bob: never needs a file or PostgreSQL"):
        configured(STATE_URL=url, **keys)
    assert configured(SESSION_TTL="30d", STATE_URL=url).settings.session_ttl == 30 * DAY


async def talk(client: httpx.AsyncClient, name: str) -> None:
    created = await client.post("/v1/conversations", json={}, headers=as_(name))
    for path, body in (
        ("/chat", {"query": "hello", "sessionId": created.json()["id"]}),
        ("/v1/responses", {"model": "toolchat", "input": "hello", "conversation": created.json()["id"]}),
    ):
        assert (await client.post(path, json=body, headers=as_(name))).status_code == 200


async def test_a_key_can_have_a_retention_of_its_own(tmp_path: Path) -> None:
    keys = principals(tmp_path, alice='session_ttl = "30d"', bob='session_ttl = "never"')
    read = configured(CHAT_PROVIDER="offline", STATE_URL=f"sqlite:///{tmp_path}/state.db", SESSION_TTL="2d", **keys)
    app = create_app(read)
    left = {"alice": 30 * DAY, "bob": FOREVER, "narrow": 2 * DAY}
    async with serving(app, read.settings) as url, client_of(url) as client:
        for name in left:
            await talk(client, name)
        records = [each async for each in app.state.service.store.records()]
    assert {each.key.partition(":")[0] for each in records} == {"memory", "conversation", "response"}
    for each in records:
        owner = each.key.partition(":")[2].partition("/")[0]
        assert each.expires - time.time() == pytest.approx(left[owner], abs=600)
