"""pydantic-evals: the script of docs/evaluation.md, which evaluates tool calls."""

import re
import subprocess
import sys
from pathlib import Path

from tests.clients.conftest import PATIENCE, ROOT, Model, says, started

PAGE = ROOT / "docs" / "evaluation.md"


def test_the_script_of_the_page_tells_a_model_that_calls_the_right_tools_from_one_that_does_not(
    base_url: str, model: Model, tmp_path: Path
) -> None:
    [script] = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    model.plays(*(says("I do not know.") for _ in range(3)))
    with started(ROOT, tmp_path, "", CHAT_PROVIDER="offline") as offline:
        script = script.replace("http://127.0.0.1:8083", offline)
        script = script.replace("http://127.0.0.1:8084", base_url.removesuffix("/v1"))
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    assert done.returncode == 0, done.stderr
    right, wrong = done.stdout.split("Evaluation Summary: ")[1:]
    assert ("qwen-plus" in right, re.findall(r"[\d.]+% ✔", right)) == (True, ["100.0% ✔"])
    assert ("qwen-turbo" in wrong, re.findall(r"[\d.]+% ✔", wrong)) == (True, ["33.3% ✔"])
