"""What one package provides is its own; parts of the service are replaced on purpose, and by one package only."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.service.api.assembled import assembled
from tests.service.tool_modules.test_folder_parts import with_folders
from toolchat.errors import ConfigurationError

HEAD = """
import sqlite3
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field

from dishka import Provider, Scope, provide

from toolchat import (
    ChatClient, OutboundHttp, StateStore, ToolCallingAdvisor, ToolCallingManager, ToolExecutionExceptionProcessor,
    ToolModule, tool
)
"""
TOOL = """

class Tools:
    def __init__(self, PARAMETERS) -> None:
        self.shown = SHOWN

    @tool(name="show_FOLDER", read_only=True)
    def show(self) -> str:
        "Show it."
        return str(self.shown)


module = ToolModule(methods=(Tools,), PARTS)
"""
DATABASE = """
def open_database() -> Iterator[sqlite3.Connection]:
    db = sqlite3.connect(":memory:", check_same_thread=False)
    db.execute("create table t (owner text)")
    db.execute("insert into t values ('FOLDER')")
    yield db
    db.close()
    print("FOLDER is closed")
"""
OWNER = 'db.execute("select owner from t").fetchone()[0]'


def source_of(head: str, parameters: str, shown: str, parts: str = "") -> str:
    """A package with a class of tools whose constructor has these parameters."""
    source = TOOL.replace("PARAMETERS", parameters).replace("SHOWN", shown).replace("PARTS", parts)
    return HEAD + head + source


DATABASES = source_of(DATABASE, "db: sqlite3.Connection", OWNER, "provides=(open_database,)")
KEY = source_of('def key() -> str:\n    return "secret"\n', "key: str", "key", "provides=(key,)")
URL = source_of("", 'url: str = "https://search.example"', "url")
SINGLE = """
class Single:
    def __new__(cls, *args: object, **options: object) -> "Single":
        return super().__new__(cls)

    def __init__(self, store: StateStore, n: int = 3) -> None:
        self.n = n
