"""The addresses on which the service listens, and those of its clients."""

from pathlib import Path

import httpx
import pytest

from tests.command_line import started


@pytest.mark.parametrize("workers", ["1", "2"])
def test_all_addresses_are_those_of_both_protocols(workers: str, tmp_path: Path) -> None:
    variables = {"SERVER_HOST": "::", "SERVER_WORKERS": workers, "ALLOW_ANONYMOUS": "true"}
    with started(cwd=tmp_path, CHAT_PROVIDER="offline", **variables) as (_, url):
        port = httpx.URL(url).port
        for host in ("127.0.0.1", "[::1]"):
            assert httpx.get(f"http://{host}:{port}/time/chat?query=hi").status_code == 200
