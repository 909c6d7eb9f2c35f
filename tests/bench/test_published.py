"""What the documentation says of the cost is what was measured."""

from pathlib import Path

import pytest

from bench.chart import growth_chart, question_chart
from bench.report import markdown
from bench.run import read_run

ROOT = Path(__file__).parent.parent.parent
RUN = read_run((ROOT / "bench" / "results.json").read_bytes())


def test_the_tables_and_charts_are_those_of_the_kept_run() -> None:
    # Nothing in them was written by hand.
    assert (ROOT / "bench" / "results.md").read_text() == markdown(RUN)
    assert (ROOT / "docs" / "benchmark.svg").read_text() == question_chart(RUN)
    assert (ROOT / "docs" / "benchmark-growth.svg").read_text() == growth_chart(RUN)


@pytest.mark.parametrize("readme", ["README.md", "README.zh-CN.md"])
def test_the_readme_shows_the_goals_of_that_run_and_where_it_was_measured(readme: str) -> None:
    # The whole table, the goals that are not met as well.
    text, published = (ROOT / readme).read_text(), markdown(RUN)
    where, goals = published.split("\n\n")[0], published.split("### Goals\n\n")[1].split("\n\n")[0]
    assert where in text
    assert goals in text
