"""Alarms and keys belong to their tenant."""

import httpx

from tests.tools.alarms.asking import alarms, key


async def test_one_tenants_idempotency_key_is_not_anothers(offline: httpx.AsyncClient) -> None:
    for tenant in ("a", "b"):
        answer = await offline.post("/tool/alarm", headers=key(X_Tenant_ID=tenant))
        assert "idempotency-replayed" not in answer.headers
        assert len(await alarms(offline, **{"X-Tenant-ID": tenant})) == 1


async def test_an_alarm_is_deleted_by_its_tenant_alone(offline: httpx.AsyncClient) -> None:
    await offline.post("/tool/alarm", headers=key())
    (alarm,) = await alarms(offline)
    path = f"/tool/alarms/{alarm['id']}"
    assert (await offline.delete(path, headers={"X-Tenant-ID": "other"})).status_code == 404
    assert await alarms(offline) == [alarm]
    assert (await offline.delete(path)).json() == alarm
    assert (await offline.delete(path)).json()["code"] == "not-found"
    assert await alarms(offline) == []
