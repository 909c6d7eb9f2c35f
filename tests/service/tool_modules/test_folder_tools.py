"""What a folder may register beside typed functions, and parts of its own in the place of the service's."""

from pathlib import Path

import pytest

from tests.service.api.assembled import assembled
from tests.service.tool_modules.test_folder_parts import with_folders
from toolchat.errors import ConfigurationError

JSON = {"Accept": "application/json"}
HEAD = """
from contextlib import asynccontextmanager

from toolchat.messages import ToolCall
from toolchat.tool_calling.callback import ToolCallback
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.definition import ToolDefinition, ToolMetadata
from toolchat.tool_calling.errors import ToolExecutionError
from toolchat.tool_calling.exception_processor import ToolExecutionExceptionProcessor
from toolchat.tool_calling.function_callback import FunctionToolCallback
from toolchat.tool_calling.manager import ToolCallingManager
from toolchat import ToolModule

NO_INPUT = {"type": "object", "properties": {}, "additionalProperties": False}


async def roll() -> str:
    "Roll a die."
    return "rolled 4"


class Dice(ToolCallback):
    "A callback of one's own, made by the container."

    definition = ToolDefinition("roll", "Roll a die", NO_INPUT)
    metadata = ToolMetadata(read_only=True)

    async def call(self, tool_input: str, context: ToolContext) -> str:
        return "rolled 4"


class Table:
    "A provider of callbacks."

    def tool_callbacks(self):
        return (FunctionToolCallback.from_function(roll),)


@asynccontextmanager
async def another_server(container):
    print("opened")
    yield [roll]
    print("closed")
"""


def write(package: str, source: str) -> None:
    Path(package, "dice").mkdir()
    (Path(package) / "dice" / "__init__.py").write_text(HEAD + source, encoding="utf-8")


@pytest.mark.parametrize(
    "parts",
    [
        "functions=(roll,)",
        "functions=(FunctionToolCallback.from_function(roll),)",
        "functions=(Dice,)",
        "functions=(Dice(),)",
        "functions=(Table,)",
        "functions=(Table(),)",
        "tool_source=another_server",
    ],
)
async def test_everything_that_is_a_tool_can_be_registered(parts: str, package: str) -> None:
    write(package, f"module = ToolModule(default_query='Please roll a die', {parts})")
    async with assembled(with_folders(package)) as client:
        answer = (await client.get("/dice/chat-tool-function", headers=JSON)).json()
        (folder,) = (await client.get("/tools")).json()
    assert [(each["name"], each["result"]) for each in answer["tool_calls"]] == [("roll", "rolled 4")]
    assert [each["name"] for each in folder["tools"]] == ["roll"]


async def test_tool_sources_are_closed_at_shutdown(package: str, capsys: pytest.CaptureFixture[str]) -> None:
    write(package, "module = ToolModule(tool_source=another_server)")
    async with assembled(with_folders(package)):
        assert capsys.readouterr().out == "opened\n"
    assert capsys.readouterr().out == "closed\n"


@pytest.mark.parametrize(
    ("source", "line"),
    [
        (
            "@asynccontextmanager\nasync def away(container):\n    raise OSError('secret address')\n    yield []\n"
            "module = ToolModule(tool_source=away)",
            "dice/__init__.py: tool_source: OSError (line ",
        ),
        (
            "module = ToolModule(functions=(roll, FunctionToolCallback.from_function(roll)))",
            "two tools have the name roll",
        ),
        (
            "def processor() -> ToolExecutionExceptionProcessor:\n    return object()\n"
            "module = ToolModule(functions=(roll,), replaces=(processor,))",
            "ToolExecutionExceptionProcessor of a tool module: an exception processor needs a method process(",
        ),
    ],
    ids=["cannot be opened", "one name twice", "no processor"],
)
async def test_a_failing_part_of_a_folder_is_reported_in_one_line(source: str, line: str, package: str) -> None:
    write(package, source)
    app = with_folders(package)
    with pytest.raises(ConfigurationError) as caught:
        async with app.router.lifespan_context(app):
            pass
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


PROCESSOR = """
class Frank(ToolExecutionExceptionProcessor):
    def process(self, error, tool):
        return ToolExecutionError(f"{tool} says {error}")


def processor() -> ToolExecutionExceptionProcessor:
    return Frank()


async def breaks() -> str:
    "Break a die."
    raise ValueError("it is glass")


module = ToolModule(default_query="Please break a die", functions=(breaks,), replaces=(processor,))
"""
MANAGER = """
class Counted(ToolCallingManager):
    async def execute(self, calls, *arguments, **options):
        print(f"{len(calls)} calls")
        return await super().execute(calls, *arguments, **options)


def manager() -> ToolCallingManager:
    return Counted()


module = ToolModule(default_query="Please roll a die", functions=(roll,), replaces=(manager,))
"""


async def test_an_exception_processor_with_which_a_folder_replaces_it_is_the_services(package: str) -> None:
    write(package, PROCESSOR)
    async with assembled(with_folders(package)) as client:
        answer = (await client.get("/dice/chat-tool-function", headers=JSON)).json()
    assert "breaks says it is glass" in answer["tool_calls"][0]["result"]


async def test_a_manager_with_which_a_folder_replaces_it_runs_every_call(
    package: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(package, MANAGER)
    async with assembled(with_folders(package)) as client:
        assert (await client.get("/dice/chat-tool-function")).status_code == 200
    assert capsys.readouterr().out == "1 calls\n"
