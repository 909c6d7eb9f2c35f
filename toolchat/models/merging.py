"""Put the pieces of a streamed turn together, whatever dialect the provider speaks.

A whole message goes through the same classes: it is a stream of one piece.
"""

from collections.abc import Mapping

from toolchat.messages import Usage
from toolchat.models.tool_call_merging import ToolCallMerger, is_json_object

__all__ = ["SnapshotMerger", "TextMerger", "ToolCallMerger", "is_json_object", "usage_from"]

_OPEN, _CLOSE = "<think>", "</think>"
_CERTAIN = 8
_PLAUSIBLE = 2
_MAX_OPEN_PIECES = 16
_MAX_OPEN_CHARACTERS = 16 * 1024
_MAX_HELD_BLANKS = 1024
_MAX_TOKENS = 10**12


class SnapshotMerger:
    """Turns pieces into new text, also where each piece repeats all the text before it (MiniMax, some gateways).

    As long as every piece begins with the one before it there are two readings: pieces to append, or snapshots.
    Meanwhile only what both readings have in common is let through, so the first piece is never delayed. The first
    piece that does not begin with its predecessor proves pieces to append; for nearly all streams that is the second.
    Snapshots are proved when the repeated beginnings add up to eight different characters. A repetition such as
    "哈", "哈哈" proves nothing, because a model writes that piece by piece as well. At the end of a stream two
    characters are enough to prefer snapshots; after sixteen undecided pieces they are pieces to append, and sooner
    where they are so long that memory is filled by what is held back.
    """

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._evidence = 0
        self._shown = 0
        self._mode = "open"

    def add(self, piece: str) -> str:
        """Take a piece and give the text that is certainly new."""
        if not piece or self._mode == "append":
            return piece
        if not self._pieces:
            self._pieces.append(piece)
            self._shown = len(piece)
            return piece
        if self._mode == "snapshot":
            return self._grow(piece)
        if not piece.startswith(self._pieces[-1]):
            self._pieces.append(piece)
            return self._decide("append")
        self._evidence += _repetition(self._pieces[-1], piece)
        self._pieces.append(piece)
        if self._evidence >= _CERTAIN:
            return self._decide("snapshot")
        return self._decide("append") if self._is_long() else self._show_common()

    def finish(self) -> str:
        """Decide, and give what was still held back."""
        if self._mode != "open" or len(self._pieces) < 2:
            return ""
        return self._decide("snapshot" if self._evidence >= _PLAUSIBLE else "append")

    def _is_long(self) -> bool:
        return len(self._pieces) > _MAX_OPEN_PIECES or sum(map(len, self._pieces)) > _MAX_OPEN_CHARACTERS

    def _show_common(self) -> str:
        return self._show(_common_prefix("".join(self._pieces), self._pieces[-1]))

    def _decide(self, mode: str) -> str:
        self._mode = mode
        text = "".join(self._pieces if mode == "append" else self._pieces[-1:])
        self._pieces = [text] if mode == "snapshot" else []  # pieces to append are compared with nothing
        return self._show(text)

    def _show(self, text: str) -> str:
        new = text[self._shown :]
        self._shown = max(self._shown, len(text))
        return new

    def _grow(self, piece: str) -> str:
        text = self._pieces[0]
        if piece.startswith(text):
            self._pieces = [piece]
            return piece[len(text) :]
        if text.startswith(piece):
            return ""
        self._mode = "append"
        return piece


class TextMerger:
    """Turns the ``content`` of deltas into the text for the user: without repetitions, without ``<think>`` blocks.

    A block is taken for reasoning only where it opens the answer; one that is never closed swallows the rest. Held
    back are: what :class:`SnapshotMerger` holds, blanks before the first word, and a beginning that may become the tag.
    """

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._snapshots = SnapshotMerger()
        self._held = ""
        self._state = "opening"
        self._after_block = False

    @property
    def text(self) -> str:
        """All the text for the user so far."""
        return "".join(self._parts)

    def add(self, content: object) -> str:
        """Take the content of one delta or message and give the text to show now, which may be none."""
        return self._take(self._snapshots.add(_content_text(content)))

    def finish(self) -> str:
        """Give what was still held back; blanks alone are no text."""
        late = self._take(self._snapshots.finish())
        if self._state == "answer":
            return late
        rest = self._held if self._state == "opening" and self._held.strip() else ""
        self._state, self._held = "answer", ""
        return late + self._take(rest.lstrip() if self._after_block else rest)

    def _take(self, raw: str) -> str:
        if not raw:
            return ""
        new = raw if self._state == "answer" else self._filter(raw)
        self._parts.append(new)
        return new

    def _filter(self, raw: str) -> str:
        self._held += raw
        while self._state != "answer":
            if self._state == "opening":
                if not self._leave_opening():
                    return ""
            elif not self._leave_block():
                return ""
        new, self._held = self._held, ""
        return new

    def _leave_opening(self) -> bool:
        start = self._held.lstrip()
        if start.startswith(_OPEN):
            self._state, self._held = "block", start[len(_OPEN) :]
        elif _OPEN.startswith(start) and len(self._held) <= _MAX_HELD_BLANKS:
            return False
        else:
            self._state, self._held = "answer", start if self._after_block else self._held
        return True

    def _leave_block(self) -> bool:
        _, close, rest = self._held.partition(_CLOSE)
        if not close:
            self._held = self._held[-len(_CLOSE) + 1 :]
            return False
        self._state, self._held, self._after_block = "opening", rest, True
        return True


def usage_from(value: object) -> Usage | None:
    """Read the tokens of a ``usage`` object in OpenAI's or DashScope's spelling; ``None`` when it tells none."""
    if not isinstance(value, dict):
        return None
    given = _tokens(value, "prompt_tokens", "input_tokens")
    written = _tokens(value, "completion_tokens", "output_tokens")
    if given is None and written is None:
        return None
    cached = reasoning = None
    for details in value.values():  # their names differ: prompt_tokens_details, input_tokens_details, …
        if isinstance(details, dict):
            cached = cached or _tokens(details, "cached_tokens")
            reasoning = reasoning or _tokens(details, "reasoning_tokens")
    return Usage(given or 0, written or 0, cached or 0, reasoning or 0)


def _tokens(usage: Mapping[str, object], *names: str) -> int | None:
    for name in names:
        count = usage.get(name)
        if type(count) is int and 0 <= count <= _MAX_TOKENS:  # no bool
            return count
    return None


def _content_text(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "".join(_part_text(part) for part in content)


def _part_text(part: object) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict) or part.get("type", "text") not in ("text", "output_text"):
        return ""
    text = part.get("text")
    return text if isinstance(text, str) else ""


def _repetition(earlier: str, later: str) -> int:
    """How strongly it points to snapshots that ``later`` begins with ``earlier``; nothing if it only repeats it."""
    rest = later[len(earlier) :]
    return 0 if rest.startswith(earlier) or earlier.startswith(rest) else len(set(earlier))


def _common_prefix(one: str, other: str) -> str:
    if other.startswith(one):
        return one
    for position, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return one[:position]
    return min(one, other, key=len)
