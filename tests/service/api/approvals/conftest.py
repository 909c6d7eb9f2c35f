"""The support desk, with keys for everybody who has a part in a refund."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.service.api.approvals.desk_service import Desk, desk_service


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk, None]:
    async with desk_service(tmp_path) as desk:
        yield desk
