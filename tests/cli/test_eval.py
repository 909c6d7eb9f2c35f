"""``python -m app eval``: figures about the tool calls of the configured model."""

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.command_line import ROOT, run

QUESTIONS = """
- {ask: "What time is it in Tokyo?", calls: [{time: Asia/Tokyo}], has: [Tokyo], lacks: [Paris]}
- {ask: "What time is it in Paris?", calls: [{getCityTimeFunction: {timeZoneId: {any: [UTC, europe/paris]}}}]}
- {ask: "And in Rome?", before: ["What time is it in Tokyo?", "It is late."], calls: [{time: Europe/Rome}]}
- {ask: "What time is it in Oslo?", calls: [{time: Europe/Rome}]}
- {ask: "Thank you!", calls: [{time: Europe/Rome}]}
- {ask: "What time is it in Cairo?", lacks: [In Cairo]}
- {ask: "Weather in Oslo?", calls: [{weather: [Oslo, 1]}], results: {weather: "{\\"days\\": []}"}}
- {ask: "What time is it in Lima?", tools: none, has: ["12:00"]}
- {ask: "Ship order 7", calls: [{shipOrder: 7}]}
- {ask: "Show the list", results: {unknown: "empty"}}
"""
TIME = "getCityTimeFunction"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evaluation")
    (folder / "questions.yaml").write_text(QUESTIONS, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def done(folder: Path) -> subprocess.CompletedProcess[str]:
    """Asked twice with the offline model, written down in both forms."""
    options = ("--demo", "--times", "2", "--at-once", "3", "--at-least", "0.5", "--json", "r.json", "--junit", "r.xml")
    return run("eval", "questions.yaml", *options, cwd=folder)


@pytest.fixture(scope="module")
def document(done: subprocess.CompletedProcess[str], folder: Path) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    return found


def test_each_tool_is_counted_by_what_was_expected_and_what_was_called(document: Mapping[str, Any]) -> None:
    counted = {key: document["tools"][TIME][key] for key in ("expected", "chosen", "arguments")}
    assert counted == {"expected": 10, "chosen": 8, "arguments": 6}
    assert (document["tools"][TIME]["not_called"], document["tools"][TIME]["without_need"]) == (2, 2)
    assert (document["asked"], document["right"], document["share"]) == (16, 8, 0.5)
    assert document["skipped"] == ["Ship order 7", "Show the list"]


def test_each_question_tells_its_calls_and_what_is_wrong_with_them(document: Mapping[str, Any]) -> None:
    faults = {each["ask"]: each["runs"][0]["faults"] for each in document["questions"]}
    assert faults == {
        "What time is it in Tokyo?": [],
        "What time is it in Paris?": [],
        "And in Rome?": [],
        "What time is it in Oslo?": [
            f"other arguments: {TIME}(timeZoneId='Europe/Oslo') instead of (timeZoneId='Europe/Rome')"
        ],
        "Thank you!": [f"not called: {TIME}(timeZoneId='Europe/Rome')"],
        "What time is it in Cairo?": [
            f"without need: {TIME}(timeZoneId='Africa/Cairo')",
            "the answer has 'In Cairo'",
        ],
        "Weather in Oslo?": [],
        "What time is it in Lima?": ["the answer lacks '12:00'"],
    }
    assert document["questions"][2]["runs"][1]["calls"] == [{"name": TIME, "arguments": {"timeZoneId": "Europe/Rome"}}]


def test_the_table_the_share_and_the_wrong_questions_are_printed_and_the_progress_beside_them(
    done: subprocess.CompletedProcess[str],
) -> None:
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert re.fullmatch(rf"{TIME} +10 +8 +6 +2 +2 +0 +[\d.]+", lines[1])
    assert lines[3].startswith("offline offline: 8 of 16 right (0.500), 2 skipped: their tools are not registered; ")
    assert lines[4] == "0/2 What time is it in Oslo?"
    assert lines[5].endswith("instead of (timeZoneId='Europe/Rome') (2 times)")
    progress = done.stderr.splitlines()
    assert {line.split(maxsplit=1)[0] for line in progress} == {f"{number}/16" for number in range(1, 17)}
    assert sum(": Thank you!" in line and "WRONG" in line for line in progress) == 2


def test_a_build_server_reads_a_case_for_each_question(done: subprocess.CompletedProcess[str], folder: Path) -> None:
    suite = ElementTree.parse(folder / "r.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("10", "4", "2")
    failed = {case.get("name"): case.findtext("failure") for case in suite if case.find("failure") is not None}
    assert failed["Thank you!"] == f"not called: {TIME}(timeZoneId='Europe/Rome')"
    assert len(failed) == 4


def test_a_later_result_is_compared_with_an_earlier_one_and_less_than_demanded_gives_1(
    done: subprocess.CompletedProcess[str], folder: Path
) -> None:
    better = [
        {"ask": "What time is it in Oslo?", "calls": [{TIME: "Europe/Oslo"}]},
        {"ask": "What time is it in Tokyo?", "calls": [{TIME: "Asia/Seoul"}]},
    ]
    (folder / "other.json").write_text(json.dumps(better), encoding="utf-8")
    later = run("eval", "other.json", "--baseline", "r.json", "--at-least", "0.95", cwd=folder)
    assert later.returncode == 1
    told = later.stdout.split("since the baseline: ")[1].splitlines()
    assert told[0] == "0.500 -> 0.500 right"
    assert told[1].startswith(f"  {TIME}: chosen right 0.80 -> 1.00, arguments right 0.60 -> 0.50, not called 2 -> 0, ")
    assert told[2:] == [
        "  getWeatherFunction: neither expected nor called any more",
        "  better: 0.00 -> 1.00 What time is it in Oslo?",
        "  WORSE: 1.00 -> 0.00 What time is it in Tokyo?",
    ]


def test_the_example_that_comes_with_the_project_is_all_right_without_a_key(tmp_path: Path) -> None:
    done = run("eval", str(ROOT / "docs" / "eval-example.yaml"), "--demo", "--at-least", "1", cwd=tmp_path)
    assert (done.returncode, "12 of 12 right (1.000)" in done.stdout) == (0, True)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("- {ask: x, call: []}", "q.yaml: entry 1: call: Extra inputs are not permitted"),
        ("- [", "q.yaml: cannot be read: while parsing"),
        ("- {ask: x, calls: [{time: [a, b]}]}", "q.yaml: entry 1: time takes timeZoneId, or its arguments by name"),
    ],
    ids=["unknown key", "no yaml", "too many values"],
)
def test_a_file_that_cannot_be_used_is_told_in_one_line(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "q.yaml").write_text(text, encoding="utf-8")
    done = run("eval", "q.yaml", cwd=tmp_path)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert done.stderr.startswith(f"toolchat: {told}")


def test_without_a_library_for_yaml_the_message_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "yaml.py").write_text("raise ModuleNotFoundError('No module named yaml')", encoding="utf-8")
    (tmp_path / "q.yaml").touch()
    done = run("eval", "q.yaml", cwd=tmp_path)
    told = "q.yaml: to read YAML takes the package pyyaml (pip install pyyaml); a .json file takes none"
    assert (done.returncode, done.stderr) == (2, f"toolchat: {told}\n")


def test_nothing_to_ask_is_no_success(tmp_path: Path) -> None:
    (tmp_path / "q.json").write_text('[{"ask": "x", "tools": "nothing"}]', encoding="utf-8")
    done = run("eval", "q.json", "--at-least", "0", cwd=tmp_path)
    assert (done.returncode, "nothing was asked" in done.stderr) == (1, True)


def test_a_baseline_that_is_something_else_is_told_before_anything_is_asked(tmp_path: Path) -> None:
    (tmp_path / "q.json").write_text("[]", encoding="utf-8")
    done = run("eval", "q.json", "--baseline", "q.json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "toolchat: q.json: is no result that --json wrote\n")
