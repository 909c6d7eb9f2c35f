"""What the documentation says of the cost is what was measured."""

from pathlib import Path

import pytest

from bench.catalogue import SERVICES
from bench.chart import growth_chart, question_chart
from bench.publish import compared
from bench.report import goals_table, markdown
from bench.run import read_run
from bench.summary import summarise

ROOT = Path(__file__).parent.parent.parent
RUN = read_run((ROOT / "bench" / "results.json").read_bytes())


def test_the_tables_and_charts_are_those_of_the_kept_run() -> None:
    # Nothing in them was written by hand.
    assert (ROOT / "bench" / "results.md").read_text() == markdown(RUN)
    assert (ROOT / "docs" / "benchmark.svg").read_text() == question_chart(RUN)
    assert (ROOT / "docs" / "benchmark-growth.svg").read_text() == growth_chart(RUN)


def test_the_comparison_shows_the_goals_of_that_run_spring_and_where_it_was_measured() -> None:
    # The whole tables, the goals that are not met as well.
    page = (ROOT / "docs" / "comparison.md").read_text()
    assert page == compared(page, RUN)
    assert goals_table(summarise(RUN.samples)) in page


def test_a_page_without_a_place_for_the_figures_is_not_taken_for_done() -> None:
    with pytest.raises(ValueError, match="no place for Spring AI"):
        compared("# Comparison", RUN)


@pytest.mark.parametrize("readme", ["README.md", "README.zh-CN.md"])
def test_the_readmes_two_figures_are_those_of_that_run(readme: str) -> None:
    text, summary = (ROOT / readme).read_text(), summarise(RUN.samples)
    frameworks = [name for name in RUN.services if SERVICES[name].kind == "framework"]
    ours, cheapest = summary.figure("toolchat", "time-32", "cpu_ms"), summary.best(frameworks, "time-32", "cpu_ms")
    assert len(frameworks) == 5
    assert ours
    assert cheapest
    assert f" {ours.text(2)} ms" in text
    assert f" {cheapest.text(1)} ms" in text


@pytest.mark.parametrize("readme", ["README.md", "README.zh-CN.md"])
def test_what_the_readme_says_of_spring_stands_in_the_comparison(readme: str) -> None:
    text, rows = (ROOT / readme).read_text(), (ROOT / "docs" / "comparison.md").read_text().splitlines()
    toolchat, spring, warm = (
        next(row for row in rows if row.startswith(f"| {name}"))
        for name in ("toolchat", "Spring AI, after 33,000", "the same after 100,000")
    )
    for row, said in (
        (toolchat, ("0.61", "70", "169", "1.7")),
        (spring, ("322", "661", "10.9")),
        (warm, ("0.42", "0.47")),
    ):
        assert [figure for figure in said if figure not in row or figure not in text] == []
