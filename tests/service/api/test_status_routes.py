"""Why upstreams failed: operators read it in the log, in readiness and in ``check``, clients nowhere."""

import json
import logging
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest

from tests.command_line import run
from tests.players.openai_player import OpenAIPlayer, message, whole
from tests.ports import silent_port
from tests.service.access.principals import as_, principals
from tests.service.mcp_client.playing import written
from tests.serving import service
from tests.waiting import until

MODEL = "openai_compatible/gpt-4o-mini"
DETAIL = "upstream-unavailable: the chat provider could not be reached, or the connection was lost"
ONCE = {"MODEL_MAX_ATTEMPTS": "1", "BREAKER_FAILURES": "1"}


async def failures(client: httpx.AsyncClient, name: str) -> Any:
    answer = await client.get("/health/ready", headers=as_(name))
    assert answer.status_code == 200
    return answer.json().get("failures")


async def test_readiness_tells_who_operates_the_service_what_failed_last_and_nobody_else(tmp_path: Path) -> None:
    keys = principals(tmp_path, narrow='roles = ["ask"]')
    with silent_port() as port:
        nobody = f"127.0.0.1:{port}"
        addresses = {"OPENAI_BASE_URL": f"http://{nobody}/v1", "WEATHER_BASE_URL": f"http://{nobody}/v1"}
        async with service(WEATHER_API_KEY="k", **keys, **addresses, **ONCE) as client:
            assert await failures(client, "alice") == {}
            answer = await client.get("/chat", params={"query": "?"}, headers=as_("alice"))
            ran = await client.post(
                "/tools/getWeatherFunction", json={"city": "London", "days": 1}, headers=as_("alice")
            )
            told = await failures(client, "alice")
            hidden = [await failures(client, name) for name in ("narrow", "", "unknown")]
    cause = f"(connection refused: {nobody})"
    unreachable = "could not be reached, or the connection was lost"
    assert told == {MODEL: f"{DETAIL} {cause}", "WeatherAPI": f"upstream-unavailable: WeatherAPI {unreachable} {cause}"}
    assert answer.status_code == 502
    assert nobody not in answer.text + ran.text
    assert hidden == [None, None, None]


async def test_a_success_ends_what_readiness_tells(tmp_path: Path) -> None:
    answers = [whole({"error": {"message": "x"}}, 500), whole(message(content="ok"))]
    async with OpenAIPlayer(lambda _: answers.pop(0)) as model:
        once = {"MODEL_MAX_ATTEMPTS": "1"}
        async with service(OPENAI_BASE_URL=model.base_url, **principals(tmp_path), **once) as client:
            told = []
            for _ in range(2):
                await client.get("/chat", params={"query": "?"}, headers=as_("alice"))
                told.append(list(await failures(client, "alice")))
    assert told == [[MODEL], []]


async def test_the_log_has_the_cause_of_a_failed_question_and_of_an_open_circuit(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with silent_port() as port:
        async with service(OPENAI_BASE_URL=f"http://127.0.0.1:{port}/v1", **ONCE) as client:
            answers = [await client.get("/chat", params={"query": "?"}) for _ in range(2)]
    cause = f"connection refused: 127.0.0.1:{port}"
    finished = [vars(each) for each in caplog.records if each.getMessage() == "request finished"]
    (opened,) = [vars(each) for each in caplog.records if each.getMessage() == "circuit open"]
    assert finished[0]["cause"] == cause
    assert finished[1]["last_failure"] == opened["last_failure"] == f"{DETAIL} ({cause})"
    assert not any(str(port) in answer.text for answer in answers)


async def test_a_refusal_by_the_proxy_in_the_models_name_is_told_until_a_question_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [whole({"error": {"message": "x"}}, 403), whole(message(content="ok"))]
    async with OpenAIPlayer(lambda _: answers.pop(0)) as proxy:
        port = proxy.base_url.split(":")[2].split("/")[0]
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{port}")
        async with service(OPENAI_BASE_URL="http://ollama.invalid/v1", **principals(tmp_path)) as client:
            answer = await client.get("/chat", params={"query": "?"}, headers=as_("alice"))
            told = await failures(client, "alice")
            await client.get("/chat", params={"query": "?"}, headers=as_("alice"))
            assert await failures(client, "alice") == {}
    assert answer.json()["code"] == "provider-auth"
    assert told[MODEL].startswith("provider-auth: ")
    assert told[MODEL].endswith(f"(status 403 came through 127.0.0.1:{port}, which may have sent it itself)")
    assert port not in answer.text


async def test_readiness_tells_what_refusals_have_changed_in_the_requests(tmp_path: Path) -> None:
    refusal = "Unsupported parameter: 'top_p' is not supported with this model."
    answers = [whole({"error": {"message": refusal}}, 400), whole(message(content="ok"))]
    async with OpenAIPlayer(lambda _: answers.pop(0)) as model:
        variables = {
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_OPTIONS": '{"top_p": 0.5}',
            **principals(tmp_path, narrow='roles = ["ask"]'),
        }
        async with service(**variables) as client:
            assert (await client.get("/chat", params={"query": "?"}, headers=as_("alice"))).status_code == 200
            told = (await client.get("/health/ready", headers=as_("alice"))).json()
            assert "adapted" not in (await client.get("/health/ready", headers=as_("narrow"))).json()
    assert told["adapted"] == {"gpt-4o-mini": {"renamed": {"top_p": ""}}}


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
