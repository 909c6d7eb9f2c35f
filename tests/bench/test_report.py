"""The table and the charts of a run."""

from xml.etree import ElementTree

from bench.catalogue import LIMIT
from bench.chart import growth_chart, question_chart
from bench.growth import SUBJECT
from bench.report import markdown
from bench.run import Run, read_run
from bench.stage import Sample

_MEASURED = {"cpu_ms": 0.5, "rps": 2000.0, "p50_ms": 1.5, "p99_ms": 2.5, "wall_s": 1.2, "rss_mib": 55.0}


def made_up_run() -> Run:
    values = {**_MEASURED, "first_200_s": 0.7, "first_text_p50_s": 0.6, "upstream_us": 12.4, "load_us": 30}
    phases = ("start", "time-32", "time-1", "weather-32", "weather-1", "burst", "streams")
    samples = [Sample(name, phase, values) for name in ("toolchat", LIMIT) for phase in phases]
    samples += [Sample("agno", "time-32", values | {"cpu_ms": 6.0}, ("others took 50% of core 0",))]
    samples += [Sample(SUBJECT, f"tools/{point}", values) for point in (1, 10, 100)]
    services = ("toolchat", "agno", LIMIT)
    versions = {"Python": "3.11", "agno": "3.1"}
    return Run("2026-01-01", "2 cores", versions, 1, services, ("haystack: not there",), samples)


def test_the_table_names_the_machine_and_the_marked_measurements() -> None:
    # Date, machine, versions, figures, marks and what is missing all stand in the Markdown.
    text = markdown(made_up_run())
    for part in (
        "2026-01-01",
        "2 cores",
        "agno 3.1",
        "6.000 ‡",
        "12 µs",
        "Not measured: haystack: not there",
        "at least 1 that count",
    ):
        assert part in text
    assert "| toolchat, OpenAI-compatible | 0.500 | 1.0 | 2,000 | 1.50 / 2.50 |" in text


def test_every_row_of_a_table_has_as_many_cells_as_its_head() -> None:
    # No table falls apart where a measurement is missing.
    for block in markdown(made_up_run()).split("\n\n"):
        widths = {line.count("|") for line in block.splitlines() if line.startswith("|")}
        assert len(widths) <= 1


def test_a_run_is_read_as_it_was_written() -> None:
    # The table can be made again from the JSON.
    run = made_up_run()
    assert markdown(read_run(run.as_json())) == markdown(run)


def test_the_charts_are_well_formed_and_have_titles() -> None:
    # Both are XML with a title, need no font from elsewhere, and show every service or curve that has figures.
    run = made_up_run()
    for chart, shown in ((question_chart(run), "toolchat, OpenAI-compatible"), (growth_chart(run), "tools offered")):
        root = ElementTree.fromstring(chart)
        texts = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
        assert shown in texts
        assert "url(" not in chart
        assert "@import" not in chart
    assert "6.00 ‡" in question_chart(run), "a figure that does not count must not look like one that does"
