"""What is said about a tool in a mark, in metadata and in code, and whose word counts."""

from typing import Any, get_type_hints

import pytest

from tests.tool_calling.calls import EMPTY
from toolchat.tool_calling.definition import ToolMetadata, ToolOptions, tool
from toolchat.tool_calling.errors import ToolDefinitionError
from toolchat.tool_calling.function_callback import FunctionToolCallback

ALL: dict[str, Any] = {
    "name": "other",
    "description": "Something else.",
    "return_direct": True,
    "requires_approval": False,
    "approver": "",
    "approver_may_edit": False,
    "timeout": 3.0,
    "cache_seconds": 60.0,
    "max_calls": 4,
    "max_identical_calls": 2,
    "exclusive": True,
    "retries": 2,
    "read_only": True,
    "examples": ("Do it",),
    "result_converter": repr,
}


async def plain(city: str) -> str:
    """Do something."""
    return city


@tool(name="marked", description="Marked", return_direct=True, timeout=2, max_calls=7, exclusive=True, retries=1)
async def marked() -> str:
    return "text"


async def test_every_option_of_the_decorator_exists_in_code() -> None:
    assert set(ALL) == set(get_type_hints(ToolOptions))
    in_code = FunctionToolCallback.from_function(plain, **ALL)
    by_mark = FunctionToolCallback.from_function(tool(**ALL)(plain_copy()))
    for callback in (in_code, by_mark):
        assert (callback.definition.name, callback.definition.description) == ("other", "Something else.")
        assert callback.metadata == ToolMetadata(
            return_direct=True,
            timeout=3,
            cache_seconds=60,
            max_calls=4,
            max_identical_calls=2,
            exclusive=True,
            examples=("Do it",),
            retries=2,
            read_only=True,
        )
        assert await callback.call('{"city": "Rome"}', EMPTY) == "'Rome'"


def plain_copy() -> Any:
    async def plain(city: str) -> str:
        return city

    return plain


def test_metadata_keep_the_decorators_values_for_defaults() -> None:
    changed = FunctionToolCallback.from_function(
        marked, metadata=ToolMetadata(timeout=9, requires_approval=False, cache_seconds=5)
    )
    assert changed.metadata == ToolMetadata(
        return_direct=True, timeout=9, cache_seconds=5, max_calls=7, exclusive=True, retries=1
    )


def test_an_option_in_code_overrides_decorator_and_metadata() -> None:
    callback = FunctionToolCallback.from_function(
        marked,
        name="given",
        metadata=ToolMetadata(timeout=9),
        return_direct=False,
        timeout=None,
        max_calls=None,
        exclusive=False,
        retries=0,
    )
    assert (callback.definition.name, callback.metadata) == ("given", ToolMetadata())


def test_a_name_or_description_of_none_changes_nothing() -> None:
    definition = FunctionToolCallback.from_function(
        marked, name=None, description=None, result_converter=None
    ).definition
    assert (definition.name, definition.description) == ("marked", "Marked")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"name": 5}, "name of a tool must be text, not 5"),
        ({"description": ["a"]}, "description of a tool must be text, not ['a']"),
        ({"result_converter": "json"}, "result_converter of a tool must be a function that returns text"),
    ],
)
def test_a_value_of_another_type_is_refused_in_one_line(options: Any, told: str) -> None:
    for define in (lambda: tool(**options), lambda: FunctionToolCallback.from_function(plain, **options)):
        with pytest.raises(ToolDefinitionError) as caught:
            define()
        assert str(caught.value) == told


@pytest.mark.parametrize("word", ["retry", "sandbox", "metadata"])
def test_a_word_that_is_none_is_refused(word: str) -> None:
    unknown: Any = {word: 1}
    with pytest.raises(TypeError, match=f"a tool has no option {word}"):
        tool(**unknown)
    if word != "metadata":
        with pytest.raises(TypeError, match=f"a tool has no option {word}"):
            FunctionToolCallback.from_function(plain, **unknown)