"""
MANAGER = "def manager() -> ToolCallingManager:\n    return ToolCallingManager()\n"


async def shown(package: str, folders: Mapping[str, str]) -> dict[str, str]:
    """What the tool of each package shows."""
    write(package, folders)
    async with assembled(with_folders(package)) as client:
        answers = {name: await client.post(f"/tools/show_{name}", json={}) for name in folders}
    return {name: answer.json()["result"] for name, answer in answers.items()}


def without_modules(error: ConfigurationError, package: str) -> str:
    return re.sub(r"toolchat\.[a-z_.]+\.|toolchat_tools_\w{8}_|" + package + "[./]", "", str(error))


async def start(package: str) -> None:
    app = with_folders(package)
    async with app.router.lifespan_context(app):
        pass


def write(package: str, folders: Mapping[str, str]) -> None:
    for name, source in folders.items():
        Path(package, f"{name}.py").write_text(source.replace("FOLDER", name), encoding="utf-8")


async def test_two_packages_that_provide_one_type_each_get_their_own(
    package: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = {"customers": DATABASES, "suppliers": DATABASES}
    assert await shown(package, folders) == {"customers": "customers", "suppliers": "suppliers"}
    assert capsys.readouterr().out.splitlines() == ["suppliers is closed", "customers is closed"]


@pytest.mark.parametrize("names", [("billing", "search"), ("search", "billing")])
async def test_what_a_package_provides_fills_no_default_of_another(names: tuple[str, str], package: str) -> None:
    folders = {name: KEY if name == "billing" else URL for name in names}
    assert await shown(package, folders) == {"billing": "secret", "search": "https://search.example"}


@pytest.mark.parametrize(
    ("source", "result"),
    [
        (source_of("", "n: int = 3, *, m: int = 4, store: StateStore", "n + m + (store is not None)"), "8"),
        (source_of("", "n: int = 3, store: StateStore = None, t: float = 1", "(n, store is None, t)"), "(3, False, 1)"),
        (source_of("def n() -> int:\n    return 5\n", "n: int = 3", "n", "provides=(n,)"), "5"),
        (source_of("", "n: int | None = None, m: int | str = 'x'", "(n, m)"), "(None, 'x')"),
        (source_of(SINGLE, "one: Single", "one.n", "provides=(Single,)"), "3"),
        (
            source_of(
                "@dataclass\nclass Rates:\n    store: StateStore\n"
                "    of: dict[str, str] = field(default_factory=dict)\n",
                "rates: Rates",
                "rates.of",
                "provides=(Rates,)",
            ),
            "{}",
        ),
        (
            source_of("def n(x: str = 'x') -> Iterator[str]:\n    yield x * 2\n", "n: str", "n", "provides=(n,)"),
            "xx",
        ),
        (
            source_of(
                "async def n(x: int = 1) -> AsyncIterator[str]:\n    yield str(x)\n", "n: str", "n", "provides=(n,)"
            ),
            "1",
        ),
    ],
)
async def test_a_parameter_keeps_its_default_unless_its_package_provides_the_type(
    source: str, result: str, package: str
) -> None:
    assert await shown(package, {"one": source}) == {"one": result}


@pytest.mark.parametrize(
    ("folders", "line"),
    [
        (
            {"one": KEY, "two": source_of("", "key: str", "key")},
            "two.py: two.Tools: nothing provides str",
        ),
        (
            {
                "one": KEY.replace("=(key,)", "=(key, again)").replace(
                    "class Tools", "def again() -> str: ...\n\n\nclass Tools"
                )
            },
            "one.py: one.again and one.key both provide str",
        ),
        (
            {"one": source_of(MANAGER, "", "1", "provides=(manager,)")},
            "one.py: provides ToolCallingManager, which is the service's; replaces takes ToolCallingManager, "
            "ToolExecutionExceptionProcessor, ToolCallResultConverter, ToolCallingAdvisor",
        ),
        (
            {"one": source_of("def http() -> OutboundHttp: ...\n", "", "1", "replaces=(http,)")},
            "one.py: replaces: OutboundHttp is none of ToolCallingManager, ToolExecutionExceptionProcessor, "
            "ToolCallResultConverter, ToolCallingAdvisor",
        ),
        (
            {name: source_of(MANAGER, "", "1", "replaces=(manager,)") for name in ("one", "two")},
            "two.py: replaces: one replaces ToolCallingManager already",
        ),
        ({"one": source_of(MANAGER, "", "1", "replaces=(manager)")}, "one.py: replaces must be a tuple: write (one,)"),
    ],
    ids=["missing", "twice", "not provided", "not replaceable", "replaced twice", "no tuple"],
)
async def test_what_is_missing_or_there_twice_stops_the_start_with_one_line(
    folders: Mapping[str, str], line: str, package: str
) -> None:
    write(package, folders)
    with pytest.raises(ConfigurationError) as caught:
        await start(package)
    assert without_modules(caught.value, package).startswith(line)
    assert "\n" not in str(caught.value)


REPLACED = {
    "ValueError (line ": 'def manager() -> ToolCallingManager:\n    raise ValueError("broken")\n',
    "ToolCallingAdvisor is created later": "def manager(loop: ToolCallingAdvisor) -> ToolCallingManager: ...\n",
    "ChatClient is created later": "def manager(client: ChatClient) -> ToolCallingManager: ...\n",
}


@pytest.mark.parametrize("fault", REPLACED)
async def test_a_part_that_cannot_be_made_stops_the_start_with_one_line(fault: str, package: str) -> None:
    write(package, {"one": source_of(REPLACED[fault], "client: ChatClient", "1", "replaces=(manager,)")})
    with pytest.raises(ConfigurationError) as caught:
        await start(package)
    assert without_modules(caught.value, package).startswith(f"one.py: replaces: {fault}")
    assert "\n" not in str(caught.value)


async def test_a_replaced_part_is_made_with_what_its_package_provides_and_serves_every_package(package: str) -> None:
    replacing = """
def limit() -> str:
    return "7"


def manager(limit: str, processor: ToolExecutionExceptionProcessor) -> ToolCallingManager:
    return ToolCallingManager(max_result_chars=int(limit), exception_processor=processor)
"""
    parameters, result = "manager: ToolCallingManager", "manager.max_result_chars"
    one = source_of(replacing, parameters, result, "provides=(limit,), replaces=(manager,)")
    assert await shown(package, {"two": source_of("", parameters, result), "one": one}) == {"one": "7", "two": "7"}
