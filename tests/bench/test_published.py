"""What the documentation says of the cost is what was measured."""

from pathlib import Path

import pytest

from bench.catalogue import SERVICES
from bench.chart import growth_chart, question_chart
from bench.publish import compared
from bench.report import markdown
from bench.run import read_run
from bench.summary import summarise

ROOT = Path(__file__).parent.parent.parent
RUN = read_run((ROOT / "bench" / "results.json").read_bytes())


def test_the_tables_and_charts_are_those_of_the_stored_run() -> None:
    # Nothing in them was written by hand.
    assert (ROOT / "bench" / "results.md").read_text() == markdown(RUN)
    assert (ROOT / "docs" / "benchmark.svg").read_text() == question_chart(RUN)
    assert (ROOT / "docs" / "benchmark-growth.svg").read_text() == growth_chart(RUN)


def test_the_comparison_shows_spring_and_the_frameworks_of_that_run_and_where_it_was_measured() -> None:
    page = (ROOT / "docs" / "comparison.md").read_text()
    assert page == compared(page, RUN)
    assert all(f"| {name} |" in page for name, each in SERVICES.items() if each.kind == "framework")


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
def test_the_figures_about_spring_in_the_readmes_are_of_that_run(readme: str) -> None:
    text, summary = (ROOT / readme).read_text().replace("–", " "), summarise(RUN.samples)
    both = [(name, phase, "rss_mib", 0) for name in ("toolchat", "spring") for phase in ("start", "settled")]
    both[3] = ("spring-virtual", "settled", "rss_mib", 0)  # the one that takes more
    both += [(name, "start", "first_200_s", 2) for name in ("toolchat", "spring")]
    both += [("toolchat", f"pairs-spring-virtual-{connections}", "ratio", 2) for connections in (32, 1)]
    figures = [(summary.figure(name, phase, metric), digits) for name, phase, metric, digits in both]
    assert [figure for figure, digits in figures if figure is None or f" {figure.text(digits)} " not in text] == []


def test_the_figures_about_a_warm_jvm_in_the_comparison_are_of_that_run() -> None:
    text, summary = (ROOT / "docs" / "comparison.md").read_text().replace("\n  ", " "), summarise(RUN.samples)
    ratios = {
        (tls, connections): summary.figure(f"toolchat{tls}", f"pairs-spring-virtual-{connections}", "ratio")
        for tls in ("", " (TLS)")
        for connections in (32, 1)
    }
    told = {key: figure.text(2) for key, figure in ratios.items() if figure and not figure.marked}
    assert f"takes {told['', 32]} times as much, over TLS {told[' (TLS)', 32]} times" in text
    assert f"with one connection {told['', 1]} and {told[' (TLS)', 1]} times" in text
    cold, stream = (
        [summary.figure(name, phase, "cpu_ms") for name in ("toolchat", "spring-virtual")]
        for phase in ("cold", "streams")
    )
    for figures, least in ((cold, 17), (stream, 6)):
        ours, theirs = figures
        assert ours
        assert theirs
        assert theirs.median / ours.median > least
