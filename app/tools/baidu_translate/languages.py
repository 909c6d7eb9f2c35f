"""The languages of Baidu's general translation, by every name that a model may use for them."""

from functools import cache

from app.gazetteer.languages import LONGEST_NAME, language_of, languages, normalize_language
from toolchat.tool_calling.errors import ToolExecutionError

__all__ = ["AUTO", "accepted", "source_code", "target_code"]

AUTO = "auto"
"""Baidu's code for a source language that it is to detect; never a target."""

_AUTO_NAMES = {"", AUTO, "auto-detect", "auto detect", "autodetect", "detect", "自动", "自动检测", "自动识别"}
# The 28 common languages, which every plan may use (https://fanyi-api.baidu.com/doc/21): the code of our table, and
# behind a colon Baidu's own where it is another.
_CODES = """
zh en yue lzh:wyw ja:jp ko:kor fr:fra es:spa th ar:ara ru pt de it el nl pl bg:bul et:est da:dan fi:fin cs ro:rom sl:slo
sv:swe hu zh-TW:cht vi:vie
"""


def source_code(name: str) -> str:
    """Baidu's code for the language of the text; nothing, or a word for detection, gives :data:`AUTO`.

    Raises:
        ToolExecutionError: the language is not among those that Baidu translates (kind ``unsupported-language``).
    """
    return AUTO if normalize_language(name) in _AUTO_NAMES else _code(name)


def target_code(name: str) -> str:
    """Baidu's code for the language to translate into.

    Raises:
        ToolExecutionError: it is missing, left to detection, or not among those that Baidu translates.
    """
    if normalize_language(name) in _AUTO_NAMES:
        raise _unsupported("'to' must name one language; only 'from' may be auto")
    return _code(name)


@cache
def accepted() -> str:
    """Every language with its code, for a model to choose from."""
    english = {each.code: each.english for each in languages()}
    return ", ".join(f"{baidus} ({english[code]})" for code, baidus in _codes().items())


def _code(name: str) -> str:
    language = language_of(name)
    code = _codes().get(language.code) if language else None
    if code is None:
        raise _unsupported(f"{_shown(name)} is not a language that Baidu translates")
    return code


@cache
def _codes() -> dict[str, str]:
    """The codes of our table with Baidu's."""
    pairs = (each.partition(":") for each in _CODES.split())
    return {code: baidus or code for code, _, baidus in pairs}


def _shown(name: str) -> str:
    return repr(name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}...")


def _unsupported(message: str) -> ToolExecutionError:
    return ToolExecutionError(message, kind="unsupported-language", hint=f"use one of: {accepted()}")
