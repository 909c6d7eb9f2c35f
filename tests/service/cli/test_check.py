"""``python -m app check``: what answers, what does not, and what is not set up."""

import asyncio
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse
from starlette.routing import Route

from tests.application import create_sandbox
from tests.command_line import run, with_tools
from tests.players.openai_player import Answer, OpenAIPlayer, PlayedRequest, finish, message, sensible_model, sse, whole
from tests.players.otlp_receiver import OtlpReceiver
from tests.players.redis_server import RedisServer
from tests.ports import silent_port
from tests.service.access.issuer import Issuer
from tests.serving import serving
from toolchat.service.access.keys import digest_of

NO_MODEL = "there is no chat model at the configured address; check OPENAI_BASE_URL, which usually ends in /v1"
CALLS = "calls tools, whole and streamed, and answers from their results"
NOT_DURABLE = "it writes nothing to disk, so a restart loses everything: set appendonly yes"

OWN = """
from toolchat import ToolModule, ToolSettings

class LampSettings(ToolSettings):
    required = ("key",)
    key: str | None = None


async def ask_the_lamp(container):
    if (await container.get(LampSettings)).key == "broken":
        raise LookupError("no lamp is\\nthere")
    return "one lamp"


def lamp() -> str:
    "Say what the lamp does."
    return "It shines."


module = ToolModule(settings=LampSettings, functions=(lamp,), check=ask_the_lamp)
"""


def lines_of(done: subprocess.CompletedProcess[str]) -> dict[str, tuple[str, bool, str]]:
    """What is told of each part: its state, whether a time stands beside it, and the note."""
    form = re.compile(r"(\w+) +(.+?)  +(?:(\d+\.\d\d s)  )?(.*)")
    found = [form.fullmatch(line) for line in done.stdout.splitlines()]
    assert all(found)
    return {each[2]: (each[1], bool(each[3]), each[4]) for each in found if each}


