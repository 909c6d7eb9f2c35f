"""What a benchmark run counts, and what it does not."""

import pytest

from benchmarks.stage import Sample
from benchmarks.summary import MARK, summarise
from benchmarks.watch import CoreUse, marks_of


def use(*, busy: float = 1.0, own: float = 1.0, stolen: float = 0.0, wall: float = 2.0) -> CoreUse:
    return CoreUse(core=0, wall=wall, busy=busy, own=own, stolen=stolen)


def sample(subject: str, value: float, *marks: str, phase: str = "time-32") -> Sample:
    return Sample(subject, phase, {"cpu_ms": value}, marks)


@pytest.mark.parametrize(
    ("uses", "wrong", "calls", "said"),
    [
        ([use()], 1, 20, "1 of 10 answers wrong"),
        ([use()], 0, 19, "19 upstream calls instead of 20"),
        ([use()], 0, 21, "21 upstream calls instead of 20"),
        ([use(busy=1.5)], 0, 20, "others took 25% of core 0"),
        ([use(), use(busy=1.5)], 0, 20, "others took 25% of core 0"),
        ([use(stolen=0.5)], 0, 20, "the hypervisor took 25% of core 0"),
    ],
)
def test_invalid_measurements_are_marked(uses: list[CoreUse], wrong: int, calls: int, said: str) -> None:
    # A wrong answer, a missing or extra upstream call, a foreign process and stolen time are each named.
    assert marks_of(uses, wrong=wrong, asked=10, upstream_calls=calls, expected=20) == (said,)


def test_a_marked_measurement_is_not_counted() -> None:
    # The median and the range leave marked measurements out.
    samples = [sample("toolchat", 1), sample("toolchat", 9, "others took 50% of core 0"), sample("toolchat", 2)]
    figure = summarise(samples).figure("toolchat", "time-32", "cpu_ms")
    assert figure is not None
    assert (figure.median, figure.low, figure.high, figure.marked) == (1.5, 1, 2, False)


def test_a_figure_from_marked_measurements_only_is_marked() -> None:
    summary = summarise([sample("toolchat", 3, "others took 50% of core 0")])
    figure = summary.figure("toolchat", "time-32", "cpu_ms")
    assert figure is not None
    assert figure.text(1) == f"3.0 {MARK}"
