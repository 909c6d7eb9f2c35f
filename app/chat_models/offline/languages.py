"""Languages by their Chinese and English names and ISO 639 codes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from app.places.gazetteer import find_place

__all__ = [
    "Language",
    "Targets",
    "language_of",
    "languages",
    "source_language",
    "target_language",
    "target_spans",
    "targets",
]


@dataclass(frozen=True, slots=True)
class Language:
    """A language."""

    code: str
    english: str
    chinese: str
    names: tuple[str, ...]
    """Further names, folded."""


_TABLE = """
zh; Chinese; 中文; 汉语, 漢語, 国语, 普通话, 简体中文, 简体, 华语, mandarin, simplified chinese
zh-TW; Traditional Chinese; 繁体中文; 繁體中文, 繁体, 繁體
yue; Cantonese; 粤语; 粵語, 广东话
en; English; 英语; 英文, 英語
ja; Japanese; 日语; 日文, 日語, 日本语
ko; Korean; 韩语; 韩文, 韓語, 韓文, 朝鲜语
fr; French; 法语; 法文, 法語
de; German; 德语; 德文, 德語
es; Spanish; 西班牙语; 西班牙文, 西语
pt; Portuguese; 葡萄牙语; 葡语, 葡萄牙文
it; Italian; 意大利语; 意语, 意大利文
ru; Russian; 俄语; 俄文, 俄語
ar; Arabic; 阿拉伯语; 阿拉伯文
th; Thai; 泰语; 泰文
vi; Vietnamese; 越南语; 越南文, 越语
id; Indonesian; 印尼语; 印度尼西亚语
ms; Malay; 马来语; 马来文
hi; Hindi; 印地语; 北印度语
nl; Dutch; 荷兰语; 荷兰文
el; Greek; 希腊语; 希腊文
pl; Polish; 波兰语; 波兰文
sv; Swedish; 瑞典语; 瑞典文
da; Danish; 丹麦语; 丹麦文
fi; Finnish; 芬兰语; 芬兰文
no; Norwegian; 挪威语; 挪威文
cs; Czech; 捷克语; 捷克文
hu; Hungarian; 匈牙利语; 匈牙利文
ro; Romanian; 罗马尼亚语; 罗马尼亚文
bg; Bulgarian; 保加利亚语; 保加利亚文
et; Estonian; 爱沙尼亚语; 爱沙尼亚文
sl; Slovenian; 斯洛文尼亚语; slovene
uk; Ukrainian; 乌克兰语; 乌克兰文
tr; Turkish; 土耳其语; 土耳其文
he; Hebrew; 希伯来语; 希伯来文
fa; Persian; 波斯语; farsi
la; Latin; 拉丁语; 拉丁文
"""

_PAIR = re.compile(r"(?P<source>[中英日韩法德俄汉])(?:译|翻|译成|翻译成)(?P<target>[中英日韩法德俄汉])")
_SHORT = {"中": "zh", "汉": "zh", "英": "en", "日": "ja", "韩": "ko", "法": "fr", "德": "de", "俄": "ru"}
_INTO = re.compile(
    r"(?:翻译|翻譯|翻|译|譯|转换|转)?(?:成|为|為|到)\s*$|译\s*$|(?:用|讲|说)\s*$|\b(?:into|to|in)\s*(?:the )?$"
)
_OUT_OF = re.compile(r"(?:从|由|這句|这句|这段|把|将)\s*$|\bfrom\s*(?:the )?$")


_ITEM = r"(?:[㐀-鿿]{1,7}[语語文话話体體]|mandarin|[a-z][a-z-]+(?: (?:chinese|mandarin))?)"
_NO_LANGUAGES = ("me", "us", "him", "her", "them", "it", "you", "everyone", "know", "meet", "see", "go", "do", "be")
_BETWEEN = r"(?:\s*(?:,\s*and\b|,|&|\band\b|、|和|与|與|跟|以及|及)\s*)"
_LIST = rf"{_ITEM}(?:{_BETWEEN}{_ITEM}){{0,19}}"
_TARGETS = re.compile(
    rf"(?:\s|^)(?P<into>into|to|in)\s+(?:the )?(?P<english>{_LIST})"
    r"(?P<rest>(?:[\s.!?,;。]|\band\b|\bthen\b|\balso\b)*$)?"
    rf"|(?:翻译|翻譯|翻|译|譯)(?:成|为|為|到|作)\s*(?P<chinese>{_LIST})"
)


@dataclass(frozen=True, slots=True)
class Targets:
    """The languages that something is wanted in."""

    known: tuple[Language, ...] = ()
    unknown: tuple[str, ...] = ()
    """Names that stand where a language should, and are in no table; folded."""
    start: int = 0
    """Where the words about them begin."""
    ends_the_text: bool = False
    """Whether nothing follows in a text where what is to be translated comes first."""


def targets(text: str) -> Targets:
    """Find all the languages that a folded text wants something put into; none where it lists none."""
    found = [each for match in _TARGETS.finditer(text) if (each := _listed(text, match))]
    return next((each for each in reversed(found) if each.known), found[-1] if found else Targets())


def _listed(text: str, match: re.Match[str]) -> Targets | None:
    listed = match["english"] or match["chinese"]
    items = [each for each in re.split(_BETWEEN, listed) if each]
    known = tuple(dict.fromkeys(each for item in items if (each := _by_name().get(item))))
    unknown = tuple(item for item in items if item not in _by_name())
    if match["english"] and not _is_a_list(text, match, bool(known)):
        return None
    at_end = match["english"] is not None and match["rest"] is not None
    return Targets(known, unknown if at_end or match["chinese"] else (), match.start(), at_end)


def _is_a_list(text: str, match: re.Match[str], known: bool) -> bool:
    """English lists end the text or name a language; ``to`` and ``in`` are about other things as well."""
    verb = "translat" in text[: match.start()]
    if known or match["into"] == "in" or match["rest"] is None or not verb:
        return known
    named = match["english"]
    return match["into"] == "into" or (named not in _NO_LANGUAGES and " " not in named and find_place(named) is None)


@dataclass(frozen=True, slots=True)
class _Mention:
    language: Language
    start: int
    end: int


def languages() -> tuple[Language, ...]:
    """Every language in the table."""
    return tuple(_by_code().values())


def language_of(text: str) -> Language | None:
    """Look up a language by its code or one of its names, folded."""
    return _by_name().get(text) or _by_code().get(text)


def target_language(text: str) -> Language | None:
    """Find the language that a folded text wants something put into."""
    pair = _PAIR.search(text)
    if pair is not None:
        return _by_code()[_SHORT[pair["target"]]]
    named = list(_mentions(text))
    into = next((each.language for each in named if _INTO.search(text, max(each.start - 12, 0), each.start)), None)
    return into or next((each.language for each in reversed(named) if not _is_source(text, each)), None)


def source_language(text: str) -> Language | None:
    """Find the language that a folded text says something is in."""
    pair = _PAIR.search(text)
    if pair is not None:
        return _by_code()[_SHORT[pair["source"]]]
    return next((each.language for each in _mentions(text) if _is_source(text, each)), None)


def target_spans(text: str) -> list[tuple[int, int]]:
    """Where a folded text names languages, apart from those that something is in."""
    return [(each.start, each.end) for each in _mentions(text) if not _is_source(text, each)]


def _is_source(text: str, mention: _Mention) -> bool:
    return _OUT_OF.search(text, max(mention.start - 8, 0), mention.start) is not None


def _mentions(text: str) -> Iterator[_Mention]:
    for match in _pattern().finditer(text):
        yield _Mention(_by_name()[match[0]], *match.span())


@cache
def _pattern() -> re.Pattern[str]:
    names = sorted(_by_name(), key=len, reverse=True)
    return re.compile("|".join(rf"\b{name}\b" if name.isascii() else name for name in names))


@cache
def _by_name() -> dict[str, Language]:
    every = _by_code().values()
    return {name: each for each in every for name in (each.english.lower(), each.chinese, *each.names)}


@cache
def _by_code() -> dict[str, Language]:
    rows = (re.split(r"\s*;\s*", line) for line in _TABLE.strip().splitlines())
    every = [Language(code, english, chinese, tuple(names.split(", "))) for code, english, chinese, names in rows]
    return {each.code.lower(): each for each in every}
