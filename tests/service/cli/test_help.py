"""What the command line says of itself, and of what it does not understand."""

import os
import re
import shlex
from collections.abc import Mapping, Set
from pathlib import Path

import pytest

from app.__main__ import sandbox
from tests.command_line import WITHOUT_EXAMPLE, run
from tests.service.cli.parsing import is_understood
from toolchat.service.cli import Program

EVERY = ["serve", "demo", "ask", "chat", "tools", "new-tool", "check", "mcp", "keys", "state"]
EVERY += ["approvals", "audit", "person"]
EXAMPLE = Program("python -m app", sandbox=sandbox)


def test_parsing_a_command_leaves_the_environment_of_other_tests_alone() -> None:
    before = dict(os.environ)
    assert is_understood(EXAMPLE, ["demo"])
    assert dict(os.environ) == before


@pytest.mark.parametrize(
    ("program", "variables", "own"), [(Program(), WITHOUT_EXAMPLE, set()), (EXAMPLE, {}, {"demo"})], ids=["", "example"]
)
def test_every_example_of_the_help_is_understood(
    program: Program, variables: Mapping[str, str], own: Set[str], tmp_path: Path
) -> None:
    listed = run("--help", cwd=tmp_path, **variables).stdout.split("Commands:\n")[1].split("\n\n")[0]
    commands = re.findall(r"^  ([\w-]+) ", listed, re.MULTILINE)
    assert commands == [each for each in EVERY if each in own or each != "demo"]
    examples = 0
    for command in ("", *commands, "tools run", "keys new", "audit export"):
        text = run(*command.split(), "--help", cwd=tmp_path, **variables).stdout
        for line in text.partition("examples:\n")[2].split("\n\n")[0].splitlines():
            # Without what the shell does before and after it, and without the words that explain it.
            typed = re.split(r" &&| 2>| >|  +| <", line.strip().split(program.command, 1)[1].strip(" "))[0]
            assert is_understood(program, ["ask", "x"] if typed == "COMMAND --help" else shlex.split(typed)), typed
            examples += 1
    assert examples >= 12


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (["sevre"], "No such command 'sevre'. Did you mean 'serve'?"),
        (["tools", "rnu"], "No such command 'rnu'. Did you mean 'run'?"),
        (["xyz"], "No such command 'xyz'."),
        (["keys", "nwe", "alice"], "No such command 'nwe'. Did you mean 'new'?"),
        (["tools", "--port", "1"], "No such option '--port'."),
        (["demo", "--workers=3"], "No such option '--workers'."),
        (["ask", "--josn", "?"], "No such option '--josn'. Did you mean '--json'?"),
        (["--prt", "3"], "No such option '--prt'. Did you mean '--port'?"),
        (["keys", "new"], "Missing argument 'NAME'."),
    ],
)
def test_a_mistyped_command_or_option_is_reported_with_the_most_similar_one(
    typed: list[str], told: str, tmp_path: Path
) -> None:
    done = run(*typed, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1] == f"Error: {told}"


def test_the_words_of_a_question_need_no_quotes(tmp_path: Path) -> None:
    done = run("ask", "--tool", "getCityTimeFunction", "What", "time", "is", "it", "in", "Tokyo?", cwd=tmp_path)
    assert (done.returncode, done.stdout[:11]) == (0, "In Tokyo it")
