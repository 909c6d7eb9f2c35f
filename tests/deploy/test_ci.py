"""The check that runs before a change is merged repeats the guard of the cost once, and fails if that fails, too."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.command_line import ROOT
from tests.waiting import PATIENCE

MAKE = """#!/bin/sh
[ "$1" = bench-guard ] || exit 0
echo guarded >> guards
case $(wc -l < guards) in
    1) echo "FIRST"; ! [ "FIRST" = worse ] ;;
    *) echo "SECOND"; ! [ "SECOND" = worse ] ;;
esac
"""


@pytest.mark.parametrize(
    ("first", "second", "guards", "code"),
    [("good", "", 1, 0), ("worse", "good", 2, 0), ("NOT MEASURED", "good", 2, 0), ("worse", "worse", 2, 1)],
)
def test_a_guard_that_failed_or_could_not_measure_is_repeated_once(
    first: str, second: str, guards: int, code: int, tmp_path: Path
) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci")
    needed = re.findall(r"command -v ([\w-]+)", (ROOT / ".ci/run").read_text(encoding="utf-8"))
    for name in (*needed, "sleep", "../.ci/bare"):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(MAKE.replace("FIRST", first).replace("SECOND", second) if name == "make" else "#!/bin/sh\n")
        program.chmod(0o755)
    variables = os.environ | {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    done = subprocess.run([tmp_path / ".ci/run"], env=variables, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, (tmp_path / "guards").read_text().count("guarded")) == (code, guards), done.stderr
