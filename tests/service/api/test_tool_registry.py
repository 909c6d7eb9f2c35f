"""Names of tools that come and go: which source has one."""

from types import SimpleNamespace
from typing import Any

import pytest

from toolchat.service.api.tool_registry import ToolNames

Offers = list[list[tuple[str, str]]]
"""By source: the own and the prefixed name of each tool."""


class Source:
    """Offers tools under two names each."""

    version = 1
    fault: str | None = None
    cause = ""

    def __init__(self, offer: list[tuple[str, str]]) -> None:
        self._offer = offer

    def tool_callbacks(self) -> Any:
        return tuple(SimpleNamespace(definition=SimpleNamespace(name=own), other=other) for own, other in self._offer)

    def prefixed(self, tool: Any) -> Any:
        return SimpleNamespace(definition=SimpleNamespace(name=tool.other))

    async def wait_ready(self) -> None: ...

    def stop(self) -> None: ...


@pytest.mark.parametrize(
    ("before", "offers", "fixed", "names"),
    [
        ([], [[("a", "x_a")], [("b", "y_b")]], "", [["a"], ["b"]]),
        ([], [[("a", "x_a")], [("a", "y_a")]], "", [["a"], ["y_a"]]),
        ([[], [("a", "y_a")]], [[("a", "x_a")], [("a", "y_a")]], "", [["x_a"], ["a"]]),
        ([[], [("a", "y_a")]], [[("a", "x_a")], []], "", [["a"], []]),
        ([], [[("a", "x_a")]], "a", [["x_a"]]),
        ([], [[("a", "x"), ("a", "x"), ("a", "x")]], "", [["a", "x"]]),
        ([], [[("a", "x")], [("a", "x")], [("a", "x")]], "", [["a"], ["x"], []]),
        ([], [[("x_a", "x_x_a"), ("a", "x_a")]], "a", [["x_a"]]),
        ([[("a", "x_a")]], [[]], "", [[]]),
    ],
    ids=[
        "each its own", "the later one its prefixed name", "what is owned stays", "what is offered no more is free",
        "a fixed name is never given", "three of one name in one source", "three sources of one name",
        "a prefixed name that is taken", "no tools",
    ],
)  # fmt: skip
def test_a_name_stays_with_its_source_and_goes_to_the_first_otherwise(
    before: Offers, offers: Offers, fixed: str, names: list[list[str]]
) -> None:
    given = ToolNames(fixed)
    given.rename([Source(each) for each in before])
    renamed = given.rename([Source(each) for each in offers])
    assert [[tool.definition.name for tool in tools] for tools in renamed] == names
