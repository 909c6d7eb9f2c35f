"""The words that the offline model knows: concepts of any tool, words without a meaning, and its own sentences."""

import re
import tomllib
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files

_TABLES, _SENTENCES = (
    tomllib.loads(files(__package__).joinpath(name).read_text("utf-8")) for name in ("words.toml", "sentences.toml")
)
ACTIONS = frozenset(_TABLES["actions"])
"""What many tools do: such a word alone does not say which one is meant."""
FUNCTION_WORDS = frozenset(_TABLES["function_words"])
"""Words that may stand in any question or description and say nothing about the tool."""
SYNONYMS: dict[str, list[str]] = _TABLES["synonyms"]
"""How the values of an enumeration are said in other words."""
UNITS = [re.compile(rf"(?<![a-z])(?:{'|'.join(names)})s?(?![a-z])") for names in _TABLES["units"]]
"""The form of each unit of measurement."""
HAN_WORDS = [word for words in _TABLES["concepts"].values() for word in words if not word.isascii()]


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """An English word without its ending: ``orders`` is ``order``, ``converting`` is ``convert``."""
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("es", "e"), ("s", "")):
        if word.isascii() and word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word.removesuffix(ending) + instead
            break
    return word.removesuffix("e") if len(word) > 3 and word.isascii() else word


_CONCEPTS_OF: dict[str, frozenset[str]] = {}
for _name, _words in _TABLES["concepts"].items():
    for _key in map(stem, (_name, *_words)):
        _CONCEPTS_OF[_key] = _CONCEPTS_OF.get(_key, frozenset()) | {f"#{_name}"}


def terms_of(word: str) -> frozenset[str]:
    """What a word can be matched by: its stem and its concepts, each behind a ``#``."""
    return _CONCEPTS_OF.get(stem(word), frozenset()) | {stem(word)}


def say(key: str, chinese: bool, **values: object) -> str:
    """A sentence in one of the two languages."""
    text: str = _SENTENCES[key][not chinese]
    return text.format(**values)


def listed(items: Iterable[object], chinese: bool, last: str = "and") -> str:
    """Items in a row, each in quotes."""
    return say(last, chinese).join(say("quote", chinese, text=each) for each in items)
