"""The offline model's sentences, in Chinese and English."""

import tomllib
from collections.abc import Iterable
from importlib.resources import files

_SENTENCES = tomllib.loads(files(__package__).joinpath("sentences.toml").read_text("utf-8"))


def say(key: str, chinese: bool, **values: object) -> str:
    """A sentence in one of the two languages."""
    text: str = _SENTENCES[key][not chinese]
    return text.format(**values)


def listed(items: Iterable[object], chinese: bool, last: str = "and") -> str:
    """Items in a row, each in quotes."""
    return say(last, chinese).join(say("quote", chinese, text=each) for each in items)
