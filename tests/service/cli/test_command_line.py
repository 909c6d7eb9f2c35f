"""The command line, as a user runs it."""

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.command_line import application, environment, run, started
from tests.ports import silent_port
from tests.service.cli.terminal import at_a_terminal
from tests.waiting import PATIENCE


def test_ask_prints_the_answer_and_beside_it_the_tool_calls(tmp_path: Path) -> None:
    done = run("ask", "请告诉我现在北京时间几点了", cwd=tmp_path)
    assert done.returncode == 0
    assert re.fullmatch(r".*\d{2}:\d{2}.*\n", done.stdout)
    assert done.stderr.startswith('- getCityTimeFunction({"timeZoneId":"Asia/Shanghai"}) -> ok in ')


def test_ask_as_json_prints_the_whole_trace(tmp_path: Path) -> None:
    done = run("ask", "What time is it in Tokyo?", "--json", "--tool", "getCityTimeFunction", cwd=tmp_path)
    document = json.loads(done.stdout)
    assert document["tool_calls"][0]["arguments"] == {"timeZoneId": "Asia/Tokyo"}
    assert document["model"] == {"provider": "offline", "name": "offline"}


def test_ask_with_a_tool_that_is_not_there_names_those_that_are(tmp_path: Path) -> None:
    done = run("ask", "?", "--tool", "nothing", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    known = "getCityTimeFunction, getCityTimeMethod, todoUpdate, todoRead"
    assert done.stderr == f"toolchat: --tool: no tool has the name nothing; known: {known}\n"


def test_ask_reports_an_upstream_failure_in_one_line(tmp_path: Path) -> None:
    with silent_port() as port:
        done = run("ask", "?", cwd=tmp_path, OPENAI_BASE_URL=f"http://127.0.0.1:{port}/v1", MODEL_MAX_ATTEMPTS="1")
    assert done.returncode == 1
    assert done.stderr.startswith("toolchat: upstream-unavailable: ")
    assert "Traceback" not in done.stderr


def test_tools_lists_registered_modules_and_the_reasons_for_others(tmp_path: Path) -> None:
    done = run("tools", "list", cwd=tmp_path, TIME_ENABLED="0")
    assert done.returncode == 0
    lines = [line for line in done.stdout.splitlines() if not line.startswith(" ")]
    assert lines == [
        "Time (/time): switched off: set TIME_ENABLED=true",
        "Todo (/todo): registered",
        "Examples (/tool): registered",
        "Alarms (/tool/alarm): registered",
        "Translate (/translate): not configured: set BAIDU_TRANSLATE_APP_ID and BAIDU_TRANSLATE_SECRET_KEY"
        " or TRANSLATE_PROVIDER=libretranslate and LIBRETRANSLATE_URL, a server of your own",
        "Weather (/weather): not configured: set WEATHER_API_KEY"
        " or WEATHER_PROVIDER=open_meteo, which needs no key (free for non-commercial use)",
    ]


@pytest.mark.parametrize(
    ("variables", "lines"),
    [
        ({"SERVER_PORT": "nonsense"}, ["SERVER_PORT: Input should be a valid integer"]),
        ({"SERVER_PORT": "70000"}, ["SERVER_PORT: Input should be less than or equal to 65535"]),
        (
            {"CHAT_PROVIDER": "gemini"},
            ["CHAT_PROVIDER: Input should be 'auto', 'dashscope', 'openai_compatible', 'offline' or"],
        ),
        ({"CHAT_PROVIDER": "dashscope"}, ["DASHSCOPE_API_KEY: must be set because CHAT_PROVIDER is dashscope"]),
        ({"CHAT_PROVIDER": "openai_compatible"}, ["OPENAI_API_KEY: must be set because CHAT_PROVIDER is"]),
        (
            {"OPENAI_BASE_URL": "ftp://x"},
            ["OPENAI_BASE_URL: must be a URL in ASCII that starts with http:// or https://"],
        ),
        (
            {"OPENAI_BASE_URL": "https://me:sk-a@x/v1", "OPENAI_API_KEY": "k"},
            ["OPENAI_BASE_URL: must be a URL with a host, a port between 1 and 65535 if any, and no user name"],
        ),
        (
            {"OPENAI_BASE_URL": "https://x/v1?key=sk-a"},
            ["OPENAI_BASE_URL: must end before /chat/completions, and without ?"],
        ),
        (
            {"OPENAI_BASE_URL": "https://x/v1?api-version=1&key=a"},
            ["OPENAI_BASE_URL: must end before /chat/completions, and without ?"],
        ),
        ({"OPENAI_BASE_URL": "https://x/v1/chat/completions/"}, ["OPENAI_BASE_URL: must end before /chat/completions"]),
        (
            {"OPENAI_BASE_URL": "https://x/openai/deployments/d/chat/completions?api-version=2024-10-21"},
            ["OPENAI_BASE_URL: must end before /chat/completions"],
        ),
        ({"WEATHER_BASE_URL": "http://sk-a@x"}, ["WEATHER_BASE_URL: must be a URL with a host, a port"]),
        ({"DASHSCOPE_API_KEY": "sk-a\nb"}, ["DASHSCOPE_API_KEY: must be printable ASCII without line breaks"]),
        ({"WEATHER_ENABLED": "perhaps"}, ["WEATHER_ENABLED: Input should be a valid boolean"]),
        (
            {"REDIS_URL": "nonsense"},
            [
                "REDIS_URL: must be memory://, sqlite:///relative/path or sqlite:////absolute/path with "
                "?synchronous=full, ?max_mb=N or both by & if wanted, "
                "redis://[user:password@]host[:port][/number], rediss:// for TLS, or "
                "unix://[user:password@]/path[?db=number], with ?prefix=NAME: if several deployments share the server "
                "(valkey:// and valkeys:// are accepted as well), or "
                "postgresql://user:password@host[:port]/database with ?schema=NAME for the same and options of libpq; "
                "the user and the password percent-encoded"
            ],
        ),
        ({"STATE_URL": "redis://user:sk-a%zz@h:99999/0"}, ["STATE_URL: must be memory://"]),
        ({"STATE_URL": "sqlite:///"}, ["STATE_URL: must be memory://"]),
        ({"STATE_URL": "sqlite://host/state.db"}, ["STATE_URL: must be memory://"]),
        ({"STATE_URL": "sqlite:///state.db?mode=ro"}, ["STATE_URL: must be memory://"]),
        ({"STATE_URL": "sqlite:////proc/no/state.db"}, ["STATE_URL: the file /proc/no/state.db cannot be opened: "]),
        ({"SERVER_WORKERS": "0"}, ["SERVER_WORKERS: Input should be greater than or equal to 1"]),
        ({"SERVER_WORKERS": "2"}, ["SERVER_WORKERS: 2 processes do not share memory: set STATE_URL"]),
        ({"SERVER_PORT": "x", "TIME_ENABLED": "perhaps"}, ["SERVER_PORT: ", "TIME_ENABLED: "]),
    ],
)
def test_a_wrong_setting_stops_the_start_with_a_line_that_names_it(
    variables: dict[str, str], lines: list[str], tmp_path: Path
) -> None:
    done = run("serve", cwd=tmp_path, **variables)
    assert done.returncode == 2
    told = done.stderr.splitlines()
    assert len(told) == len(lines)
    for line, expected in zip(told, lines, strict=True):
        assert line.startswith(f"toolchat: {expected}")
    assert "sk-a" not in done.stderr


def test_an_empty_or_blank_variable_counts_as_not_set(tmp_path: Path) -> None:
    done = run("tools", cwd=tmp_path, DASHSCOPE_API_KEY="  ", OPENAI_BASE_URL="", WEATHER_API_KEY=" ")
    assert done.returncode == 0
    assert "WEATHER_API_KEY" in done.stdout


def test_settings_are_read_from_the_env_file(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("TIME_ENABLED=false\n# 注释\nUNKNOWN=1\n", encoding="utf-8")
    assert "Time (/time): switched off" in run("tools", cwd=tmp_path).stdout


@pytest.mark.parametrize("arguments", [[], ["serve"], ["demo"]])
def test_a_port_in_use_stops_the_start_after_the_mistyped_variable(arguments: list[str], tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        # As options they count before the variables.
        done = run(*arguments, "--port", port, "--host=127.0.0.1", cwd=tmp_path, SERVER_PROT="9", SERVER_PORT="x")
    assert done.returncode == 2
    typo, fault = done.stderr.splitlines()
    assert json.loads(typo)["message"] == "SERVER_PROT: no setting has this name; did you mean SERVER_PORT?"
    assert fault == f"toolchat: SERVER_PORT: cannot listen on 127.0.0.1:{port}: Address already in use"


@pytest.mark.parametrize("host", ["nonsense.invalid", "1.2.3.4", "http://127.0.0.1"])
def test_an_address_that_is_none_of_this_machine_stops_the_start_with_one_line(host: str, tmp_path: Path) -> None:
    done = run(cwd=tmp_path, SERVER_HOST=host, CHAT_PROVIDER="offline")
    assert done.returncode == 2
    assert done.stderr == f"toolchat: SERVER_HOST: cannot listen on {host}:8083: not an address of this machine\n"


@pytest.mark.parametrize("query", ["", "  ", "x" * 32_001])
def test_ask_rejects_the_same_questions_as_http(query: str, tmp_path: Path) -> None:
    done = run("ask", query, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "toolchat: the question must have 1 to 32000 characters\n")


def test_ask_offers_method_tools_and_survives_a_closed_pipe(tmp_path: Path) -> None:
    done = run("ask", "东京几点", "--tool", "getCityTimeMethod", cwd=tmp_path, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    with subprocess.Popen(
        [*application(), "tools"], cwd=tmp_path, env=environment({}), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


def test_serve_answers_until_sigterm(tmp_path: Path) -> None:
    with started(cwd=tmp_path) as (process, url), urllib.request.urlopen(f"{url}/time/chat-tool-function") as answer:
        assert answer.headers["X-Chat-Model"] == "offline"
        assert re.search(r"\d{2}:\d{2}", answer.read().decode())
    assert process.returncode == 0


def test_demo_answers_without_keys_and_marks_invented_data(tmp_path: Path) -> None:
    with started("demo", cwd=tmp_path) as (process, url):
        for path in ("weather", "translate"):
            for variant in ("function", "method"):
                with urllib.request.urlopen(f"{url}/{path}/chat-tool-{variant}") as answer:
                    assert answer.headers["X-Sandbox"]
                    assert "Sandbox data, not real" in answer.read().decode()
        with urllib.request.urlopen(f"{url}/time/chat-tool-method") as answer:
            assert answer.headers["X-Sandbox"] is None
    assert process.returncode == 0


async def test_a_terminal_shows_the_start_as_text(tmp_path: Path) -> None:
    async with at_a_terminal("serve", cwd=tmp_path, SERVER_PORT="0") as terminal:
        shown = await terminal.sees("Swagger UI: http")
    assert re.fullmatch(
        r"toolchat on http://\S+ - chat model: offline\n  playground: http://\S+\n  Swagger UI: http", shown
    )


def test_logs_are_json_lines_without_questions_and_keys(tmp_path: Path) -> None:
    key, question = "canary-key-1", "time is it in Paris"
    command = application()
    variables = environment({"SERVER_PORT": "0", "WEATHER_API_KEY": key, "LOG_LEVEL": "DEBUG"})
    with subprocess.Popen(command, cwd=tmp_path, env=variables, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        banner = process.stderr.readline()
        url = "".join(re.findall(r"http://\S+", banner))
        path = f"/time/chat-tool-function?query={quote(f'What {question}?')}"
        with urllib.request.urlopen(f"{url}{path}") as answer:
            identifier = answer.headers["X-Request-ID"]
        process.send_signal(signal.SIGTERM)
        log = banner + process.stderr.read()
    lines = [json.loads(line) for line in log.splitlines()]
    assert [line["message"].partition(" ")[0] for line in lines[:3]] == ["toolchat", "playground:", "Swagger"]
    mine = [line for line in lines if line.get("request_id") == identifier]
    assert [line["message"] for line in mine] == ["request started", "request finished"]
    assert (mine[1]["status"], mine[1]["outcome"], mine[1]["rounds"]) == (200, "ok", 2)
    assert mine[1]["tool_calls"][0]["name"] == "getCityTimeFunction"
    assert question not in log.replace("%20", " ")
    assert key not in log


def test_heavy_packages_are_imported_only_when_they_are_used(tmp_path: Path) -> None:
    code = (
        "import sys; import app.main; import toolchat.service.server.runner; "
        "heavy = ('dashscope', 'pypinyin', 'httpx', 'fastapi_offline', 'mcp'); "
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment({}),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")
