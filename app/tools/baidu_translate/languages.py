"""The codes of languages at a translation service, by every name that a model may use for them."""

from functools import cached_property

from app.places.languages import LONGEST_NAME, language_of, languages, normalize_language
from toolchat import ToolExecutionError

AUTO = "auto"
"""The code for a source language that the service is to detect; never a target."""

_AUTO_NAMES = {"", AUTO, "auto-detect", "auto detect", "autodetect", "detect", "自动", "自动检测", "自动识别"}
# The 28 common languages, which every plan may use (https://fanyi-api.baidu.com/doc/21): the code of our table, and
# behind a colon Baidu's own where it is another.
_BAIDU = """
zh en yue lzh:wyw ja:jp ko:kor fr:fra es:spa th ar:ara ru pt de it el nl pl bg:bul et:est da:dan fi:fin cs ro:rom sl:slo
sv:swe hu zh-TW:cht vi:vie
"""
# Those of LibreTranslate's models that our table has; a server may have fewer. zh and zt are accepted by all versions.
_LIBRETRANSLATE = (
    "zh en ja ko fr es th ar ru pt de it el nl pl bg et da fi cs ro sl sv hu zh-TW:zt vi id ms hi uk tr he fa"
)


class LanguageCodes:
    """The languages of a translation service.

    Args:
        service: its name in errors.
        codes: codes of our table, each with a colon and the service's own code if that differs.
    """

    def __init__(self, service: str, codes: str) -> None:
        self._service = service
        pairs = (each.partition(":") for each in codes.split())
        self._codes = {code: own or code for code, _, own in pairs}

    def source(self, name: str) -> str:
        """Return the code for the language of the text; nothing, or a word for detection, gives :data:`AUTO`.

        Raises:
            ToolExecutionError: the service does not translate the language (kind ``unsupported-language``).
        """
        return AUTO if normalize_language(name) in _AUTO_NAMES else self._code(name)

    def target(self, name: str) -> str:
        """Return the code for the language to translate into.

        Raises:
            ToolExecutionError: it is missing, left to detection, or not among those that the service translates.
        """
        if normalize_language(name) in _AUTO_NAMES:
            raise self._unsupported("'to' must name one language; only 'from' may be auto")
        return self._code(name)

    @cached_property
    def accepted(self) -> str:
        """Every language with its code, for a model to choose from."""
        english = {each.code: each.english for each in languages()}
        return ", ".join(f"{own} ({english[code]})" for code, own in self._codes.items())

    def _code(self, name: str) -> str:
        language = language_of(name)
        code = self._codes.get(language.code) if language else None
        if code is None:
            raise self._unsupported(f"{_shown(name)} is not a language that {self._service} translates")
        return code

    def _unsupported(self, message: str) -> ToolExecutionError:
        return ToolExecutionError(message, kind="unsupported-language", hint=f"use one of: {self.accepted}")


BAIDU = LanguageCodes("Baidu", _BAIDU)
LIBRETRANSLATE = LanguageCodes("LibreTranslate", _LIBRETRANSLATE)


def _shown(name: str) -> str:
    return repr(name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}...")
