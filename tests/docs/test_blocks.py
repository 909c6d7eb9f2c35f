"""Blocks of the pages that are neither Python nor a command with its answer: each is understood where it is put.

What cannot run here (Docker, Kubernetes, systemd, a registry) is checked for the files, variables and commands of
this project that it names.
"""

import ast
import json
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.__main__ import sandbox
from scripts.env_example import variables
from scripts.readme import PAGES
from tests.application import create_app, read_configuration
from tests.command_line import ROOT
from tests.programs import require
from tests.service.cli.parsing import is_understood
from toolchat.service.access.keys import read_key_file
from toolchat.service.cli import Program
from toolchat.service.mcp_client.file import read_file

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ELSEWHERE = {"console", "python", "java", "jsx"}
"""``console``, ``python`` and ``jsx`` run in tests of their pages; Java is that of another framework."""
BLOCKS = [
    (page.name, language, block)
    for page in (*PAGES, ROOT / "SECURITY.md")
    for language, block in BLOCK.findall(page.read_text(encoding="utf-8"))
    if language not in ELSEWHERE
]
YAML = [each for each in BLOCKS if each[1] == "yaml"]
OUTPUTS = (
    "Run switchLight(",  # the question of the terminal
    "$ toolchat state export",
    "tools/orders.py  ",  # the list of files
    "chat.example.com {",  # the Caddyfile
    "                              Evaluation Summary",
    "GET /chat   ",  # the tree of spans
    "convert 250",
    "exchangeMoney ",
    "$ curl -i",
)
"""How those blocks of text begin that are no commands; tests of their subjects hold most of what they show."""
PROGRAMS = {
    *("docker", "kubectl", "kind", "gh", "git", "systemctl", "redis-cli", "psql"),
    *(
        "cat",
        "cd",
        "cp",
        "echo",
        "fastapi",
        "granian",
        "gunicorn",
        "hypercorn",
        "install",
        "mkdir",
        "python",
        "python3",
    ),
    *("pip", "uvicorn", "."),
}
OF_OTHERS = re.compile(r"OTEL_\w+|ORDERS_\w+|GITHUB_TOKEN|CHAT_PAGE_KEY")
"""Variables of OpenTelemetry's SDK, of tools and files that a page shows, and of Compose."""
OWN_FILE = re.compile(r"(?:deploy/[\w./-]+|requirements\.lock|\.env\.example)$")


def of(*languages: str) -> list[Any]:
    """The blocks in these languages, as parameters of a test."""
    chosen = [(page, block) for page, language, block in BLOCKS if language in languages]
    return [pytest.param(*each, id=f"{each[0]}-{number}") for number, each in enumerate(chosen)]


def commands_of(block: str) -> Iterator[list[str]]:
    """The words of each command of a script; a quoted text may go on in the next line."""
    joined = ""
    for line in block.splitlines():
        joined += line
        try:
            words = shlex.split(joined, comments=True)
        except ValueError:  # the text is not closed yet
            joined += "\n"
            continue
        joined = ""
        for command in re.split(r"(?:^|\s)&&(?:\s|$)", shlex.join(words).replace("'&&'", "&&")):
            if words := shlex.split(command):
                yield words


def check(words: list[str], routes: set[str]) -> None:
    """Check what a command names of this project."""
    while words and re.match(r"[A-Z_]+=", words[0]):
        name = words.pop(0).partition("=")[0]
        assert name in variables() or OF_OTHERS.fullmatch(name), name
    if not words:
        return
    words = [each for each in words if each not in (">", ">>", "<")]
    program = Path(words[0]).name or "."
    if words[1:3] == ["-m", "app"]:
        assert is_understood(Program("python -m app", sandbox=sandbox), words[3:]), words
        return
    if program == "toolchat":
        typed = words[1:-1] if words[-1].endswith((".toml", ".jsonl")) else words[1:]
        assert is_understood(Program(), typed), words
    elif program == "curl":
        (url,) = [each for each in words if each.startswith("http")]
        assert re.sub(r"https?://[^/]+", "", url) in routes, url
    else:
        assert program in PROGRAMS or words[0].startswith("phoenix/"), words
        for each in words:
            assert not OWN_FILE.fullmatch(each) or (ROOT / each).exists(), each


@pytest.fixture(scope="module")
def routes() -> set[str]:
    return set(create_app().openapi()["paths"])


