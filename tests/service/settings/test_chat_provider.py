"""Which chat model answers, by the keys that are set and by who can connect."""

from pathlib import Path

import httpx
import pytest

from tests.application import create_app, read_configuration
from tests.command_line import run, started
from toolchat.errors import ConfigurationError
from toolchat.service.access.keys import digest_of
from toolchat.service.composition.configuration import Configuration

pytestmark = pytest.mark.usefixtures("tmp_path")  # for the key file

KEYS = f"alice={digest_of('a')}"
BEYOND = [
    {"SERVER_HOST": "0.0.0.0"},
    {"SERVER_HOST": "::"},
    {"SERVER_HOST": "192.0.2.1"},
    {"SERVER_HOST": "0.0.0.0", "ALLOW_ANONYMOUS": "true"},
    {"API_KEYS": KEYS},
    {"API_KEYS": KEYS, "ALLOW_ANONYMOUS": "true"},
    {"API_KEYS_FILE": "keys.toml"},
    {"JWT_JWKS_URL": "http://127.0.0.1:9/keys", "JWT_ISSUER": "i", "JWT_AUDIENCE": "a"},
    {"TRUSTED_PROXIES": "10.0.0.0/8"},
]
"""Settings of a service that other machines can reach."""
LINE = (
    "CHAT_PROVIDER: no chat model for clients beyond this machine: set DASHSCOPE_API_KEY, OPENAI_API_KEY or "
    "OPENAI_BASE_URL, or CHAT_PROVIDER=offline to answer without a model"
)


def configured(monkeypatch: pytest.MonkeyPatch, **variables: str) -> Configuration:
    Path("keys.toml").write_text(f'[[keys]]\nname = "bob"\nsha256 = "{digest_of("b")}"\n')
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return read_configuration()


@pytest.mark.parametrize("variables", BEYOND)
def test_the_offline_model_answers_other_machines_on_purpose_only(
    variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for accident in ({}, {"CHAT_PROVIDER": "auto"}):
        with pytest.raises(ConfigurationError) as told:
            configured(monkeypatch, **variables, **accident)
        assert str(told.value) == LINE
    with pytest.raises(ConfigurationError, match=r"^CHAT_PROVIDER: no chat model"):
        create_app()  # as another server creates it
    read = configured(monkeypatch, **variables, CHAT_PROVIDER="offline")
    assert (read.chat_model.provider, read.warnings) == ("offline", ())


@pytest.mark.parametrize(
    ("model", "provider"),
    [
        ({"CHAT_PROVIDER": "offline", "OPENAI_API_KEY": "k"}, "offline"),
        ({"CHAT_PROVIDER": "auto_or_offline"}, "offline"),
        ({"CHAT_PROVIDER": "auto_or_offline", "OPENAI_API_KEY": "k"}, "openai_compatible"),
        ({"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}, "openai_compatible"),
        ({"OPENAI_BASE_URL": "https://x/openai/deployments/d?api-version=2024-10-21"}, "openai_compatible"),
        ({"DASHSCOPE_API_KEY": "k"}, "dashscope"),
    ],
)
def test_a_key_or_the_offline_model_on_purpose_starts(
    model: dict[str, str], provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = configured(monkeypatch, SERVER_HOST="0.0.0.0", ALLOW_ANONYMOUS="true", **model)
    assert (read.chat_model.provider, read.warnings) == (provider, ())


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
def test_for_this_machine_it_needs_nothing(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert configured(monkeypatch, SERVER_HOST=host).chat_model.provider == "offline"


def test_the_start_fails_with_this_one_line(tmp_path: Path) -> None:
    done = run("serve", cwd=tmp_path, SERVER_HOST="0.0.0.0", SERVER_PORT="0")
    assert (done.returncode, done.stderr) == (2, f"toolchat: {LINE}\n")


def test_a_command_on_this_machine_needs_no_model(tmp_path: Path) -> None:
    done = run("ask", "What time is it in Tokyo?", cwd=tmp_path, SERVER_HOST="0.0.0.0")
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("variables", "provider", "warns"),
    [
        ({}, "dashscope", True),
        ({"CHAT_PROVIDER": "auto_or_offline"}, "dashscope", True),
        ({"CHAT_PROVIDER": "openai_compatible"}, "openai_compatible", False),
        ({"CHAT_PROVIDER": "dashscope"}, "dashscope", False),
    ],
)
@pytest.mark.parametrize("other", [{"OPENAI_API_KEY": "k"}, {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}])
def test_of_two_providers_one_warning_names_the_one_that_answers(
    variables: dict[str, str], provider: str, warns: bool, other: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = configured(monkeypatch, DASHSCOPE_API_KEY="k", **other, **variables)
    line = (
        "CHAT_PROVIDER: two providers are configured, and dashscope answers; set it to dashscope or openai_compatible"
    )
    assert (read.chat_model.provider, list(read.warnings)) == (provider, [line] if warns else [])


def test_a_container_without_a_key_serves_if_that_is_allowed(tmp_path: Path) -> None:
    # The environment that docker-compose.yml gives to the service.
    variables = {"SERVER_HOST": "0.0.0.0", "ALLOW_ANONYMOUS": "true", "CHAT_PROVIDER": "auto_or_offline"}
    with started(cwd=tmp_path, **variables) as (_, url):
        reply = httpx.get(f"{url.replace('0.0.0.0', '127.0.0.1')}/time/chat?query=hi", trust_env=False)
    assert (reply.status_code, reply.headers["X-Chat-Model"]) == (200, "offline")
