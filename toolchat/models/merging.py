"""Merge the pieces of a streamed response, in every dialect of the providers.

A complete message goes through the same classes, as a stream of one piece.
"""

import re
from collections.abc import Mapping

from toolchat.messages import Usage

_OPEN, _CLOSE = "<think>", "</think>"
_LONE_CLOSE = re.compile(r"^[ \t]*</think>|</think>[ \t]*$", re.MULTILINE)
_CERTAIN = 8
_PLAUSIBLE = 2
_MAX_OPEN_PIECES = 16
_MAX_OPEN_CHARACTERS = 16 * 1024
_MAX_HELD_BLANKS = 1024
_MAX_TOKENS = 10**12


class SnapshotMerger:
    """Extracts the new text of each piece, even if each piece repeats all text before it (MiniMax, some gateways).

    A stream consists of deltas, which are appended, or of snapshots, which replace the text. While every piece starts
    with the previous one, both are possible. Until that is decided, only the text that both readings share is emitted,
    so the first piece is never delayed:

    - The first piece that does not start with the previous one proves deltas; usually that is the second piece.
    - Repeated prefixes with eight different characters in total prove snapshots. A repetition such as "哈", "哈哈"
      proves nothing, because a model may also write it as deltas. At the end of the stream two characters are enough.
    - After sixteen undecided pieces, or too many undecided characters to buffer, the stream counts as deltas.
    """

    def __init__(self) -> None:
        self._joined = ""
        self._last = ""
        self._count = 0
        self._evidence = 0
        self._shown = 0
        self.mode = "open"
        """``append`` if the stream has turned out to consist of deltas, ``snapshot``, or ``open``: undecided."""

    def add(self, piece: str) -> str:
        """Add a piece and return the text that is certainly new."""
        if not piece or self.mode == "append":
            return piece
        if self.mode == "snapshot":
            return self._grow(piece)
        earlier, self._last = self._last, piece
        self._joined += piece
        self._count += 1
        if not earlier:
            self._shown = len(piece)
            return piece
        if not piece.startswith(earlier):
            return self._decide("append")
        self._evidence += _repetition(earlier, piece)
        if self._evidence >= _CERTAIN:
            return self._decide("snapshot")
        if self._count > _MAX_OPEN_PIECES or len(self._joined) > _MAX_OPEN_CHARACTERS:
            return self._decide("append")
        pairs = enumerate(zip(self._joined, piece, strict=False))
        return self._show(piece[: next((place for place, (one, other) in pairs if one != other), len(piece))])

    def finish(self) -> str:
        """Decide, and return the text that was held back."""
        if self.mode != "open" or self._count < 2:
            return ""
        return self._decide("snapshot" if self._evidence >= _PLAUSIBLE else "append")

    def _decide(self, mode: str) -> str:
        self.mode = mode
        return self._show(self._joined if mode == "append" else self._last)

    def _show(self, text: str) -> str:
        new = text[self._shown :]
        self._shown = max(self._shown, len(text))
        return new

    def _grow(self, piece: str) -> str:
        text = self._last
        if piece.startswith(text):
            self._last = piece
            return piece[len(text) :]
        # A snapshot shorter than the one before: text that the client has cannot be taken back.
        if text.startswith(piece):
            return ""
        self.mode = "append"
        return piece


class TextMerger:
    """Converts the ``content`` of deltas into the text for the user: without repetitions and ``<think>`` blocks.

    Only blocks at the start of the answer are reasoning; an unclosed block hides the rest of the answer. Some servers
    leave out the opening tag, which their prompt has written: then the closing one, at the end or the beginning of a
    line, counts if nothing before it was shown yet. It holds back what :class:`SnapshotMerger` holds back, whitespace
    before the first word, and a possible prefix of a tag.
    """

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._snapshots = SnapshotMerger()
        self._held = ""
        self._state = "opening"
        self._after_block = False

    @property
    def text(self) -> str:
        """The text for the user so far."""
        return "".join(self._parts)

    def add(self, content: object) -> str:
        """Add the content of one delta or message and return the text to show now, possibly empty."""
        if self._state == "answer" and self._snapshots.mode == "append" and isinstance(content, str):
            self._parts.append(content)  # nothing is held back any more
            return content
        return self._take(self._snapshots.add(_content_text(content)))

    def finish(self) -> str:
        """Return the text that was held back; whitespace alone is not text."""
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
            if not (self._leave_opening() if self._state == "opening" else self._leave_block()):
                return ""
        new, self._held = self._held, ""
        return new

    def _leave_opening(self) -> bool:
        start = self._held.lstrip()
        if start.startswith(_OPEN):
            self._state, self._held = "block", start[len(_OPEN) :]
        elif _CLOSE in start and (lone := _LONE_CLOSE.search(start)) and _OPEN not in start[: lone.start()]:
            self._held, self._after_block = start[lone.end() :], True
        # Blanks, or the beginning of a tag: the next piece decides.
        elif (_OPEN.startswith(start) or _CLOSE.startswith(start)) and len(self._held) <= _MAX_HELD_BLANKS:
            return False
        else:
            self._state, self._held = "answer", start if self._after_block else self._held
        return True

    def _leave_block(self) -> bool:
        _, close, rest = self._held.partition(_CLOSE)
        if not close:
            self._held = self._held[-len(_CLOSE) + 1 :]  # the tag may be split between two pieces
            return False
        self._state, self._held, self._after_block = "opening", rest, True
        return True


def usage_from(value: object) -> Usage | None:
    """Read a ``usage`` object with the field names of OpenAI or DashScope; ``None`` if it has no token counts."""
    if not isinstance(value, dict):
        return None
    prompt = _tokens(value, "prompt_tokens", "input_tokens")
    completion = _tokens(value, "completion_tokens", "output_tokens")
    if prompt is None and completion is None:
        return None
    cached = reasoning = None
    for details in value.values():  # the names differ: prompt_tokens_details, input_tokens_details, …
        if isinstance(details, dict):
            cached = cached or _tokens(details, "cached_tokens")
            reasoning = reasoning or _tokens(details, "reasoning_tokens")
    return Usage(prompt or 0, completion or 0, cached or 0, reasoning or 0)


def _tokens(usage: Mapping[str, object], *names: str) -> int | None:
    for name in names:
        count = usage.get(name)
        if type(count) is int and 0 <= count <= _MAX_TOKENS:  # bool is a subclass of int
            return count
    return None


def _content_text(content: object) -> str:
    if isinstance(content, list):
        return "".join(map(_part_text, content))
    return content if isinstance(content, str) else ""


def _part_text(part: object) -> str:
    if isinstance(part, dict) and part.get("type", "text") in ("text", "output_text"):
        part = part.get("text")
    return part if isinstance(part, str) else ""


def _repetition(earlier: str, later: str) -> int:
    """Rate the evidence for snapshots if ``later`` starts with ``earlier``; none if it only repeats it."""
    rest = later[len(earlier) :]
    return 0 if rest.startswith(earlier) or earlier.startswith(rest) else len(set(earlier))
