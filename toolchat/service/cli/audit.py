"""The command ``audit export``: who decided what about which call."""

from datetime import datetime

from pydantic_core import to_json

from toolchat.service.api.audit import AuditTrail
from toolchat.service.cli.dialogue import ANSWERED
from toolchat.service.cli.program import Program
from toolchat.service.cli.state import with_store
from toolchat.service.cli.terminal import print_result
from toolchat.state.base import StateStore


def export(_: Program, *, begin: datetime | None, end: datetime | None, tenant: str, tool: str) -> int:
    """Write the decisions to standard output, the newest first, one JSON object a line.

    Raises:
        ConfigurationError: the configuration is invalid.
    """

    async def write(store: StateStore) -> int:
        async for each in AuditTrail(store).entries(begin, end, tenant=tenant, tool=tool):
            print_result(to_json(each).decode())
        return ANSWERED

    return with_store(write)
