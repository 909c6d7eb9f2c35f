"""What lies between the service and its provider: a forward proxy, and a name that moves."""

import time

import pytest

from tests.faults.service import Service
from tests.faults.stage import Stage
from tests.faults.upstream import Upstream
from tests.programs import require
from tests.waiting import until

_WITH_HOSTS = 'mount --bind "$0" /etc/hosts && exec "$@"'


@pytest.mark.nightly
async def test_an_upstream_whose_name_moves(stage: Stage) -> None:
    """The provider goes from one address to another, and its name follows; the old address refuses connections."""
    hosts = stage.folder / "hosts"
    hosts.write_text("127.0.0.1 provider.example\n")
    async with Upstream() as first:
        port = first.port
        prefix = (require("unshare"), "-rm", "sh", "-c", _WITH_HOSTS, str(hosts))
        service = await stage.own(*prefix, OPENAI_BASE_URL=f"http://provider.example:{port}/v1", MODEL_MAX_ATTEMPTS="1")
        assert await _is_answered(service), "the first address is not asked"
    hosts.write_text("127.0.0.2 provider.example\n")
    await stage.cleanup.enter_async_context(Upstream("127.0.0.2", port))
    began = time.monotonic()
    await until(lambda: _is_answered(service))
    assert time.monotonic() - began <= 20


async def _is_answered(service: Service) -> bool:
    return (await service.ask("/time/chat?query=hi")).status == 200
