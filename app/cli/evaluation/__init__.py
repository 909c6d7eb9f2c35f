"""``python -m app eval``: measure how often the model calls the right tools, from a file of questions."""

import asyncio
from functools import partial
from pathlib import Path

from app.cli.dialogue import ANSWERED, FAILED
from app.cli.evaluation.asking import Asking
from app.cli.evaluation.baseline import changes, read_baseline
from app.cli.evaluation.questions import read_questions
from app.cli.evaluation.reports import as_document, as_junit, as_table
from app.cli.evaluation.scores import AskedQuestion, Result, Run
from app.cli.opened_service import OpenedService, opened_service
from app.cli.terminal import print_error, print_result, status
from toolchat.errors import ConfigurationError

__all__ = ["evaluate"]


def evaluate(
    file: Path,
    *,
    times: int,
    at_once: int,
    baseline: Path | None,
    json: Path | None,
    junit: Path | None,
    at_least: float | None,
    demo: bool,
) -> int:
    """Ask every question of a file and print how the tools were called, tool by tool.

    Args:
        file: the questions; ``docs/command-line.md`` tells their form.
        times: how often each is asked.
        at_once: how many are asked side by side.
        baseline: a document that ``json`` wrote before; what has changed since is printed.
        json: where the result is written as a document.
        junit: where it is written as JUnit's XML.
        at_least: the share of right answers that is demanded.
        demo: let a sandbox play the tools' upstreams.

    Returns:
        0, or 1 where less than ``at_least`` is right, or nothing could be asked.

    Raises:
        ConfigurationError: the service cannot start as it is set up, or a file cannot be read or written.
    """
    entries, before = read_questions(file), read_baseline(baseline) if baseline else None
    with opened_service(demo=demo) as service:
        asking = Asking(service, entries, file)
        result = service.run(partial(_result, asking, service, times, at_once))
    document = as_document(result)
    print_result(as_table(result))
    if before:
        print_result(changes(before, document))
    if json:
        _write(json, document)
    if junit:
        _write(junit, as_junit(result, file.stem))
    if not result.asked:
        print_error("nothing was asked: the file is empty, or its tools are not registered here")
        return FAILED
    return FAILED if at_least is not None and result.share < at_least else ANSWERED


async def _result(asking: Asking, service: OpenedService, times: int, at_once: int) -> Result:
    """Ask everything; tells at the terminal how far it is."""
    gate, total, ended = asyncio.Semaphore(at_once), times * len(asking.questions), 0

    async def once(number: int) -> Run:
        nonlocal ended
        question = asking.questions[number]
        async with gate:
            run = await asking.ask(question)
        ended += 1
        status(f"{ended}/{total} {'right' if run.is_right else 'WRONG'}: {question.entry.ask}")
        return run

    async with asyncio.TaskGroup() as group:
        running = [[group.create_task(once(number)) for _ in range(times)] for number in range(len(asking.questions))]
    status("")
    model = service.state.chat.model
    asked = [
        AskedQuestion(question, [each.result() for each in runs])
        for question, runs in zip(asking.questions, running, strict=True)
    ]
    return Result(model.provider, model.name, times, asked, asking.skipped)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be written: {error.strerror}") from None
