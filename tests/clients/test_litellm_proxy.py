"""LiteLLM's proxy as the chat provider, on both APIs, with a model that it passes on and one that it translates."""

import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.conftest import PATIENCE, ROOT, playing, started
from tests.clients.test_openai_responses_provider import Provider
from tests.players.openai_player import Answer, PlayedRequest, sensible_model, whole
from tests.ports import silent_port

LITELLM = ROOT / "tests" / "clients" / "litellm_proxy" / ".venv" / "bin" / "litellm"
KEY = "sk-0123456789abcdef0123456789abcdef"
MODELS = {"passed_on": "openai/gpt-5", "translated": "deepseek/deepseek-chat"}
"""By the name that toolchat asks for; the second has no Responses at its provider."""
FAULTS: dict[str, tuple[int, dict[str, Any]]] = {
    "busy": (429, {"message": "Rate limit reached", "type": "requests", "code": "rate_limit_exceeded"}),
    "broken": (500, {"message": "The server had an error", "type": "server_error", "code": None}),
    "long": (
        400,
        {
            "message": "This model's maximum context length is 8192 tokens.",
            "type": "invalid_request_error",
            "code": "context_length_exceeded",
        },
    ),
}
"""What the provider answers to a question with such a word."""


class BothApis:
    """A provider with chat completions and Responses."""

    def __init__(self) -> None:
        self.responses = Provider()
        self.completions = sensible_model({"timeZoneId": "Asia/Shanghai"})

    def __call__(self, request: PlayedRequest) -> Answer:
        sent = json.dumps(request.body)
        for word, (status, error) in FAULTS.items():
            if f"#{word}" in sent:
                return whole({"error": error | {"param": None}}, status)
        return self.responses(request) if request.path.endswith("/responses") else self.completions(request)


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[BothApis, str]]:
    """The provider, and the URL of the proxy before it."""
    folder, provider = tmp_path_factory.mktemp("proxy"), BothApis()
    with playing(provider) as provider_url, silent_port() as port:
        models = [
            {
                "model_name": name,
                "litellm_params": {"model": model, "api_base": provider_url, "api_key": "unused", "max_retries": 0},
            }
            for name, model in MODELS.items()
        ]
        settings = {"model_list": models, "router_settings": {"num_retries": 0, "disable_cooldowns": True}}
        (folder / "config.yaml").write_text(json.dumps(settings))  # JSON is YAML
        command = [str(LITELLM), "--config", "config.yaml", "--host", "127.0.0.1", "--port", str(port)]
        variables = {"PATH": os.environ["PATH"], "LITELLM_MASTER_KEY": KEY, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        with (folder / "log").open("w") as log:
            process = subprocess.Popen(command, cwd=folder, env=variables, stdout=log, stderr=log)
            try:
                _await_start(f"http://127.0.0.1:{port}/health/liveliness", process, folder / "log")
                yield provider, f"http://127.0.0.1:{port}/v1"
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(PATIENCE)


def _await_start(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 2 * PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=PATIENCE).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(log.read_text())


@pytest.fixture(scope="module", params=[(api, name) for api in ("chat", "responses") for name in MODELS], ids="-".join)
def asked(
    request: pytest.FixtureRequest, proxy: tuple[BothApis, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[BothApis, str]]:
    """The provider, and the service that calls one model over one API."""
    (api, name), folder = request.param, tmp_path_factory.mktemp("service")
    variables = {"OPENAI_API": api, "OPENAI_MODEL": name, "OPENAI_API_KEY": KEY}
    with started(ROOT, folder, proxy[1], **variables) as url:
        yield proxy[0], url


def ask(url: str, question: str, accept: str) -> dict[str, Any]:
    """The answer as JSON, or the last event of its stream."""
    target = f"{url}/time/chat-tool-function?{urllib.parse.urlencode({'query': question})}"
    request = urllib.request.Request(target, headers={"Accept": accept})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            body = response.read().decode()
    except urllib.error.HTTPError as error:
        body = error.read().decode()
    [*_, last] = body.split("\ndata: ")
    answered: dict[str, Any] = json.loads(last)
    return answered


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_a_tool_runs_and_the_model_answers_from_its_result(asked: tuple[BothApis, str], accept: str) -> None:
    provider, url = asked
    answered = ask(url, "What time is it?", accept)
    assert [(each["arguments"], each["outcome"]) for each in answered["tool_calls"]] == [
        ({"timeZoneId": "Asia/Shanghai"}, "ok")
    ]
    assert answered["answer"].startswith(("It is noon.", "The tools say: The current time"))
    assert (answered["rounds"], answered["usage"]["total_tokens"] > 0, provider.responses.faults) == (2, True, [])


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
@pytest.mark.parametrize(
    ("word", "code"),
    [("busy", "provider-rate-limited"), ("broken", "upstream-unavailable"), ("long", "context-too-long")],
)
def test_an_error_of_the_provider_keeps_its_kind(
    asked: tuple[BothApis, str], word: str, code: str, accept: str
) -> None:
    assert ask(asked[1], f"What time is it? #{word}", accept)["code"] == code
