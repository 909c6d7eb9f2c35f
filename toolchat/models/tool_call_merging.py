"""Merge the fragments of streamed tool calls; other modules import it from ``merging``."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from uuid import uuid4

from pydantic_core import from_json, to_json

from toolchat.messages import ToolCall

_KNOWN_CALL_KEYS = frozenset({"id", "type", "index", "function"})
_KNOWN_FUNCTION_KEYS = frozenset({"name", "arguments"})
_MAX_CHECKS = 16
_MAX_INDEX_DIGITS = 9


def is_json_object(text: str) -> bool:
    """Whether a text is one complete JSON object."""
    try:
        return isinstance(from_json(text, allow_inf_nan=False), dict)
    except ValueError:
        return False


def text_in(fields: Mapping[str, Any], key: str) -> str:
    """The text at a key; empty if there is none."""
    return text if isinstance(text := fields.get(key), str) else ""


def objects_in(fields: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """The objects of the list at a key."""
    values = fields.get(key)
    return [each for each in values if isinstance(each, dict)] if isinstance(values, list) else []


class ToolCallMerger:
    """Merges the fragments of tool calls; a complete message is a stream of one piece.

    A fragment belongs to the newest call with its ``index``; without an index to the call with its ``id``; without both
    to the call of the previous fragment. An index that comes late counts the calls without one. It starts a new call
    nevertheless if it has another id, if a second JSON object starts after a complete one, or if it has another name
    after empty or complete arguments. The first name wins; argument texts are appended and never parsed in part.

    While the arguments are incomplete, a new id without a name, or a new index with the known id or with neither id
    nor name, continues the call. A call with the name and the arguments of an earlier one repeats it if it has its id,
    or its index and not an id of its own. Models do make equal calls: with different ids, or as entries of one list
    without ids.

    The rules follow recorded streams of Ollama, vLLM, DashScope, GLM, MiniMax and the gateways of Gemini and LiteLLM.
    """

    def __init__(self) -> None:
        self._slots: list[_Slot] = []
        self._by_index: dict[int, _Slot] = {}
        self._by_id: dict[tuple[int | None, str], _Slot] = {}
        self._last: _Slot | None = None

    def add(self, fragments: object) -> None:
        """Add the ``tool_calls`` of one delta or of a complete message; anything else is ignored."""
        touched: set[_Slot] = set()
        for value in fragments if isinstance(fragments, (list, tuple)) else (fragments,):
            if isinstance(value, dict):
                self._add_one(_read_fragment(value), touched)

    def finish(self) -> tuple[ToolCall, ...]:
        """Return the calls in the order in which they started, with unique ids; missing ids are generated."""
        used: set[str] = set()
        calls = []
        for slot in self._without_repetitions():
            # Results are matched to calls by their ids, which some servers leave out or use twice.
            call_id = slot.id if slot.id and slot.id not in used else f"call_{uuid4().hex}"
            used.add(call_id)
            calls.append(ToolCall(call_id, slot.name, slot.text, slot.extra))
        return tuple(calls)

    def _without_repetitions(self) -> "list[_Slot]":
        """The calls, each once: a repetition may be cut like any call, so only the end shows that it is one."""
        for slot in self._slots:
            slot.seal()
        if len(self._slots) < 2:
            return self._slots
        kept: list[_Slot] = []
        labelled: dict[str | int | None, _Slot] = {}
        for slot in self._slots:
            with suppress(ValueError):
                slot.value = from_json(slot.text)
            candidates = labelled.get(slot.id), labelled.get(slot.index), kept[-1] if kept and not slot.name else None
            call = next((each for each in candidates if each and slot.repeats(each)), slot)
            if call is not slot:
                call.id = call.id or slot.id
                call.extra.update(slot.extra)
            else:
                kept.append(slot)
            labelled |= {label: call for label in (slot.id, slot.index) if label not in ("", None)}
        return kept

    def _add_one(self, fragment: "_Slot", touched: "set[_Slot]") -> None:
        slot = self._find(fragment) if self._slots else None
        again = slot in touched
        if slot is None or _opens_new_call(slot, fragment, again=again):
            if not (fragment.id or fragment.name or fragment.pieces):
                return
            slot = fragment
            slot.is_listed = again and fragment.index is None
            self._slots.append(slot)
            if slot.index is not None:
                self._by_index[slot.index] = slot
        else:
            slot.fill(fragment)
            # Some servers number a call only from its second fragment on, or each fragment anew.
            if fragment.index is not None:
                slot.index = fragment.index if slot.index is None else slot.index
                self._by_index.setdefault(fragment.index, slot)
        if slot.id:
            self._by_id[slot.index, slot.id] = self._by_id[None, slot.id] = slot
        self._last = slot
        touched.add(slot)

    def _find(self, fragment: "_Slot") -> "_Slot | None":
        # The id comes first: servers that send one index for all calls still tell them apart by it.
        known = self._by_id.get((fragment.index, fragment.id)) if fragment.id else None
        if known:
            return known
        if fragment.index is not None:
            return self._by_index.get(fragment.index) or self._numbered_anew(fragment, fragment.index)
        if not fragment.id:
            return self._last
        # An id without a name completes the call that started without an id.
        is_open = self._last is not None and not (self._last.id and self._last.is_complete)
        return self._last if is_open and not fragment.name else None

    def _numbered_anew(self, fragment: "_Slot", index: int) -> "_Slot | None":
        """Find the call that a fragment with an index continues if the call started without one, or with another."""
        same_id = self._by_id.get((None, fragment.id)) if fragment.id else None
        for slot in (same_id, *self._slots[index : index + 1], self._last):
            if slot and slot.index is None and fragment.id in ("", slot.id) and fragment.name in ("", slot.name):
                return slot
        slot = same_id if fragment.id or fragment.name else self._last
        return slot if slot and fragment.name in ("", slot.name) and not slot.is_complete else None


@dataclass(slots=True, eq=False)
class _Slot:
    """A call under construction, or a fragment of one."""

    index: int | None
    id: str
    name: str
    pieces: list[str]
    extra: dict[str, Any]
    checks: int = 0
    is_listed: bool = False
    """Whether it is an entry of its own in a list without indexes, and so no repetition unless it has the same id."""
    text: str = ""
    """The arguments, once the call is sealed."""
    value: object = None
    """What the text is as JSON, if there are several calls."""

    def fill(self, fragment: "_Slot") -> None:
        self.id = self.id or fragment.id
        self.name = self.name or fragment.name
        self.extra.update(fragment.extra)
        # Appended, the real arguments would make two objects of one.
        if self.is_placeholder and fragment.begins_object:
            self.pieces.clear()
        self.pieces += fragment.pieces

    def seal(self) -> None:
        self.text = "".join(self.pieces)
        if len(self.pieces) > 1 and not is_json_object(self.text):
            is_growing = all(later.startswith(earlier) for earlier, later in pairwise(self.pieces))
            if is_growing and is_json_object(self.pieces[-1]):  # snapshots
                self.text = self.pieces[-1]

    def repeats(self, call: "_Slot") -> bool:
        """Whether this is an earlier sealed call, or its beginning, again."""
        has_own_id = self.name and self.id and call.id and self.id != call.id
        is_own_entry = self.is_listed and not (self.id and self.id == call.id)
        if is_own_entry or has_own_id or self.name not in ("", call.name):
            return False
        return call.text.startswith(self.text) or (self.value is not None and self.value == call.value)

    @property
    def begins_object(self) -> bool:
        return bool(self.pieces) and self.pieces[0].lstrip().startswith("{")

    @property
    def is_placeholder(self) -> bool:
        """Whether the arguments are the ``{}`` that some gateways send before the real ones."""
        return len(self.pieces) == 1 and self.pieces[0].strip() == "{}"

    @property
    def is_complete(self) -> bool:
        """Whether the arguments are a complete object; parsed a bounded number of times to stay linear in time."""
        if not self.pieces or not self.pieces[-1].rstrip().endswith("}") or self.checks >= _MAX_CHECKS:
            return False
        self.checks += 1
        return is_json_object("".join(self.pieces))


def _opens_new_call(slot: _Slot, fragment: _Slot, *, again: bool) -> bool:
    """Whether a fragment for ``slot`` starts another call; ``again``: the same list already had one for it."""
    if fragment.id and slot.id and fragment.id != slot.id:
        return bool(fragment.name) or (slot.is_complete and not slot.is_placeholder)
    if again and fragment.name and (fragment.index is None or fragment.index != slot.index):
        return True  # entries of one list are different calls, unless their index is the same
    if fragment.name and slot.name and fragment.name != slot.name and not fragment.id:
        return not slot.pieces or slot.is_complete
    if not fragment.begins_object or not slot.is_complete:
        return False
    return not (slot.is_placeholder and not fragment.name)


def _read_fragment(value: Mapping[str, Any]) -> _Slot:
    index, function = value.get("index"), value.get("function")
    if isinstance(index, str) and index.isdecimal() and len(index) <= _MAX_INDEX_DIGITS:
        index = int(index)  # some gateways write it as text
    if not isinstance(function, dict):
        function = {}
    extra = _unknown_fields(_KNOWN_CALL_KEYS, value)
    if inner := _unknown_fields(_KNOWN_FUNCTION_KEYS, function):
        extra["function"] = inner
    arguments = function.get("arguments")
    if arguments is not None and not isinstance(arguments, str):
        arguments = to_json(arguments).decode()
    index = index if type(index) is int else None
    return _Slot(index, text_in(value, "id"), text_in(function, "name"), [arguments] if arguments else [], extra)


def _unknown_fields(known: frozenset[str], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Select the fields that are specific to a server, such as a thought signature."""
    if known.issuperset(fields):
        return {}
    return {key: item for key, item in fields.items() if key not in known and item is not None}
