"""An MCP host behind an nginx that ends TLS, which checks what it reads before it signs in as the official SDKs do."""

import asyncio
import re
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from tests.http.certificates import Authority
from tests.ports import reserved
from tests.programs import require
from tests.service.api.sessions.replicas import listens
from tests.serving import service
from tests.waiting import PATIENCE, until
from toolchat.service.access.keys import digest_of

CONFIGURATION = """
daemon off; master_process off; pid nginx.pid; error_log error.log;
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    server {{
        listen {address} ssl;
        ssl_certificate {certificate}; ssl_certificate_key {certificate};
        proxy_set_header Host $http_host;
        proxy_set_header X-Forwarded-For $remote_addr;
        {named}
        location {prefix}/ {{ proxy_pass {url}/; }}
        location {prefix}/mcp {{ proxy_pass {url}; }}
    }}
}}
"""
NAMED = "proxy_set_header X-Forwarded-Proto $scheme;"


@asynccontextmanager
async def behind_tls(folder: Path, prefix: str, *, is_named: bool) -> AsyncGenerator[httpx.AsyncClient, None]:
    """A service below a prefix of an nginx that says that clients use HTTPS, or a service that knows it.

    Of a prefix, nginx strips paths but that of MCP, which it forwards as it is.
    """
    authority = Authority(folder)
    with reserved() as holder:
        address = f"127.0.0.1:{holder.getsockname()[1]}"
        told = {"TRUSTED_PROXIES": "127.0.0.1"} if is_named else {"PUBLIC_URL": f"https://{address}"}
        keys = {"API_KEYS": f"alice={digest_of('secret')}", "CHAT_PROVIDER": "offline", "SERVER_ROOT_PATH": prefix}
        async with service(**keys, **told) as client:
            configuration = CONFIGURATION.format(
                address=address,
                certificate=authority.certificate(),
                named=NAMED if is_named else "",
                prefix=prefix,
                url=client.base_url,
            )
            (folder / "nginx.conf").write_text(configuration)
            command = ["-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", "error.log"]
            process = await asyncio.create_subprocess_exec(require("nginx"), *command)
            try:
                await until(lambda: listens(holder.getsockname()[1]))
                trusting = ssl.create_default_context(cafile=str(authority.file))
                async with httpx.AsyncClient(
                    verify=trusting, base_url=f"https://{address}{prefix}", timeout=PATIENCE
                ) as outside:
                    yield outside
            finally:
                process.terminate()
                await asyncio.wait_for(process.wait(), PATIENCE)


@pytest.mark.parametrize("prefix", ["", "/ai"])
@pytest.mark.parametrize("is_named", [True, False], ids=["by the proxy", "by PUBLIC_URL"])
async def test_a_host_is_led_to_the_metadata_of_the_address_that_it_calls(
    prefix: str, tmp_path: Path, *, is_named: bool
) -> None:
    async with behind_tls(tmp_path, prefix, is_named=is_named) as host:
        url = f"{str(host.base_url).rstrip('/')}/mcp"
        refused = await host.post(url, json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
        (named,) = re.findall(r'resource_metadata="(.*)"', refused.headers["www-authenticate"])
        metadata = await host.get(named)
        let_in = await host.post(
            url, json={"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers={"Authorization": "Bearer secret"}
        )
    assert refused.status_code == 401
    assert (metadata.status_code, metadata.json()["resource"]) == (200, url)
    assert (let_in.status_code, let_in.json()) == (200, {"jsonrpc": "2.0", "id": 1, "result": {}})
