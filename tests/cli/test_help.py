"""What the command line says of itself, and of what it does not understand."""

import re
import shlex
from collections.abc import Mapping, Set
from pathlib import Path

import pytest

from app.__main__ import sandbox
from tests.command_line import WITHOUT_EXAMPLE, run
from toolchat.service.cli.parser import parse
from toolchat.service.cli.program import Program

EVERY = ["serve", "demo", "ask", "chat", "tools", "new-tool", "check", "mcp", "keys", "state", "audit", "person"]
EXAMPLE = Program("python -m app", sandbox=sandbox)


@pytest.mark.parametrize(
    ("program", "variables", "own"), [(Program(), WITHOUT_EXAMPLE, set()), (EXAMPLE, {}, {"demo"})], ids=["", "example"]
)
def test_every_command_has_help_with_examples_that_it_understands(
    program: Program, variables: Mapping[str, str], own: Set[str], tmp_path: Path
) -> None:
    commands = re.findall(r"^    ([\w-]+) ", run("--help", cwd=tmp_path, **variables).stdout, re.MULTILINE)
    assert commands == [each for each in EVERY if each in own or each != "demo"]
    for command in ("", *commands, "tools run"):
        text = run(*command.split(), "--help", cwd=tmp_path, **variables).stdout
        for line in text.split("examples:\n")[1].split("\n\n")[0].splitlines():
            # Without what the shell does before and after it, and without the words that explain it.
            typed = re.split(r" &&| 2>| >|  +| <", line.strip().split(program.command, 1)[1].strip(" "))[0]
            assert parse(program, ["ask", "x"] if typed == "COMMAND --help" else shlex.split(typed)).run


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (["sevre"], "there is no command sevre; did you mean serve?"),
        (["start"], "there is no command start; did you mean serve?"),
        (["list"], "there is no command list; did you mean tools list?"),
        (["help"], "there is no command help; did you mean --help?"),
        (["tools", "rnu"], "there is no command rnu; did you mean run?"),
        (["xyz"], f"there is no command xyz; known: {', '.join(EVERY)}"),
        (["keys", "nwe", "alice"], "there is no command nwe; did you mean new?"),
        (["tools", "--port", "1"], "--port is an option of serve and demo only"),
        (["demo", "--workers=3"], "--workers is an option of serve only"),
        (["ask", "--josn", "?"], "there is no option --josn; did you mean --json?"),
        (["mcp", "--demo"], "there is no option --demo; --help lists all"),
        (["serve", "--prt", "3"], "there is no option --prt; did you mean --port?"),
        (["-p", "9000"], "there is no option -p; did you mean --port?"),
        (["ask", "What", "time"], "time: is one argument too many; put quotes around a text with spaces"),
    ],
)
def test_a_mistyped_command_or_option_is_reported_with_the_most_similar_one(
    typed: list[str], told: str, tmp_path: Path
) -> None:
    done = run(*typed, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].endswith(f"error: {told}")
