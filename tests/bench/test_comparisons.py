"""What is compared by turns, and where the report says that others need less."""

import asyncio
import ssl
from contextlib import suppress
from pathlib import Path

from bench.certificates import make_certificate, trusting
from bench.chart import question_chart
from bench.fake_upstream import serve
from bench.goals import GOALS
from bench.publish import compared
from bench.ratios import PAIRS
from bench.report import markdown
from bench.run import Run
from bench.stage import Sample
from bench.wire import STREAM

PAGE = "<!-- Spring AI -->\n<!-- end -->\n\n<!-- goals -->\n<!-- end -->\n"


def run(**cpu: float) -> Run:
    samples = [Sample(name, "time-32", {"cpu_ms": ms, "p50_ms": 1, "p99_ms": 2}) for name, ms in cpu.items()]
    samples += [Sample("toolchat", "pairs-spring-32", {"ratio": 0.8, "cpu_ms": 0.4, "other_cpu_ms": 0.5})]
    return Run("2026-01-01", "2 cores", {"Java": "25"}, 1, tuple(cpu), (), samples)


def test_each_goal_that_is_a_ratio_is_compared_by_turns() -> None:
    compared_by_turns = {(subject, phase) for subject, phase, _ in PAIRS}
    assert [
        goal.what for goal in GOALS if goal.metric == "ratio" and (goal.subject, goal.phase) not in compared_by_turns
    ] == []


def test_the_streams_have_as_many_pieces_as_their_goal() -> None:
    assert STREAM.call_pieces + STREAM.text_pieces == 40


def test_the_report_shows_both_sides_of_a_pair_and_whether_its_goal_is_met() -> None:
    text = markdown(run(toolchat=0.4, spring=0.5))
    assert "| time, 32 connections: toolchat ÷ Spring AI, platform threads | 0.400 | 0.500 | 0.80 |" in text
    assert "| CPU ÷ warm Spring AI, platform threads, 32 connections | – | – | 0.80 | ≤ 0.95 | yes |" in text


def test_services_below_toolchat_are_listed_best_first() -> None:
    text = markdown(run(toolchat=0.5, spring=0.4, agno=6, limit=0.1, **{"spring-virtual": 0.3}))
    said = "Spring AI, virtual threads 0.300; Spring AI, platform threads 0.400"
    assert f"| CPU ms, time, 32 connections | 0.500 | {said} |" in text
    assert "No peer needs less" in markdown(run(toolchat=0.5, spring=0.6))


def test_the_comparison_has_spring_only_if_the_run_measured_it() -> None:
    page = compared(PAGE, run(toolchat=0.5, spring=0.4))
    assert "| Spring AI, platform threads | – | 0.400 |" in page
    assert "made without Java" in compared(page, run(toolchat=0.5))
    assert compared(page, run(toolchat=0.5, spring=0.4)) == page


def test_the_chart_marks_spring_as_warm() -> None:
    assert "Spring AI is warm" in question_chart(run(toolchat=0.5, spring=0.4))
    assert "Spring AI" not in question_chart(run(toolchat=0.5))


async def test_the_certificate_of_the_fake_upstream_is_trusted_only_if_configured(tmp_path: Path) -> None:
    ports: asyncio.Queue[int] = asyncio.Queue()
    task = asyncio.create_task(serve(0, ports.put_nowait, make_certificate(tmp_path)))
    try:
        _, secure = [await ports.get() for _ in range(2)]
        trusted = ssl.create_default_context(cafile=trusting(tmp_path)["SSL_CERT_FILE"])
        _, writer = await asyncio.open_connection("127.0.0.1", secure, ssl=trusted)
        writer.close()
        with suppress(ssl.SSLCertVerificationError):
            await asyncio.open_connection("127.0.0.1", secure, ssl=ssl.create_default_context())
            raise AssertionError("a certificate that nobody vouches for was trusted")
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
