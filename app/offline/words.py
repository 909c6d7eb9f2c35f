"""What a text is about: concepts of the lexicon, and its other words."""

import re
from collections.abc import Iterator
from functools import cache

from app.folding import folded
from app.offline import lexicon

__all__ = ["CONCEPT", "concepts_in", "folded_words", "rows", "terms", "words_of"]

CONCEPT = "concept:"
_LONGEST = 2000
_STOP = frozenset(lexicon.STOP_WORDS.split())
_STOP_PAIRS = frozenset(lexicon.STOP_PAIRS.split())
_PIECE = re.compile(r"[a-z]+|[㐀-鿿]+")
_LATIN = re.compile(r"[a-z]+")
# Where one word of an identifier ends and the next begins.
_SEAM = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^A-Za-z0-9㐀-鿿]+")


def terms(text: str) -> dict[str, int]:
    """What a folded text is about, each with its first position: concepts, other words, other pairs of characters."""
    found: dict[str, int] = {}
    for concept, position in concepts_in(text):
        found.setdefault(CONCEPT + concept, position)
    for piece in _PIECE.finditer(text):
        for term, position in _plain_terms(piece[0]):
            found.setdefault(term, piece.start() + position)
    return found


def concepts_in(text: str) -> Iterator[tuple[str, int]]:
    """The concepts that a folded text names, with where it does, Latin words first."""
    by_word, chinese = _concept_words()
    for word in _LATIN.finditer(text):
        concept = by_word.get(word[0]) or by_word.get(_stem(word[0]))
        if concept is not None:
            yield concept, word.start()
    for match in chinese.finditer(text):
        yield by_word[match[0]], match.start()
    phrase = lexicon.TRANSLATE_VERB.search(text)
    if phrase is not None:
        yield "translate", phrase.start()


def words_of(name: str) -> str:
    """An identifier in words: ``getCityTime`` and ``get_city_time`` become ``get city time``."""
    return folded(" ".join(part for part in _SEAM.split(name) if part))


def folded_words(text: str) -> str:
    """A text, identifiers in it in words, folded; bounded."""
    return words_of(text[:_LONGEST])


def rows(table: str) -> Iterator[tuple[list[str], list[str]]]:
    """Read entries of ``words: other words``."""
    for entry in table.split(";"):
        left, _, right = entry.partition(":")
        yield left.split(), right.split()


def _plain_terms(piece: str) -> Iterator[tuple[str, int]]:
    if not piece[0].isascii():
        pairs = ((piece[at : at + 2], at) for at in range(len(piece) - 1))
        yield from ((f"pair:{pair}", at) for pair, at in pairs if pair not in _STOP_PAIRS)
        return
    stem, known = _stem(piece), _concept_words()[0]
    if len(piece) > 1 and not {piece, stem} & _STOP and not (piece in known or stem in known):
        yield f"word:{stem}", 0


def _stem(word: str) -> str:
    for ending in ("ing", "ies", "es", "ed", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            return word[: -len(ending)] + ("y" if ending == "ies" else "")
    return word


@cache
def _concept_words() -> tuple[dict[str, str], re.Pattern[str]]:
    by_word = {word: concept for (concept,), words in rows(lexicon.CONCEPTS) for word in words}
    chinese = sorted((word for word in by_word if not word.isascii()), key=len, reverse=True)
    return by_word, re.compile("|".join(chinese))
