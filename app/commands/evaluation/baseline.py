"""What has changed since an earlier result."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from app.errors import ConfigurationError

__all__ = ["changes", "read_baseline"]

_SHARES = {"chosen": "chosen right", "arguments": "arguments right"}
_COUNTS = {"not_called": "not called", "without_need": "without need", "tokens": "tokens", "seconds": "seconds"}


def read_baseline(file: Path) -> dict[str, Any]:
    """Read what ``--json`` wrote.

    Raises:
        ConfigurationError: it cannot be read, or is something else.
    """
    try:
        document = from_json(file.read_bytes())
    except OSError as error:
        raise ConfigurationError(f"{file}: cannot be read: {error.strerror}") from None
    except ValueError:
        document = None
    if not isinstance(document, dict) or not {"share", "tools", "questions"} <= document.keys():
        raise ConfigurationError(f"{file}: is no result that --json wrote")
    return document


def changes(before: dict[str, Any], text: str) -> str:
    """The differences between an earlier document and the present one, in lines."""
    after = from_json(text)
    lines = [f"since the baseline: {before['share']:.3f} -> {after['share']:.3f} right"]
    for name in sorted(before["tools"].keys() | after["tools"].keys()):
        old, new = before["tools"].get(name), after["tools"].get(name)
        if old is None or new is None:
            lines.append(f"  {name}: {'new' if old is None else 'neither expected nor called any more'}")
        elif told := list(_differences(old, new)):
            lines.append(f"  {name}: {', '.join(told)}")
    return "\n".join([*lines, *_questions(before, after)])


def _differences(old: dict[str, float], new: dict[str, float]) -> Iterator[str]:
    for key, told in _SHARES.items():
        shares = [each[key] / each["expected"] if each["expected"] else 0 for each in (old, new)]
        if shares[0] != shares[1]:
            yield f"{told} {shares[0]:.2f} -> {shares[1]:.2f}"
    for key, told in _COUNTS.items():
        if old[key] != new[key]:
            yield f"{told} {old[key]:g} -> {new[key]:g}"


def _questions(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    shares = {_key(each): each["right"] / len(each["runs"]) for each in before["questions"]}
    for each in after["questions"]:
        share, was = each["right"] / len(each["runs"]), shares.get(_key(each))
        if was is not None and was != share:
            yield f"  {'better' if share > was else 'WORSE'}: {was:.2f} -> {share:.2f} {each['ask']}"


def _key(question: dict[str, Any]) -> str:
    return repr([question[name] for name in ("ask", "before", "tools")])