async def check(tmp_path: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return await asyncio.to_thread(run, "check", cwd=tmp_path, **with_tools(tmp_path, {"lamp": OWN}), **variables)


async def test_every_configured_upstream_is_probed_and_reported(tmp_path: Path) -> None:
    async with (
        OpenAIPlayer(sensible_model()) as model,
        RedisServer() as redis,
        serving(create_sandbox()) as sandbox,
        OtlpReceiver() as collector,
    ):
        variables = {"OPENAI_BASE_URL": model.base_url, "REDIS_URL": redis.url, "SANDBOX_URL": sandbox}
        variables |= collector.variables | {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.01"}
        done = await check(tmp_path, **variables, LAMP_KEY="k", TODO_ENABLED="false")
    assert (done.returncode, done.stderr) == (0, "")
    assert lines_of(done) == {
        "Chat model": ("works", True, f"openai_compatible/gpt-4o-mini {CALLS}"),
        "State": ("works", True, f"redis writes, reads and deletes under toolchat:; {NOT_DURABLE}"),
        "Traces": ("works", True, f"http://127.0.0.1:{collector.port}/v1/traces accepts traces; traceidratio 0.01"),
        "Time": ("ready", False, "no upstream to check"),
        "Lamp": ("works", True, "one lamp"),
        "Todo": ("off", False, "switched off: set TODO_ENABLED=true"),
        "Examples": ("ready", False, "no upstream to check"),
        "Alarms": ("ready", False, "no upstream to check"),
        "Translate (sandbox)": ("works", True, "你好 is Hello"),
        "Weather (sandbox)": ("works", True, "the forecast of London"),
    }


def test_files_of_secrets_that_are_read_are_named(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("sk-1\n")
    done = run("check", cwd=tmp_path, CHAT_PROVIDER="offline", OPENAI_API_KEY_FILE=str(secret), LAMP_KEY_FILE="/none")
    assert lines_of(done)["Secrets"] == ("works", False, "read from the files of OPENAI_API_KEY_FILE")


async def refused(_: Request) -> JSONResponse:
    """WeatherAPI's answer to a wrong key."""
    return JSONResponse({"error": {"code": 2006, "message": "API key provided is invalid"}}, 403)


async def test_a_failing_upstream_is_reported_with_the_reason_and_exit_code_1(tmp_path: Path) -> None:
    with silent_port() as port:
        nobody = f"127.0.0.1:{port}"
        async with serving(Starlette(routes=[Route("/v1/forecast.json", refused)])) as weather:
            done = await check(
                tmp_path,
                OPENAI_BASE_URL=f"http://{nobody}/v1",
                MODEL_MAX_ATTEMPTS="1",
                REDIS_URL=f"redis://{nobody}/0",
                WEATHER_API_KEY="wrong",
                WEATHER_BASE_URL=f"{weather}/v1",
                LAMP_KEY="broken",
                OTEL_EXPORTER_OTLP_ENDPOINT=f"http://me:sk-a@{nobody}/v1/traces",
            )
    told = lines_of(done)
    assert done.returncode == 1
    assert told["Chat model"][:2] == ("failed", True)
    assert told["Chat model"][2].startswith("upstream-unavailable: ")
    assert told["State"][2] == f"store-unavailable: the state store cannot be reached (connection refused: {nobody})"
    assert told["Traces"][0] == "failed"
    assert told["Traces"][2].startswith(f"http://{nobody}/v1/traces/v1/traces does not accept traces: ")
    assert "sk-a" not in done.stdout + done.stderr
    assert told["Weather"][2] == "provider-auth: the weather service is not set up correctly on this server"
    assert told["Lamp"] == ("failed", True, r"LookupError: no lamp is\nthere")
    assert told["Translate"][0] == "missing"
    assert "the API key is invalid: check WEATHER_API_KEY" in done.stderr
    assert "wrong" not in done.stdout + done.stderr


async def test_an_address_without_a_model_or_without_keys_names_its_variable(tmp_path: Path) -> None:
    def page(_: Request) -> HTMLResponse:
        return HTMLResponse("<h1>Welcome</h1>")

    tokens = {"JWT_ISSUER": "i", "JWT_AUDIENCE": "a"}
    async with Issuer().serving() as keys, serving(Starlette(routes=[Route("/v1/keys", page)])) as site:
        for path, jwks, told in (("/v1/keys", keys, "works"), ("/v1", f"{site}/v1/keys", "failed")):
            variables = {"OPENAI_BASE_URL": site + path, "JWT_JWKS_URL": jwks, "MODEL_MAX_ATTEMPTS": "1", **tokens}
            found = lines_of(await asyncio.to_thread(run, "check", cwd=tmp_path, **variables))
            assert found["Chat model"][2] == f"not-configured: {NO_MODEL}; the provider says: Not Found"
            assert found["Tokens"][0] == told
    assert found["Tokens"][2].endswith("answered 200 without usable keys; check JWT_JWKS_URL")


@pytest.mark.parametrize("command", [("check",), ("ask", "?")])
async def test_a_key_that_the_provider_refuses_is_named(command: tuple[str, ...], tmp_path: Path) -> None:
    async with OpenAIPlayer(lambda _: whole({"error": {"code": "invalid_api_key"}}, 401)) as model:
        variables = {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "sk-canary"}
        done = await asyncio.to_thread(run, *command, cwd=tmp_path, **variables)
    assert done.returncode == 1
    assert "provider-auth: the chat provider refused the key or the account; check OPENAI_API_KEY" in (
        done.stdout + done.stderr
    )
    assert "sk-canary" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("variables", "code", "state"),
    [
        ({}, 1, "failed"),
        ({"SERVER_HOST": "0.0.0.0"}, 1, "failed"),
        ({"CHAT_PROVIDER": "offline", "API_KEYS": f"a={digest_of('a')}"}, 0, "off"),
        ({"CHAT_PROVIDER": "auto_or_offline", "SERVER_HOST": "0.0.0.0"}, 0, "off"),
    ],
)
async def test_without_anything_set_up_only_a_missing_model_has_failed(
    variables: dict[str, str], code: int, state: str, tmp_path: Path
) -> None:
    done = await asyncio.to_thread(run, "check", cwd=tmp_path, **variables)
    assert done.returncode == code
    states = {title: (state, timed) for title, (state, timed, _) in lines_of(done).items()}
    assert states["Chat model"] == (state, False)
    assert states["State"] == ("off", False)
    assert states["Traces"] == ("off", False)
    assert states["Weather"] == ("missing", False)


async def test_fallback_models_and_mcp_servers_are_probed_as_well_and_each_part_tells_its_cause(tmp_path: Path) -> None:
    # The second model answers, but never calls a tool; nobody listens where the server should be.
    async with OpenAIPlayer(lambda _: whole(message(content="ok"))) as second:
        with silent_port() as port:
            (tmp_path / "servers.json").write_text(
                f'{{"mcpServers": {{"gone": {{"url": "http://127.0.0.1:{port}/"}}}}}}'
            )
            entry = {"provider": "openai_compatible", "base_url": second.base_url, "model": "second"}
            done = await check(
                tmp_path,
                OPENAI_BASE_URL=f"http://127.0.0.1:{port}/v1",
                CHAT_FALLBACKS=json.dumps([entry]),
                MCP_SERVERS_FILE="servers.json",
                WEATHER_API_KEY="k",
                WEATHER_BASE_URL=f"http://127.0.0.1:{port}/v1",
                JWT_JWKS_URL=f"http://127.0.0.1:{port}/keys",
                JWT_ISSUER="i",
                JWT_AUDIENCE="a",
            )
    told = lines_of(done)
    assert done.returncode == 1
    for part in ("Chat model", "Tokens", "MCP gone", "Weather"):
        assert told[part][0] == "failed"
        assert told[part][2].startswith("upstream-unavailable: ")
        assert told[part][2].endswith(f" (connection refused: 127.0.0.1:{port})")
    assert told["Fallback 1"][0] == "failed"
    assert told["Fallback 1"][2].startswith("fault of the model: openai_compatible/second answers, but did not call")


async def test_the_words_of_a_provider_are_shown_without_its_key(tmp_path: Path) -> None:
    words = "tools[0].\x1b[31m: Extra inputs are not permitted (sk-canary-5f1d) " + "x" * 400
    async with OpenAIPlayer(lambda _: whole({"error": {"message": words}}, 422)) as model:
        variables = {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "sk-canary-5f1d"}
        done = await asyncio.to_thread(run, "check", cwd=tmp_path, **variables)
    note = lines_of(done)["Chat model"][2]
    assert "the provider refused the request (status 422); the provider says: tools[0]." in note
    assert r"tools[0].\x1b[31m: Extra inputs are not permitted (*** xxx" in note
    assert note.endswith("x" * 200)
    assert "sk-canary" not in done.stdout + done.stderr


REFUSED = whole({"error": {"message": "not like this"}}, 400)
WORDS = "the provider refused the request (status 400); the provider says: not like this"
Refuses = Callable[[PlayedRequest], bool]


def has_result(request: PlayedRequest) -> bool:
    return bool(request.body["messages"][-1]["role"] == "tool")


async def checked(tmp_path: Path, play: Callable[[PlayedRequest], Answer]) -> tuple[str, str, OpenAIPlayer]:
    async with OpenAIPlayer(play) as player:
        variables = {"OPENAI_BASE_URL": player.base_url, "MODEL_MAX_ATTEMPTS": "1"}
        done = await asyncio.to_thread(run, "check", cwd=tmp_path, **variables)
    state, _, note = lines_of(done)["Chat model"]
    return state, note, player


@pytest.mark.parametrize(
    ("refuses", "note"),
    [
        (lambda request: "stream" not in request.body, f"only streamed tool calls work: upstream-invalid: {WORDS}"),
        (
            lambda request: "stream" in request.body and not has_result(request),
            f"only whole tool calls work: upstream-invalid: {WORDS}",
        ),
        (has_result, f"tool calls work, but not the answer to their result: upstream-invalid: {WORDS}"),
        (lambda _: True, f"upstream-invalid: {WORDS}"),
        (lambda _: False, f"openai_compatible/gpt-4o-mini {CALLS}"),
    ],
    ids=["whole", "streamed", "result", "all", "none"],
)
async def test_check_says_which_use_of_tools_fails(refuses: Refuses, note: str, tmp_path: Path) -> None:
    sensible = sensible_model()
    state, told, player = await checked(tmp_path, lambda asked: REFUSED if refuses(asked) else sensible(asked))
    assert (state, told) == ("works" if note.endswith(CALLS) else "failed", note)
    if state == "works":
        *_, second, third = player.requests
        assert (second.body["stream"], third.body["messages"][-1]["content"]) == (True, "pong")


async def test_a_model_that_writes_nothing_from_a_result_has_failed(tmp_path: Path) -> None:
    sensible = sensible_model()
    again = {"index": 0, "id": "again", "function": {"name": "ping", "arguments": "{}"}}
    calls = sse({"choices": [{"index": 0, "delta": {"tool_calls": [again]}}]}, finish("tool_calls"))
    state, told, _ = await checked(tmp_path, lambda asked: calls if has_result(asked) else sensible(asked))
    assert state == "failed"
    assert told.endswith(
        "not the answer to their result: fault of the model: openai_compatible/gpt-4o-mini wrote nothing"
    )


async def test_a_provider_that_is_down_is_asked_for_one_kind_only(tmp_path: Path) -> None:
    state, told, player = await checked(tmp_path, lambda _: whole({"error": {"message": "down"}}, 500))
    assert (state, len(player.requests)) == ("failed", 1)
    assert told.startswith("upstream-unavailable: ")


async def test_text_in_place_of_a_streamed_call_is_told_apart_from_a_refusal(tmp_path: Path) -> None:
    sensible = sensible_model()
    state, told, _ = await checked(
        tmp_path, lambda asked: whole(message(content="ok")) if "stream" in asked.body else sensible(asked)
    )
    assert (state, told.partition(": ")[0]) == ("failed", "only whole tool calls work")
    assert "did not call the tool" in told
