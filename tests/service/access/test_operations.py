"""Every operation and every kind of caller, and what OpenAPI says of keys."""

from collections.abc import AsyncGenerator, Iterator
from typing import Any

import httpx
import pytest

from tests.serving import service
from toolchat.service.access.keys import digest_of

KINDS = ("none", "wrong", "expired", "asker", "operator")
OPEN = {"/health/live", "/health/ready", "/.well-known/oauth-protected-resource/mcp"}
ANY_ROLE = {"/", "/tools", "/approvals", "/approvals/never-there", "/person"}
OPERATORS = {"/metrics", "/audit"}
LIMITS = {"expired": "expires = 2020-01-01T00:00:00Z", "asker": 'roles = ["ask"]', "operator": 'roles = ["operate"]'}


@pytest.fixture(scope="module")
async def guarded(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[httpx.AsyncClient, None]:
    file = tmp_path_factory.mktemp("keys") / "keys.toml"
    entries = [f'[[keys]]\nname = "{n}"\nsha256 = "{digest_of(n)}"\n{more}\n' for n, more in LIMITS.items()]
    file.write_text("".join(entries))
    settings = {"API_KEYS_FILE": str(file), "TRUSTED_PROXIES": "127.0.0.1", "OPEN_PATHS": "/openapi.json"}
    async with service("tests.service.access.folders", **settings) as client:  # with a folder of a user
        yield client


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for path, methods in document["paths"].items():
        for method in methods:
            yield method.upper(), path.replace("{sessionId}", "never-there").replace("{identifier}", "never-there")


def expected(kind: str, path: str) -> set[int]:
    """The statuses by which the door answers; none where it lets in."""
    if path in OPEN:
        return set()
    if kind not in ("asker", "operator"):
        return {401}
    needed = "operator" if path in OPERATORS else "asker"
    return set() if path in ANY_ROLE or kind == needed else {403}


async def test_every_operation_answers_every_kind_of_caller_as_it_should(guarded: httpx.AsyncClient) -> None:
    asked = list(operations((await guarded.get("/openapi.json")).json()))
    assert len(asked) > 40
    wrong = []
    for number, (method, path) in enumerate(asked):
        for kind in KINDS:
            headers = {"X-Forwarded-For": f"2001:db8::{number:x}"} | ({} if kind == "none" else {"X-API-Key": kind})
            answer = await guarded.request(method, path, headers=headers)
            at_the_door = {answer.status_code} & {401, 403, 421, 429}
            if at_the_door != expected(kind, path):
                wrong.append((method, path, kind, answer.status_code, answer.text[:100]))
    assert wrong == []


async def test_a_refusal_reveals_nothing_about_existing_ids(guarded: httpx.AsyncClient) -> None:
    paths = ("/chat/never-there", "/tools/todoRead", "/no/such/path", "/chat")
    said = set()
    for number, path in enumerate(paths):
        answer = await guarded.get(path, headers={"X-Forwarded-For": f"2001:db8:1::{number:x}"})
        document = answer.json()
        document.pop("request_id")
        said.add((answer.status_code, str(document)))
    assert len(said) == 1


@pytest.mark.parametrize(("variables", "without_a_key"), [({}, True), ({"API_KEYS": "a=" + "0" * 64}, False)])
async def test_openapi_documents_whether_a_key_is_required(variables: dict[str, str], without_a_key: bool) -> None:
    async with service(**variables) as client:
        document = (await client.get("/openapi.json")).json()
    assert len(document["components"]["securitySchemes"]) == 2
    assert ({} in document["security"]) is without_a_key
    assert all(document["paths"][path]["get"]["security"] == [] for path in OPEN)
