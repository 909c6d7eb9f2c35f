"""What is asked over other people's wires, and what is said of it."""

from dataclasses import replace

from pydantic_core import from_json

from bench.load import posted
from bench.stage import Sample
from bench.summary import summarise
from bench.wires import has_wires, wires_table


def test_a_posted_question_has_its_number_and_its_length() -> None:
    head, _, body = posted("/v1", '{"content":"北京 NUMBER"}', "Accept: */*")(42, 0).partition(b"\r\n\r\n")
    assert from_json(body) == {"content": "北京 ask-00000042"}
    assert head.startswith(b"POST /v1 HTTP/1.1\r\n")
    assert b"\r\nAccept: */*\r\n" in head
    assert int(head.rpartition(b"Content-Length: ")[2]) == len(body)


def figures(**cpu: float) -> list[Sample]:
    named = {tuple(name.replace("_", "-").split("--")): ms for name, ms in cpu.items()}
    return [Sample(f"{service} (wires)", phase, {"cpu_ms": ms}) for (service, phase), ms in named.items()]


def test_each_wire_is_listed_with_its_comparison_and_its_goal() -> None:
    samples = figures(
        toolchat__get=1,
        toolchat__facade=1.1,
        hayhooks__facade=9,
        toolchat__get_stream=1,
        toolchat__facade_stream=1.2,
        toolchat__mcp=0.1,
        mcp_sdk__mcp=0.5,
    )
    whole, streamed, call = wires_table(summarise(samples))
    assert has_wires(samples)
    assert whole[1:] == ["1.100", "GET 1.000: 1.10 ×", "≤ 1.15 × GET", "yes", "Hayhooks 9.000"]
    assert streamed[1:] == ["1.200", "GET 1.000: 1.20 ×", "≤ 1.15 × GET", "**no**", "Hayhooks –"]
    assert call[2:] == ["SDK 0.500: 5.00 × below", "≤ 0.15, 4 × below the SDK", "yes", "SDK's server 0.500"]
    assert [row[4] for row in wires_table(summarise([]))] == ["–"] * 3
    assert not has_wires([])


def test_a_figure_of_which_every_measurement_was_disturbed_decides_nothing() -> None:
    samples = [replace(each, marks=("others took the core",)) for each in figures(toolchat__get=1, toolchat__facade=1)]
    whole, *_ = wires_table(summarise(samples))
    assert whole[1:5] == ["1.000 ‡", "GET 1.000 ‡: 1.00 ×", "≤ 1.15 × GET", "–"]
