"""Whatever fails outside is named with its cause: in the log, in ``check`` and for ``operate``, and to no client."""

import json
import logging
from pathlib import Path

import jwt
import pytest

from tests.command_line import run
from tests.ports import silent_port
from tests.service.access.principals import as_, principals
from tests.service.mcp_client.playing import written
from tests.serving import service
from tests.waiting import until

# What fails, by its name in readiness and in `check`.
PARTS = {
    "openai_compatible/gpt-4o-mini": "Chat model",
    "WeatherAPI": "Weather",
    "mcp-far": "MCP far",
    "JWKS": "Tokens",
    "traces": "Traces",
    "state store": "State",
}
TOKEN = jwt.encode({"sub": "x"}, "k" * 32, headers={"kid": "unknown"})


@pytest.mark.parametrize(
    ("store", "host", "cause"),
    [("redis", "127.0.0.1", "connection refused"), ("postgresql", "nobody.invalid", "name not found")],
)
async def test_every_part_that_fails_is_named_with_its_cause_to_operators_and_to_no_client(
    store: str, host: str, cause: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with silent_port() as port, caplog.at_level(logging.INFO):
        address = f"{host}:{port}"
        url = f"http://{address}"
        variables = {
            **principals(tmp_path),
            "OPENAI_BASE_URL": f"{url}/v1",
            "WEATHER_API_KEY": "k",
            "WEATHER_BASE_URL": url,
            "MODEL_MAX_ATTEMPTS": "1",
            "BREAKER_FAILURES": "0",
            "STATE_URL": f"{store}://{address}/0",
            "MCP_SERVERS_FILE": written(tmp_path, far={"url": f"{url}/mcp"}),
            "JWT_JWKS_URL": f"{url}/jwks",
            "JWT_ISSUER": "i",
            "JWT_AUDIENCE": "a",
            "OTEL_EXPORTER_OTLP_ENDPOINT": url,
            "OTEL_BSP_SCHEDULE_DELAY": "1",
            "OTEL_EXPORTER_OTLP_TIMEOUT": "2",
        }
        async with service(**variables) as client:
            weather = {"city": "London", "days": 1}
            body = {"model": "toolchat", "messages": [{"role": "user", "content": "?"}]}
            answers = [
                await client.post("/v1/chat/completions", json=body, headers=as_("alice")),
                await client.get("/chat?query=hi&sessionId=s", headers=as_("alice")),
                await client.post("/tools/getWeatherFunction", json=weather, headers=as_("alice")),
                await client.get("/tools", headers=as_("", Authorization=f"Bearer {TOKEN}")),
            ]

            async def all_are_named() -> bool:
                ready = await client.get("/health/ready", headers=as_("alice"))
                named.update(ready.json()["failures"])
                return named.keys() >= PARTS.keys()

            named = dict[str, str]()
            await until(all_are_named)
            answers += [await client.get("/health/ready"), await client.get("/tools", headers=as_("alice"))]
    for part in PARTS:
        assert cause in named[part], part
        assert address in named[part], part
    logged = [json.dumps(vars(each), default=str) for each in caplog.records if each.name.startswith("toolchat")]
    for sign in ("model", "WeatherAPI", "MCP server", "identity provider", "traces", "state store"):
        assert any(sign in line and cause in line and address in line for line in logged), sign
    for answer in answers:
        assert address not in answer.text
    lines = run("check", cwd=tmp_path, **variables).stdout.splitlines()
    for title in PARTS.values():
        [line] = [each for each in lines if title in each]
        assert cause in line, line
        assert address in line, line
