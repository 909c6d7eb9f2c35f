"""Tests of one module share a service; each sets alarms as a tenant of its own."""

import secrets

import pytest


@pytest.fixture
def tenant() -> dict[str, str]:
    """The header of a new tenant: alarms and idempotency keys are its own."""
    return {"X-Tenant-ID": f"t-{secrets.token_hex(8)}"}
