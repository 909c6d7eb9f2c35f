"""Ask a real small model through the service, and count what it does; fails when the service itself errs.

``.ci/nightly model`` installs llama.cpp and the model (about 1.2 GB, once). ``--write`` puts the table into
``benchmarks/real_model/results.md``.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
MODEL = "Qwen2.5-Coder-1.5B-Instruct, 4 bit"
PATIENCE = 300.0
NOWHERE = "http://127.0.0.1:9/v1"
# The path, the question, and a part of the arguments that it needs; none where no tool is offered.
QUESTIONS = [
    ("/time/chat", "What is a time zone, in one sentence?", None),
    ("/time/chat-tool-function", "What time is it in London?", "Europe/London"),
    ("/time/chat-tool-method", "现在东京几点？", "Asia/Tokyo"),
    ("/time/chat-tool-function", "What is the time in New York right now?", "America/New_York"),
    ("/weather/chat", "Name the four seasons.", None),
    ("/weather/chat-tool-function", "How is the weather in Paris for the next 3 days?", "Paris"),
    ("/weather/chat-tool-method", "北京今天天气怎么样？", "北京|Beijing"),
    ("/translate/chat", "What is a translator?", None),
    ("/translate/chat-tool-function", "Translate 'good morning' into Chinese.", "good morning"),
    ("/translate/chat-tool-method", "把“我喜欢咖啡”翻译成英文", "我喜欢咖啡"),
]
CITIES = ("London", "Tokyo", "Paris", "Cairo", "Sydney", "Berlin", "Madrid", "Lima", "Oslo", "Rome")
_CALL = re.compile(r"""\s*(?:```\w*\s*)?(?:[\[{]+\s*"(?:name|arguments)"|<tool_call>|<function=|functools\[)""")
"""How an answer begins that is a call itself; prose around one is the model's own affair."""
_OPTIONS = {"temperature": 0, "max_tokens": 200}
_MARKS = ("<!-- real model -->", "<!-- end of real model -->")


@contextmanager
def started(command: Sequence[str | Path], line: str, **variables: str) -> Iterator[str]:
    """Run a program whose output has an address at the end of a line."""
    with TemporaryDirectory() as folder, (Path(folder) / "log").open("w+", encoding="utf-8") as log:
        process = subprocess.Popen(
            [str(each) for each in command], cwd=folder, env=variables, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            yield _address(Path(log.name), line, process)
        finally:
            process.terminate()
            process.wait(PATIENCE)


def _address(log: Path, line: str, process: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        if found := re.search(line, log.read_text(encoding="utf-8", errors="replace")):
            return found[1]
        time.sleep(0.2)
    raise SystemExit(f"did not start: {log.read_text(encoding='utf-8', errors='replace')[-2000:]}")


@contextmanager
def service(model: str, **more: str) -> Iterator[httpx.Client]:
    """The example application with invented data, and a tool that a person has to approve."""
    variables = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "SERVER_PORT": "0",
        "TOOLS_PATH": f"app.tools:{HERE / 'tools'}",
        "OPENAI_BASE_URL": model,
        "OPENAI_MODEL": "qwen2.5-coder",
        "OPENAI_OPTIONS": json.dumps(_OPTIONS),
        "MODEL_TIMEOUT": "240",
        "REQUEST_TIMEOUT": "300",
        "STATE_URL": "memory://",
    }
    command = [sys.executable, "-m", "app", "demo"]
    with (
        started(command, r"toolchat on (http\S+)", **variables | more) as url,
        httpx.Client(base_url=url, timeout=PATIENCE, headers={"Accept": "application/json"}) as client,
    ):
        yield client


class Table:
    """The rows of the report, and what the service did wrong."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str, str]] = []
        self.faults: list[str] = []

    def add(self, what: str, result: str, answer: str = "") -> None:
        """Add a row and print it."""
        short = " ".join(answer.split())
        self.rows.append((what, result, short[:80] + "…" * (len(short) > 80)))
        print(*self.rows[-1], sep=" | ", flush=True)

    def check(self, what: str, reply: Mapping[str, Any] | str) -> None:
        """Note an answer that is the call instead of what the call gave."""
        if _CALL.match(answer := reply if isinstance(reply, str) else str(reply.get("answer", ""))):
            self.faults.append(f"{what}: the answer is a call: {answer[:200]}")


def asked(client: httpx.Client, table: Table, path: str, question: str, **params: str) -> dict[str, Any]:
    """The service's answer; an error of the service is noted."""
    try:
        reply = client.get(path, params={"query": question, **params})
    except httpx.HTTPError as error:
        table.faults.append(f"{path} {question}: {type(error).__name__}")
        return {}
    if reply.status_code >= 500:
        table.faults.append(f"{path} {question}: {reply.status_code} {reply.text[:300]}")
        return {}
    answer: dict[str, Any] = reply.json()
    table.check(f"{path} {question}", answer)
    return answer


def ask_questions(client: httpx.Client, table: Table) -> None:
    """The nine endpoints."""
    right = with_tool = 0
    for path, question, needed in QUESTIONS:
        reply = asked(client, table, path, question)
        calls = reply.get("tool_calls", [])
        good = [each for each in calls if each["outcome"] == "ok" and _has(each, needed or "")]
        table.add(f"{path}: {question}", _verdict(calls, good, needed), str(reply.get("answer", "")))
        if needed:
            with_tool += 1
            right += bool(good)
    table.add("answered from the right call", f"{right} of {with_tool}")


def _has(call: Mapping[str, Any], needed: str) -> bool:
    return re.search(needed, json.dumps(call["arguments"], ensure_ascii=False)) is not None


def _verdict(calls: list[Any], good: list[Any], needed: str | None) -> str:
    if needed is None:
        return "no tool"
    kinds = " repaired" if any(each.get("repaired") for each in calls) else ""
    return f"right call{kinds}" if good else f"wrong call{kinds}" if calls else "no call"


def ask_session(client: httpx.Client, table: Table) -> None:
    """Ten turns of one conversation: how many prompt tokens did the model's server have to compute?"""
    sent = computed = 0
    session: dict[str, str] = {}
    for city in CITIES:
        reply = asked(client, table, "/chat", f"What time is it in {city}?", **session)
        session = {"sessionId": reply.get("session_id", "")} if reply.get("session_id") else session
        usage = reply.get("usage", {})
        sent += usage.get("input_tokens", 0)
        computed += usage.get("input_tokens", 0) - usage.get("cached_tokens", 0)
    share = f"{computed} of {sent} ({computed / max(sent, 1):.2f})"
    table.add("prompt tokens computed of those sent, ten turns", share)


def ask_by_the_other_wires(client: httpx.Client, table: Table) -> None:
    """Streamed, as chat completions and as Responses."""
    question = "What time is it in London?"
    message = {"role": "user", "content": question}
    for path, body in (
        ("/v1/chat/completions", {"model": "toolchat", "messages": [message], "stream": True}),
        ("/v1/responses", {"model": "toolchat", "input": question, "stream": True}),
    ):
        reply = client.post(path, json=body)
        events = [each for each in reply.text.split("\n\n") if "arguments.delta" not in each]
        deltas = re.findall(r'"(?:content|delta)": ?"((?:[^"\\]|\\.)*)"', "".join(events))
        text = "".join(json.loads(f'"{each}"') for each in deltas)
        if reply.status_code >= 500 or "event: error" in reply.text:
            table.faults.append(f"{path}: {reply.status_code} {reply.text[-300:]}")
        table.check(path, text)
        table.add(f"{path}, streamed: {question}", f"{reply.status_code}", text)


def approve(client: httpx.Client, table: Table) -> None:
    """A call that waits for a person."""
    reply = asked(client, table, "/light/chat-tool-function", "Switch the light on")
    if (approval := reply.get("approval")) is None:
        table.add("a guarded tool", "no call", str(reply.get("answer", "")))
        return
    decisions = {call["id"]: {"approved": True} for call in approval["calls"]}
    decided = client.post(f"/approvals/{approval['id']}", json={"decisions": decisions})
    if decided.status_code >= 500:
        table.faults.append(f"approval: {decided.status_code} {decided.text[:300]}")
    table.add("a guarded tool, approved", f"{decided.status_code}", str(decided.json().get("answer", "")))


def fall_back(model: str, table: Table) -> None:
    """From a server that is away to the model, and from the model, which refuses the question, to another."""
    entry = {"provider": "openai_compatible", "base_url": model, "model": "qwen2.5-coder", "options": _OPTIONS}
    for what, first, then in (
        ("a fallback to the model", NOWHERE, entry),
        ("a fallback from a path that the model's server does not have", f"{model}/none", entry),
    ):
        with service(first, CHAT_FALLBACKS=json.dumps([then])) as client:
            reply = asked(client, table, "/time/chat-tool-function", "What time is it in London?")
            table.add(what, "answered" if reply.get("answer") else "no answer", str(reply.get("answer", "")))


def write(table: Table) -> None:
    """Write the table."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout
    page = HERE / "results.md"
    before, _, rest = page.read_text(encoding="utf-8").partition(_MARKS[0])
    _, _, after = rest.partition(_MARKS[1])
    lines = [f"{datetime.now(UTC):%Y-%m-%d}, commit {commit.strip()}, {MODEL}:", "", "| question | result | answer |"]
    lines += ["| --- | --- | --- |"] + [
        f"| {' | '.join(each.replace('|', '/') for each in row)} |" for row in table.rows
    ]
    text = "\n".join(lines)
    page.write_text(f"{before}{_MARKS[0]}\n{text}\n{_MARKS[1]}{after}", encoding="utf-8")


def main() -> None:
    """Ask everything, and exit with 1 if the service erred or gave a call as its answer."""
    python, model = HERE / ".venv" / "bin" / "python", HERE / ".venv" / "model.gguf"
    table = Table()
    with ExitStack() as stack:
        command: list[str | Path] = [python, HERE / "serve.py", model, str(os.cpu_count() or 2)]
        address = stack.enter_context(started(command, r"(http://\S+)", PATH=os.environ["PATH"])) + "/v1"
        client = stack.enter_context(service(address))
        ask_questions(client, table)
        ask_by_the_other_wires(client, table)
        approve(client, table)
        ask_session(client, table)
        fall_back(address, table)
    if "--write" in sys.argv:
        write(table)
    print(*table.faults, sep="\n")
    sys.exit(bool(table.faults))


if __name__ == "__main__":
    main()
