"""Names of tools that every provider accepts, and that differ where the originals differ."""

import re
from itertools import combinations

import pytest
from hypothesis import given, strategies as st

from toolchat.tool_calling.definition import provider_name

NAMES = st.text(st.sampled_from("ab._/-天气 \ud800"), min_size=1, max_size=80)


@pytest.mark.parametrize("name", ["get_weather", "get-weather", "A" * 64, "_"])
def test_a_valid_name_is_unchanged(name: str) -> None:
    assert provider_name(name) == name


def test_a_changed_name_ends_in_a_hash_of_the_original() -> None:
    assert provider_name("orders.find") == "orders_find_cc4ca2ef"


@pytest.mark.parametrize(
    "group",
    [
        ("天气查询", "时间查询", "____"),
        ("orders.find", "orders_find", "orders/find", "orders find"),
        ("a" * 64, "a" * 65, "a" * 66),
    ],
)
def test_different_names_stay_different(group: tuple[str, ...]) -> None:
    assert all(provider_name(one) != provider_name(other) for one, other in combinations(group, 2))


def test_a_prefix_keeps_the_name_within_the_limit() -> None:
    assert provider_name("get_issue", "gh") == "gh_get_issue"
    assert len(provider_name("a" * 60, "github")) == 64


@given(NAMES, NAMES)
def test_every_name_is_valid_for_providers_and_keeps_its_identity(one: str, other: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", provider_name(one))
    assert (provider_name(one) == provider_name(other)) == (one == other)
