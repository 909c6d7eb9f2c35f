"""How ``STATE_URL`` names PostgreSQL."""

import sys

import pytest
from pydantic import SecretStr

from toolchat.errors import ConfigurationError
from toolchat.service.composition.state import _without_option, state_store
from toolchat.service.settings.service_settings import Settings


@pytest.mark.parametrize(
    ("url", "address", "schema"),
    [
        ("postgresql://me:pass@h:1/db", "postgresql://me:pass@h:1/db", "toolchat"),
        ("postgres:///db?schema=other", "postgres:///db", "other"),
        (
            "postgresql:///db?host=/run&schema=a%2Db&options=-c%20a=b",
            "postgresql:///db?host=/run&options=-c%20a=b",
            "a-b",
        ),
    ],
)
def test_the_schema_is_our_option_and_the_rest_goes_to_libpq(url: str, address: str, schema: str) -> None:
    assert _without_option(url, "schema", "toolchat") == (address, schema)


@pytest.mark.parametrize("name", ["postgres", "postgresql"])
def test_the_url_opens_a_store_with_its_schema(name: str) -> None:
    pytest.importorskip("psycopg", reason="needs psycopg: pip install psycopg", exc_type=ImportError)
    store = state_store(Settings(state_url=SecretStr(f"{name}://me:canary@h:1/db?schema=other"), server_workers=2))
    assert (store.kind, vars(store)["_schema"], vars(store)["_server"]) == ("postgresql", "other", "h:1, database db")


@pytest.mark.parametrize(
    "url", ["postgresql://h/db?schema=a.b", "postgresql://h:port/db", "postgresql://h/db?nosuch=1"]
)
def test_an_unusable_url_is_refused_with_the_forms(url: str) -> None:
    pytest.importorskip("psycopg", reason="needs psycopg: pip install psycopg", exc_type=ImportError)
    with pytest.raises(ConfigurationError, match=r"^STATE_URL: must be .* or postgresql://"):
        state_store(Settings(state_url=SecretStr(url)))


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "toolchat.state.postgresql", raising=False)
    with pytest.raises(ConfigurationError, match=r"needs the package psycopg\[binary\]: pip install"):
        state_store(Settings(state_url=SecretStr("postgresql://h/db")))
