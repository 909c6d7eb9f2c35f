"""``python -m app tools run``: one tool without a model."""

import json
import re
from pathlib import Path

import pytest

from tests.command_line import run, with_tools
from tests.service.cli.terminal import at_a_terminal

Variables = dict[str, str]
FOLDER = '''
import threading
from typing import Annotated, Literal

from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.errors import ToolExecutionError
from toolchat.tool_calling.function_callback import tool
from toolchat import ToolModule


@tool(requires_approval=True)
async def pack(
    context: ToolContext,
    name: Annotated[str, "Name"],
    size: Annotated[int | None, "Size"] = None,
    weight: Annotated[float, "Weight"] = 0.0,
    fragile: Annotated[bool, "Whether it breaks"] = False,
    parts: Annotated[list[str], "Parts"] = [],
    label: Annotated[dict[str, int], "Label"] = {},
    by: Annotated[Literal["air", "sea"], "Way"] = "sea",
) -> str:
    """Pack a parcel."""
    for done in range(3):
        context.report(done, of=3, text=f"part {done}")
    if name == "broken":
        raise ToolExecutionError("it broke", kind="broken")
    return repr((name, size, weight, fragile, parts, label, by))


@tool(timeout=0.2)
def stuck() -> str:
    """Never come back."""
    threading.Event().wait()
    return ""


module = ToolModule(functions=(pack, stuck))
'''


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Variables:
    """Variables with which the service has tools of one's own."""
    return with_tools(tmp_path_factory.mktemp("own"), {"parcels": FOLDER})


def test_values_are_converted_by_the_schema(own: Variables, tmp_path: Path) -> None:
    given = ["name=5", "size=3", "weight=2", "fragile=true", 'parts=["x"]', 'label:={"n": 1}', "by=air"]
    done = run("tools", "run", "pack", *given, cwd=tmp_path, **own)
    assert (done.returncode, done.stdout) == (0, "('5', 3, 2.0, True, ['x'], {'n': 1}, 'air')\n")
    *_, progress, call = done.stderr.splitlines()
    assert progress == "pack: 2 of 3, part 2"
    assert re.fullmatch(r"- pack\(.*\) -> ok in [\d.]+ ms", call)


def test_the_arguments_may_be_one_json_object(own: Variables, tmp_path: Path) -> None:
    done = run("tools", "run", "pack", '{"name": "a=b", "parts": ["y"]}', cwd=tmp_path, **own)
    assert (done.returncode, done.stdout) == (0, "('a=b', None, 0.0, False, ['y'], {}, 'sea')\n")


def test_a_failing_tool_gives_exit_code_1_and_the_models_error(own: Variables, tmp_path: Path) -> None:
    done = run("tools", "run", "pack", "name=broken", "--json", cwd=tmp_path, **own)
    call = json.loads(done.stdout)
    assert done.returncode == 1
    assert (call["name"], call["arguments"], call["outcome"]) == ("pack", {"name": "broken"}, "error")
    assert (call["error_kind"], "round" in call) == ("broken", False)
    assert done.stderr.splitlines()[-1].startswith('- pack({"name":"broken"}) -> error in ')


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["pak"], "no tool has the name pak; known: "),
        (["getWeatherFunction", "city=Paris"], "Weather: not configured: set WEATHER_API_KEY"),
        (["pack", "size=many", "name=x"], "pack: size: Input should be a valid integer"),
        (["pack", "name"], "name: arguments are key=value, key:=JSON, or one JSON object with all of them"),
        (["pack", "size:={"], "size: is not valid JSON: "),
    ],
)
def test_an_invalid_run_is_reported_in_one_line(
    arguments: list[str], told: str, own: Variables, tmp_path: Path
) -> None:
    done = run("tools", "run", *arguments, cwd=tmp_path, **own)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"toolchat: {told}")
    assert len(done.stderr.splitlines()) == 1
    assert ("did you mean pack?" in done.stderr) == (arguments == ["pak"])


def test_a_tool_that_never_comes_back_does_not_keep_the_command_from_ending(own: Variables, tmp_path: Path) -> None:
    done = run("tools", "run", "stuck", cwd=tmp_path, **own)
    assert (done.returncode, json.loads(done.stdout)["error"]["kind"]) == (1, "timeout")


def test_the_demo_plays_the_upstreams_for_a_tool_as_well(tmp_path: Path) -> None:
    done = run("tools", "run", "--demo", "getWeatherFunction", "city=Paris", "days=1", "--json", cwd=tmp_path)
    assert (done.returncode, json.loads(done.stdout)["sandbox"]) == (0, True)


async def test_a_terminal_shows_progress_and_calls_dimmed(own: Variables, tmp_path: Path) -> None:
    command = ("tools", "run", "pack", "name=x")
    async with at_a_terminal(*command, cwd=tmp_path, **own) as terminal:
        await terminal.sees("'sea')")
        assert await terminal.ends() == 0
        assert "\x1b[2mpack: 2 of 3, part 2\x1b[0m" in terminal.raw
        assert "\x1b[2m- pack(" in terminal.raw
