"""What ``/metrics`` looks like: the format, the names, and the table of the documentation."""

import re

import pytest

from app.observability.metrics import FAMILIES, OVERHEAD, SECONDS, TOKENS
from app.observability.series import Family, Names, exposition
from tests.command_line import ROOT
from tests.observability.reading import Figures, Labels, parsed
from tests.serving import service

ROWS = re.findall(
    r"^\| `(toolchat_\w+)` \| (\w+) \| ([^|]*?) *\| ([^|]*) \|$",
    (ROOT / "docs" / "operations.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)


async def test_the_table_of_the_documentation_names_every_series_that_there_is() -> None:
    async with service() as client:
        told = parsed((await client.get("/metrics")).text)
    documented = [
        (each.name, each.kind, ", ".join(f"`{name}`" for name in each.labels), each.meaning) for each in FAMILIES
    ]
    assert documented == ROWS
    assert [(name, kind) for name, (kind, _) in told.items()] == [(name, kind) for name, kind, _, _ in documented]


@pytest.mark.parametrize("family", FAMILIES, ids=[each.name for each in FAMILIES])
def test_a_name_ends_in_its_unit_or_in_what_it_counts(family: Family) -> None:
    # A counter's name ends in ``_total`` and no other's does; a time is in seconds.
    assert family.name.endswith("_total") == (family.kind == "counter")
    assert bool(family.bounds) == (family.kind == "histogram")
    assert not re.search(r"_(ms|milliseconds|minutes|kilobytes)\b", family.name)


def test_times_and_tokens_have_the_bounds_of_the_conventions() -> None:
    assert [round(each, 2) for each in SECONDS] == [
        0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92
    ]  # fmt: skip
    assert (TOKENS[0], TOKENS[1], TOKENS[-1], len(TOKENS)) == (1, 4, 67108864, 14)
    assert list(OVERHEAD) == sorted(OVERHEAD)


def samples_of(family: Family) -> Figures:
    return parsed(exposition([family], {}))[family.name][1]


def test_a_bucket_holds_its_own_bound_and_every_smaller_one() -> None:
    family = Family("histogram", "x_seconds", "x", bounds=(0.1, 1))
    for value in (0.05, 0.1, 0.5, 7):
        family.observe(value)
    by_bound = {labels: value for (name, labels), value in samples_of(family).items() if name.endswith("_bucket")}
    assert by_bound == {(("le", "0.1"),): 2, (("le", "1"),): 3, (("le", "+Inf"),): 4}
    assert samples_of(family)["toolchat_x_seconds_count", ()] == 4
    assert samples_of(family)["toolchat_x_seconds_sum", ()] == pytest.approx(7.65)


def test_a_label_says_what_it_was_given_whatever_that_is() -> None:
    hostile = 'a"b\\c\nd{}=,é ‮中'
    family = Family("counter", "x_total", "back\\slash\nand line", ["name"])
    family.add(hostile)
    assert samples_of(family) == {("toolchat_x_total", (("name", hostile),)): 1}


def test_what_is_beyond_the_bound_goes_to_other_and_none_of_it_is_lost() -> None:
    family = Family("counter", "x_total", "x", ["one", "two"], most=3)
    for number in range(10):
        family.add(str(number), "a")
    other: Labels = (("one", "other"), ("two", "other"))
    found = samples_of(family)
    assert len(found) == 4
    assert (found["toolchat_x_total", other], sum(found.values())) == (7, 10)


def test_so_many_names_keep_theirs_and_every_further_one_is_other() -> None:
    names = Names(2)
    assert [names.of(each) for each in ("a", "b", "c", "a", "c")] == ["a", "b", "other", "a", "other"]
