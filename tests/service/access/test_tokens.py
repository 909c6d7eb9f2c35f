"""Tokens of an identity provider are taken when everything about them is right, and only then."""

import asyncio
import time
from collections.abc import AsyncGenerator
from typing import Any

import httpx
import jwt
import pytest

from tests.service.access.issuer import AUDIENCE, ISSUER, Issuer
from tests.serving import service

PATH = "/time/chat-tool-function"


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture(scope="module")
async def guarded(issuer: Issuer) -> AsyncGenerator[httpx.AsyncClient, None]:
    async with (
        issuer.serving() as url,
        service(JWT_JWKS_URL=url, JWT_ISSUER=ISSUER, JWT_AUDIENCE=AUDIENCE) as client,
    ):
        yield client


def bearing(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize("key", ["rsa", "ec"])
async def test_a_token_of_the_provider_lets_in(guarded: httpx.AsyncClient, issuer: Issuer, key: str) -> None:
    fetched = issuer.fetched
    for _ in range(3):
        answer = await guarded.get(PATH, headers=bearing(issuer.token(key, aud=[AUDIENCE, "others"])))
        assert answer.status_code == 200
    assert issuer.fetched <= fetched + 1


WRONG: list[dict[str, Any]] = [
    {"iss": "https://evil.example"},
    {"iss": None},
    {"aud": "another"},
    {"aud": None},
    {"exp": 1_000_000_000},
    {"exp": "soon"},
    {"exp": None},
    {"exp": 10**400},
    {"exp": -(10**18)},
    {"tenant": ["a"]},
    {"nbf": 4_000_000_000},
    {"sub": ""},
    {"sub": None},
]


@pytest.mark.parametrize("claims", WRONG, ids=lambda claims: str(claims)[:30])
async def test_a_token_with_a_wrong_claim_is_no_key(
    guarded: httpx.AsyncClient, issuer: Issuer, claims: dict[str, Any]
) -> None:
    answer = await guarded.get(PATH, headers=bearing(issuer.token(**claims)))
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
    assert answer.json()["detail"].startswith(("the token is not valid: ", "the token has expired"))


async def test_a_token_signed_by_another_issuer_is_rejected(guarded: httpx.AsyncClient, issuer: Issuer) -> None:
    other, claims = Issuer(), {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "exp": time.time() + 600}
    forged = [
        other.token(),
        other.token("ec", {"kid": "rsa"}),
        jwt.encode(claims, "", "none"),
        jwt.encode(claims, "a" * 64, "HS256", headers={"kid": "rsa"}),
        issuer.token(header={"kid": "unknown"}),
        issuer.token()[:-4],
        "a.b.c",
        "..",
        "a" * 9000 + ".b.c",
    ]
    answers = await asyncio.gather(*(guarded.get(PATH, headers=bearing(each)) for each in forged))
    assert {each.status_code for each in answers} == {401}


async def test_claims_grant_tools_and_roles(guarded: httpx.AsyncClient, issuer: Issuer) -> None:
    asker = bearing(issuer.token(sub="auth0|7"))
    assert (await guarded.get("/metrics", headers=asker)).status_code == 403
    operator = bearing(issuer.token(roles=["operate", "admin", "no role\n"]))
    assert (await guarded.get("/metrics", headers=operator)).status_code == 200
    assert (await guarded.get(PATH, headers=operator)).status_code == 403
    narrow = bearing(issuer.token(tools="todo* getCityTimeMethod"))
    listed = (await guarded.get("/tools", headers=narrow)).text
    assert "getCityTimeMethod" in listed
    assert "getCityTimeFunction" not in listed


async def test_keys_of_the_provider_may_change_and_be_unreadable_for_a_while(issuer: Issuer) -> None:
    fresh = Issuer()
    async with (
        fresh.serving() as url,
        service(JWT_JWKS_URL=url, JWT_ISSUER=ISSUER, JWT_AUDIENCE=AUDIENCE) as client,
    ):
        assert (await client.get(PATH, headers=bearing(fresh.token()))).status_code == 200
        fresh.body = b"<html>"
        assert (await client.get(PATH, headers=bearing(fresh.token(jti="2")))).status_code == 200
        fetched = fresh.fetched
        guesses = [bearing(fresh.token(header={"kid": f"guess-{number}"})) for number in range(20)]
        # At once, since many faults of one client are answered late.
        answers = await asyncio.gather(*(client.get(PATH, headers=each) for each in guesses))
        assert {each.status_code for each in answers} == {401}
        assert fresh.fetched <= fetched + 1


@pytest.mark.parametrize(
    "settings", [{}, {"JWT_ISSUER": ISSUER}, {"JWT_ISSUER": ISSUER, "JWT_AUDIENCE": "a", "JWT_CLAIMS": "email"}]
)
async def test_settings_that_would_take_any_token_stop_the_start(settings: dict[str, str]) -> None:
    with pytest.raises(Exception, match="JWT_"):
        async with service(JWT_JWKS_URL="http://127.0.0.1:9/jwks", **settings):
            pass
