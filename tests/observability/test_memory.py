"""Memory that grows is logged with the tools that were called meanwhile."""

from collections import Counter

import pytest

from toolchat.service.observability.runtime import MemoryWatch

MIB = 2**20


@pytest.mark.parametrize("mixed", [False, True], ids=["alone", "beside a tool that is called more often"])
def test_the_tool_whose_calls_go_with_the_growth_comes_first(mixed: bool, caplog: pytest.LogCaptureFixture) -> None:
    calls: Counter[str] = Counter()
    memory = 100 * MIB
    watch = MemoryWatch(lambda: memory, calls)
    for second in range(40):
        leaking = second % 3
        calls["leaks"] += leaking
        calls["innocent"] += 50 + (second * 7) % 5 if mixed else 0
        memory += 2 * leaking * MIB
        assert watch.sample() == memory
    [line] = [vars(each) for each in caplog.records]
    assert (line["memory_mib"], line["grown_mib"]) == (166, 66)
    assert [each["name"] for each in line["tools"]] == ["leaks", "innocent"][: 1 + mixed]
    assert line["tools"][0]["correlation"] > 0.9


def test_memory_that_comes_and_goes_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    memory = 0
    watch = MemoryWatch(lambda: memory, {})
    for memory in (0, 70 * MIB, 0, 70 * MIB, 130 * MIB, 0):  # noqa: B007 - the watch reads it
        watch.sample()
    assert [vars(each)["grown_mib"] for each in caplog.records] == [70]
