"""What has changed since an earlier result."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from toolchat.errors import ConfigurationError

__all__ = ["Baseline", "changes", "read_baseline"]

_SHARES = {"chosen": "chosen right", "arguments": "arguments right"}
_COUNTS = {"not_called": "not called", "without_need": "without need", "tokens": "tokens", "seconds": "seconds"}


class _Question(BaseModel):
    ask: str
    before: list[str]
    tools: str | list[str]
    right: int
    runs: list[Any] = Field(min_length=1)

    @property
    def share(self) -> float:
        return self.right / len(self.runs)

    @property
    def key(self) -> str:
        return repr((self.ask, self.before, self.tools))


class Baseline(BaseModel):
    """Of the document that ``--json`` writes, what a later result is compared with."""

    share: float
    tools: dict[str, dict[str, float]]
    questions: list[_Question]


def read_baseline(file: Path) -> Baseline:
    """Read what ``--json`` wrote.

    Raises:
        ConfigurationError: it cannot be read, or is something else.
    """
    try:
        return Baseline.model_validate_json(file.read_bytes())
    except OSError as error:
        raise ConfigurationError(f"{file}: cannot be read: {error.strerror}") from None
    except ValidationError:
        raise ConfigurationError(f"{file}: is no result that --json wrote") from None


def changes(before: Baseline, document: str) -> str:
    """The differences between an earlier document and the present one, in lines."""
    after = Baseline.model_validate_json(document)
    lines = [f"since the baseline: {before.share:.3f} -> {after.share:.3f} right"]
    for name in sorted(before.tools.keys() | after.tools.keys()):
        old, new = before.tools.get(name), after.tools.get(name)
        if old is None or new is None:
            lines.append(f"  {name}: {'new' if old is None else 'neither expected nor called any more'}")
        elif told := list(_differences(old, new)):
            lines.append(f"  {name}: {', '.join(told)}")
    return "\n".join([*lines, *_questions(before, after)])


def _differences(old: dict[str, float], new: dict[str, float]) -> Iterator[str]:
    for key, told in _SHARES.items():
        shares = [each[key] / each["expected"] if each.get("expected") else 0 for each in (old, new)]
        if shares[0] != shares[1]:
            yield f"{told} {shares[0]:.2f} -> {shares[1]:.2f}"
    for key, told in _COUNTS.items():
        if old.get(key) != new[key]:
            yield f"{told} {old.get(key, 0):g} -> {new[key]:g}"


def _questions(before: Baseline, after: Baseline) -> Iterator[str]:
    shares = {each.key: each.share for each in before.questions}
    for each in after.questions:
        was = shares.get(each.key, each.share)
        if was != each.share:
            yield f"  {'better' if each.share > was else 'WORSE'}: {was:.2f} -> {each.share:.2f} {each.ask}"
