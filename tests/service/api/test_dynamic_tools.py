"""Names of tools that come and go: which source has one."""

import pytest

from toolchat.service.api.dynamic_tools import assign_names

ONE, TWO = 0, 1


@pytest.mark.parametrize(
    ("offers", "owners", "fixed", "names", "new_owners"),
    [
        ([[["a", "x_a"]], [["b", "y_b"]]], {}, "", [["a"], ["b"]], {"a": ONE, "b": TWO}),
        ([[["a", "x_a"]], [["a", "y_a"]]], {}, "", [["a"], ["y_a"]], {"a": ONE, "y_a": TWO}),
        ([[["a", "x_a"]], [["a", "y_a"]]], {"a": TWO}, "", [["x_a"], ["a"]], {"a": TWO, "x_a": ONE}),
        ([[["a", "x_a"]], []], {"a": TWO}, "", [["a"], []], {"a": ONE}),
        ([[["a", "x_a"]]], {}, "a", [["x_a"]], {"x_a": ONE}),
        ([[["a", "x"], ["a", "x"], ["a", "x"]]], {}, "", [["a", "x", None]], {"a": ONE, "x": ONE}),
        ([[["a", "x"]], [["a", "x"]], [["a", "x"]]], {}, "", [["a"], ["x"], [None]], {"a": 0, "x": 1}),
        ([[["x_a", "x_x_a"], ["a", "x_a"]]], {}, "a", [["x_a", None]], {"x_a": ONE}),
        ([[]], {"a": ONE}, "", [[]], {}),
    ],
    ids=[
        "each its own", "the later one its prefixed name", "what is owned stays", "what is offered no more is free",
        "a fixed name is never given", "three of one name in one source", "three sources of one name",
        "a prefixed name that is taken", "no tools",
    ],
)  # fmt: skip
def test_a_name_stays_with_its_source_and_goes_to_the_first_otherwise(
    offers: list[list[list[str]]],
    owners: dict[str, int],
    fixed: str,
    names: list[list[str | None]],
    new_owners: dict[str, int],
) -> None:
    assert assign_names(offers, owners, frozenset(fixed)) == (names, new_owners)
