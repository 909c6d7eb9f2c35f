"""What OpenAPI says of the keys that a service takes."""

import pytest

from app.access.keys import digest_of
from tests.serving import service

ALICE = f"alice={digest_of('toolchat_right')}"


@pytest.mark.parametrize(
    ("variables", "without_a_key"), [({}, True), ({"API_KEYS": ALICE}, False), ({"ALLOW_ANONYMOUS": "true"}, True)]
)
async def test_openapi_documents_the_key_headers_and_whether_a_key_is_required(
    variables: dict[str, str], without_a_key: bool
) -> None:
    async with service(**variables) as client:
        document = (await client.get("/openapi.json")).json()
    schemes = document["components"]["securitySchemes"]
    assert [(each["type"], each.get("scheme"), each.get("name")) for each in schemes.values()] == [
        ("http", "bearer", None),
        ("apiKey", None, "X-API-Key"),
    ]
    wanted: list[dict[str, list[str]]] = [{name: []} for name in schemes]
    assert document["security"] == ([{}, *wanted] if without_a_key else wanted)
    own = {
        path: each["security"]
        for path, item in document["paths"].items()
        for each in item.values()
        if "security" in each
    }
    assert own == {"/health/live": [], "/health/ready": []}
