"""The engine stands alone: what it imports, and its wheel in an environment without the service."""

import subprocess
import sys
from pathlib import Path

from tests.command_line import ROOT, environment
from tests.waiting import PATIENCE

ENGINE = [file for file in sorted((ROOT / "toolchat").rglob("*.py")) if "service" not in file.parts]
FOREIGN = {"app", "fastapi", "starlette", "uvicorn", "dishka", "pydantic_settings", "toolchat.service"}


def _module(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def test_importing_the_whole_engine_loads_neither_the_service_nor_a_web_framework() -> None:
    program = f"""
import importlib, sys
for name in {[_module(file) for file in ENGINE]}:
    importlib.import_module(name)
print(sorted({FOREIGN} & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment({}), capture_output=True, text=True, timeout=PATIENCE
    )
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr
