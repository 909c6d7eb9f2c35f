"""A receiver of the webhook, and the support desk that tells it of its approvals."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.service.api.approvals.desk_service import Desk
from tests.service.api.approvals.receiver import Receiver, receiving, told_desk


@pytest.fixture
async def receiver() -> AsyncGenerator[Receiver, None]:
    async with receiving() as receiver:
        yield receiver


@pytest.fixture
async def desk(receiver: Receiver, tmp_path: Path) -> AsyncGenerator[Desk, None]:
    async with told_desk(tmp_path, receiver) as desk:
        yield desk
