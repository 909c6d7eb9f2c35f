"""The schema that arguments are checked by before another server is asked: without references, so that it always ends.

References are put in place. One that leads back to where it came from, or too far, stands for anything: what is within
is the server's to check. A check that followed them would go on for as long as a hostile server likes, or, where they
lead in a circle, until the process has no stack left.
"""

from collections.abc import Mapping
from typing import Any

from app.mcp_servers.foreign_text import UnusableSchemaError

__all__ = ["checked_schema"]

_MOST_PARTS = 5000
_DEEPEST = 64
_LISTS = ("anyOf", "oneOf", "allOf")
_ELSEWHERE = ("$ref", "$defs", "definitions")
_ROOT = "#"


def checked_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The same schema without references.

    Raises:
        UnusableSchemaError: a reference leads nowhere, or in a circle on which nothing is looked at.
    """
    checked: dict[str, Any] = _Expansion(schema).of(schema, frozenset(), (_ROOT,), 0)
    return {"type": "object", **checked}


class _Expansion:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._left = _MOST_PARTS

    def of(self, part: Any, above: frozenset[str], here: tuple[str, ...], depth: int) -> Any:
        """One part of the schema.

        Args:
            part: a schema.
            above: the references that have led to it.
            here: those of them that lead to the very same value.
            depth: how far down it is.
        """
        self._left -= 1
        if not isinstance(part, Mapping) or self._left < 0 or depth > _DEEPEST:
            return {}
        kept = {key: self._kept(key, value, above, here, depth + 1) for key, value in part.items() if _stays(key)}
        if "$ref" not in part:
            return kept
        target = self._target(str(part["$ref"]), above, here, depth + 1)
        return {**kept, "allOf": [target, *kept.get("allOf", ())]}

    def _kept(self, key: str, value: Any, above: frozenset[str], here: tuple[str, ...], depth: int) -> Any:
        if key in _LISTS and isinstance(value, list):
            return [self.of(each, above, here, depth) for each in value]
        if key == "prefixItems" and isinstance(value, list):
            return [self.of(each, above, (), depth) for each in value]
        if key == "properties" and isinstance(value, Mapping):
            return {name: self.of(each, above, (), depth) for name, each in value.items()}
        if key in ("items", "additionalProperties") and isinstance(value, Mapping):
            return self.of(value, above, (), depth)
        return value

    def _target(self, reference: str, above: frozenset[str], here: tuple[str, ...], depth: int) -> Any:
        if reference in here:
            raise UnusableSchemaError("its references lead in a circle")
        target = self._resolved(reference)
        return {} if reference in above else self.of(target, above | {reference}, (*here, reference), depth)

    def _resolved(self, reference: str) -> Any:
        target: Any = self._root
        if not reference.startswith(_ROOT):
            raise UnusableSchemaError("a reference leads out of its schema")
        for step in reference.removeprefix(_ROOT).split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(target, Mapping) or name not in target:
                raise UnusableSchemaError("a reference in its schema leads nowhere")
            target = target[name]
        return target


def _stays(key: str) -> bool:
    return key not in _ELSEWHERE
