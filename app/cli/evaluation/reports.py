"""The result for people, for a later comparison, and for a build server."""

import re
import statistics
from collections.abc import Iterable, Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from pydantic_core import to_json

from app.cli.evaluation.scores import AskedQuestion, Result

__all__ = ["as_document", "as_junit", "as_table"]

_HEADS = ("tool", "expected", "chosen", "arguments", "not called", "without need", "tokens", "seconds")
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def as_table(result: Result) -> str:
    """The figures of each tool, of all, and the questions that went wrong."""
    records = [(name, list(score.to_dict().values())) for name, score in result.tools.items()]
    rows = [(name, *counts, f"{seconds:.2f}") for name, (*counts, seconds) in records]
    lines = [_columns([_HEADS, *rows])] if rows else []
    lines += [_summary(result), *(line for asked in result.questions for line in _wrong(asked))]
    return "\n".join(lines)


def _columns(rows: Sequence[Sequence[object]]) -> str:
    """Rows below each other: the first column to the left, the others to the right."""
    texts = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    return "\n".join("  ".join([first.ljust(widths[0]), *map(str.rjust, rest, widths[1:])]) for first, *rest in texts)


def _summary(result: Result) -> str:
    skipped = f", {len(result.skipped)} skipped: their tools are not registered" if result.skipped else ""
    told = f"{result.right} of {result.asked} right ({result.share:.3f}){skipped}"
    if result.asked:
        tokens = sum(run.answer.tokens for run in result.runs)
        told += f"; {tokens} tokens, {statistics.median(run.answer.seconds for run in result.runs):.2f} s in the median"
    return f"{result.provider} {result.model}: {told}"


def _wrong(asked: AskedQuestion) -> Iterable[str]:
    faults = [fault for run in asked.runs for fault in run.faults]
    if faults:
        right = sum(run.is_right for run in asked.runs)
        yield f"{right}/{len(asked.runs)} {asked.question.entry.ask}"
        for fault in dict.fromkeys(faults):
            times = f" ({faults.count(fault)} times)" if faults.count(fault) > 1 else ""
            yield f"    {fault}{times}"


def as_document(result: Result) -> str:
    """The whole result as JSON; what ``--baseline`` reads."""
    return to_json(
        {
            "model": {"provider": result.provider, "name": result.model},
            "times": result.times,
            "asked": result.asked,
            "right": result.right,
            "share": round(result.share, 4),
            "skipped": result.skipped,
            "tools": {name: score.to_dict() for name, score in result.tools.items()},
            "questions": [_record(asked) for asked in result.questions],
        },
        indent=2,
    ).decode()


def _record(asked: AskedQuestion) -> dict[str, Any]:
    entry = asked.question.entry
    runs = [
        {
            "right": run.is_right,
            "faults": run.faults,
            "calls": [{"name": name, "arguments": given} for name, given in run.answer.calls],
            "answer": run.answer.text,
            "tokens": run.answer.tokens,
            "seconds": run.answer.seconds,
        }
        for run in asked.runs
    ]
    right = sum(run.is_right for run in asked.runs)
    return {"ask": entry.ask, "before": entry.before, "tools": entry.tools, "right": right, "runs": runs}


def as_junit(result: Result, name: str) -> str:
    """The result as JUnit's XML: a case for each question, which fails where any of its runs is wrong."""
    cases = [_case(asked, name) for asked in result.questions]
    cases += [
        f"  <testcase classname={_quoted(name)} name={_quoted(ask)}><skipped/></testcase>" for ask in result.skipped
    ]
    failed = sum(not all(run.is_right for run in asked.runs) for asked in result.questions)
    counted = f'tests="{len(cases)}" failures="{failed}" skipped="{len(result.skipped)}"'
    head = f'<?xml version="1.0" encoding="utf-8"?>\n<testsuite name={_quoted(name)} {counted}>'
    return "\n".join([head, *cases, "</testsuite>", ""])


def _case(asked: AskedQuestion, name: str) -> str:
    seconds = sum(run.answer.seconds for run in asked.runs)
    faults = "\n".join(dict.fromkeys(fault for run in asked.runs for fault in run.faults))
    right = sum(run.is_right for run in asked.runs)
    message = _quoted(f"{right} of {len(asked.runs)} right")
    failure = f"<failure message={message}>{escape(_NOT_IN_XML.sub('?', faults))}</failure>" if faults else ""
    case = f"classname={_quoted(name)} name={_quoted(asked.question.entry.ask)}"
    return f'  <testcase {case} time="{seconds:.3f}">{failure}</testcase>'


def _quoted(text: str) -> str:
    return quoteattr(_NOT_IN_XML.sub("?", text))
