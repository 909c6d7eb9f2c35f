"""The refund of the documentation, approved by a second key: its commands as they stand."""

import os
import re
import subprocess
from pathlib import Path

from pydantic_core import from_json

from tests.command_line import ROOT, run, started, with_tools
from tests.programs import require

PAGE = (ROOT / "docs" / "approvals.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## Let somebody else decide")[2].partition("## Notify approvers")[0]


def created_keys(folder: Path) -> dict[str, str]:
    """Run the lines that create keys; the keys by their names in the commands after them."""
    keys = {}
    (lines,) = re.findall(r"^```sh\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
    for line in lines.splitlines()[:-1]:
        if line.startswith("toolchat "):
            command, _, _ = line.partition(" >> ")
            made = run(*command.split()[1:], cwd=folder)
            (keys[command.split()[-1].upper()],) = re.findall(r"toolchat_[\w-]{43}", made.stderr)
            with (folder / "keys.toml").open("a", encoding="utf-8") as file:
                file.write(made.stdout)
        else:
            subprocess.run(["bash", "-c", line], cwd=folder, check=True)
    return keys


def test_a_refund_is_approved_by_a_second_key_as_the_page_says(tmp_path: Path) -> None:
    require("curl")
    (source,) = re.findall(r"^```python\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
    tools = with_tools(tmp_path, {"refund": source})
    keys = created_keys(tmp_path)
    commands = re.findall(r"^\$ (curl .*)$", SECTION, re.MULTILINE)
    told = []
    with started(cwd=tmp_path, API_KEYS_FILE="keys.toml", CHAT_PROVIDER="offline", **tools) as (_, url):
        identifier = call = ""
        for command in commands:
            here = command.replace("http://127.0.0.1:8083", url).replace("Qk3v0dWnT8yRz1LcXa5uEg", identifier)
            here = here.replace("call_1", call).replace("curl", "curl -s", 1)
            done = subprocess.run(["bash", "-c", here], env=os.environ | keys, capture_output=True, check=True)
            told.append(done.stdout.decode())
            if command.endswith("/approvals"):
                (shown,) = from_json(told[-1])["approvals"]
                identifier, call = shown["id"], shown["calls"][0]["id"]
    asked, _, decided, learnt = told
    assert asked == "Waiting: a person with the role manager must decide about refund; the one who asked cannot"
    assert asked in SECTION
    assert decided == "50 refunded"
    assert from_json(learnt).items() >= {"decision": "approved", "by": "lead", "answer": "50 refunded"}.items()
    assert set(re.findall(r'"(\w+)":', learnt)) >= {"status", "reason", "at", "asked_by"}
