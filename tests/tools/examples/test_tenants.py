"""The tenant: told by a header, and kept from the model."""

import httpx
import pytest

from tests.chat.played import JSON
from tests.players.openai_player import OpenAIPlayer, sensible_model
from tests.serving import service
from tests.tools.examples.asking import SAID, calls

ORDERS = ("/tool/context/order", "/tool/context/order-direct")


@pytest.mark.parametrize("path", ORDERS)
@pytest.mark.parametrize(("headers", "tenant"), [({}, "zh"), ({"X-Tenant-ID": "acme-1"}, "acme-1")])
async def test_the_tenant_comes_from_the_header_and_never_reaches_the_model(
    path: str, headers: dict[str, str], tenant: str
) -> None:
    async with OpenAIPlayer(sensible_model({"id": 123})) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        answer = await client.get(path, headers=headers | JSON)
    assert f"订单号:123 租户Id:{tenant}" in answer.json()["answer"]
    assert tenant not in str(player.requests[0].body["tools"]) + str(player.requests[0].body["messages"])
    assert answer.json()["finish_reason"] == ("return_direct" if path.endswith("direct") else "stop")
    assert len(player.requests) == (1 if path.endswith("direct") else 2)


async def test_a_model_that_names_a_tenant_is_refused() -> None:
    script = [calls(("getTradeOrderInfo", {"id": 123, "tenantId": "other"})), SAID]
    async with OpenAIPlayer(script) as player, service(OPENAI_BASE_URL=player.base_url) as client:
        answer = (await client.get("/tool/context/order", headers=JSON)).json()
    assert answer["tool_calls"][0]["error_kind"] == "invalid-arguments"


async def test_two_tenants_in_one_request_are_refused(offline: httpx.AsyncClient) -> None:
    answer = await offline.get("/tool/context/order", headers=[("X-Tenant-ID", "a"), ("X-Tenant-ID", "b")])
    assert (answer.status_code, answer.json()["code"]) == (422, "validation")