@pytest.mark.parametrize(("page", "block"), of("sh", "text"))
def test_commands_and_variables_are_ones_that_there_are(page: str, block: str, routes: set[str]) -> None:
    if not block.startswith(OUTPUTS):
        for words in commands_of(block):
            check(words, routes)


def test_the_fallback_models_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    (block,) = [block for _, _, block in BLOCKS if block.startswith("CHAT_FALLBACKS=")]
    ((variable,),) = commands_of(block)
    monkeypatch.setenv(*variable.split("=", 1))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-first")
    read_configuration()


@pytest.mark.parametrize(("page", "block"), of("toml"))
def test_entries_of_keys_are_read(page: str, block: str, tmp_path: Path) -> None:
    entry = f'[[keys]]\nname = "acme"\nsha256 = "{"0" * 64}"\n'
    file = tmp_path / "keys.toml"
    file.write_text(block if "[[keys]]" in block else entry + block, encoding="utf-8")
    read_key_file(file)


def test_the_file_of_mcp_servers_is_read_and_that_of_hosts_starts_the_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers, hosts = (
        next(block for page, language, block in BLOCKS if (page, language) == (name, "json"))
        for name in ("mcp-servers.md", "mcp.md")
    )
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    file = tmp_path / "servers.json"
    file.write_text(servers, encoding="utf-8")
    assert [*read_file(file)[0]] == ["clock", "github"]
    (entry,) = json.loads(hosts)["mcpServers"].values()
    assert entry["command"].endswith("/bin/toolchat")
    assert is_understood(Program(), entry["args"])
    assert entry["env"].keys() <= variables().keys()


@pytest.mark.parametrize(
    ("page", "part", "schema", "more"),
    [
        ("approvals.md", "data", "ApprovalDocument", {"inbox", "link"}),
        ("sessions.md", "", "TodoList", set()),
    ],
)
def test_documents_have_the_fields_of_their_schemas(page: str, part: str, schema: str, more: set[str]) -> None:
    shown = json.loads(next(block for name, language, block in BLOCKS if (name, language) == (page, "json")))
    fields = create_app().openapi()["components"]["schemas"][schema]["properties"]
    assert (shown[part] if part else shown).keys() <= fields.keys() | more


def test_prometheus_is_told_the_name_that_the_alerts_ask_for_and_the_collector_uses_what_it_defines() -> None:
    scraping, collector = (yaml.safe_load(block) for page, _, block in YAML if page == "monitoring.md")
    assert [each["job_name"] for each in scraping["scrape_configs"]] == ["toolchat"]
    assert 'job="toolchat"' in (ROOT / "deploy" / "grafana" / "alerts.yaml").read_text(encoding="utf-8")
    for pipeline in collector["service"]["pipelines"].values():
        for kind, names in pipeline.items():
            assert {*names} <= collector[kind].keys()


def test_the_image_of_a_reader_installs_into_the_environment_of_ours() -> None:
    (block,) = [block for _, language, block in BLOCKS if language == "dockerfile"]
    ours = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert block.startswith("FROM toolchat\n")
    for line in ("/opt/venv", "USER 10001:0"):
        assert line in block
        assert line in ours


def test_the_runtime_of_another_page_is_a_module(tmp_path: Path) -> None:
    # Its packages are not installed here; the agent that it uses is, in tests of clients.
    (block,) = [block for _, language, block in BLOCKS if language == "js"]
    (tmp_path / "route.mjs").write_text(block, encoding="utf-8")
    subprocess.run([require("node"), "--check", "route.mjs"], cwd=tmp_path, check=True, capture_output=True)


def test_the_files_and_calls_of_clients_are_well_formed() -> None:
    page = (ROOT / "docs" / "clients.md").read_text(encoding="utf-8")
    libre, continue_, codex, claude, calls = (
        re.sub(r"^ {4,6}", "", each.strip("\n"), flags=re.MULTILINE)
        for each in re.findall(r"\n\n((?:(?: {4,}.*)?\n)+)", re.sub(BLOCK, "", page))
        if each.strip()
    )
    assert yaml.safe_load(libre)["endpoints"]["custom"][0]["models"]["default"] == ["toolchat"]
    assert yaml.safe_load(continue_)["models"][0]["model"] == "toolchat"
    assert tomllib.loads(codex)["model_providers"]["toolchat"]["wire_api"] == "responses"
    assert claude.splitlines()[1] == "claude"
    assert all(isinstance(each, ast.Expr) and isinstance(each.value, ast.Call) for each in ast.parse(calls).body)
