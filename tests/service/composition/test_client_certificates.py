"""Certificates that a model's server asks of its clients."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.application import read_configuration
from tests.http.certificates import Authority
from tests.http.upstream import Peer, playing
from tests.serving import service
from toolchat.errors import ConfigurationError

ANSWER = json.dumps({"choices": [{"message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}]})
QUESTION = {"query": "?"}


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    folder = tmp_path / "authority"
    folder.mkdir()
    authority = Authority(folder)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    return authority


@asynccontextmanager
async def demanding(authority: Authority) -> AsyncGenerator[str, None]:
    """A model behind a server that demands a certificate; gives its address."""

    async def answer(peer: Peer) -> None:
        await peer.asked()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(ANSWER)}\r\n\r\n"
        await peer.send((head + ANSWER).encode())

    async with playing(answer, tls=authority.server(of_clients=True)) as upstream:
        yield f"{upstream.url}v1"


async def test_a_model_is_called_with_the_certificate_and_not_without(authority: Authority) -> None:
    file = str(authority.certificate("client.example"))
    async with demanding(authority) as url:
        variables = {"OPENAI_BASE_URL": url, "MODEL_MAX_ATTEMPTS": "1"}
        async with service(**variables, OPENAI_CLIENT_CERT=file, OPENAI_CLIENT_KEY=file) as client:
            assert (await client.get("/chat", params=QUESTION)).text == "ok"
        async with service(**variables) as client:
            assert (await client.get("/chat", params=QUESTION)).status_code == 502


async def test_a_fallback_shows_a_certificate_of_its_own(authority: Authority) -> None:
    async with demanding(authority) as url:
        entry = {"provider": "openai_compatible", "base_url": url, "model": "second"}
        entry["client_cert"] = str(authority.certificate("client.example"))
        variables = {"OPENAI_BASE_URL": url, "CHAT_FALLBACKS": json.dumps([entry])}
        async with service(**variables) as client:
            answer = await client.get("/chat", params=QUESTION, headers={"Accept": "application/json"})
    assert (answer.json()["answer"], answer.json()["model"]["name"]) == ("ok", "second")


def test_files_that_cannot_be_used_stop_the_start_with_one_line_that_names_the_variable(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "https://model.invalid/v1")
    file, other = str(authority.certificate("a.example")), str(authority.certificate("b.example"))
    empty = tmp_path / "empty.pem"
    empty.touch()
    unfit = "holds no certificate that can be read, or its key does not fit or has a password"
    for cert, key, line in (
        (str(tmp_path / "missing.pem"), "", "OPENAI_CLIENT_CERT: Path does not point to a file"),
        (str(empty), "", f"OPENAI_CLIENT_CERT: {empty}: {unfit}"),
        (file, other, f"OPENAI_CLIENT_CERT: {file}: {unfit}"),
        (file, str(tmp_path), "OPENAI_CLIENT_KEY: Path does not point to a file"),
        ("", file, "OPENAI_CLIENT_KEY: needs the file of a certificate as well"),
    ):
        monkeypatch.setenv("OPENAI_CLIENT_CERT", cert)
        monkeypatch.setenv("OPENAI_CLIENT_KEY", key)
        with pytest.raises(ConfigurationError) as told:
            read_configuration(serving=False)
        assert str(told.value) == line
    entry = {"provider": "openai_compatible", "base_url": "https://x.invalid", "model": "m", "client_cert": str(empty)}
    monkeypatch.delenv("OPENAI_CLIENT_KEY")
    monkeypatch.setenv("CHAT_FALLBACKS", json.dumps([entry]))
    with pytest.raises(ConfigurationError, match=r"^CHAT_FALLBACKS: model 1: client_cert: .*: holds no certificate"):
        read_configuration(serving=False)
