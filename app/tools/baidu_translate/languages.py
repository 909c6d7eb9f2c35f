"""The languages of Baidu's general translation, by every name that a model may use for them.

The codes are those of https://fanyi-api.baidu.com/doc/21 (the 28 common languages, which every plan may use);
the other names are ISO 639 codes and the languages' English, Chinese and own names.
"""

import re
import unicodedata
from functools import cache

from app.tool_calling.errors import ToolExecutionError

__all__ = ["AUTO", "accepted", "source_code", "target_code"]

AUTO = "auto"
"""Baidu's code for a source language that it is to detect; never a target."""

_AUTO_NAMES = {"", AUTO, "auto-detect", "auto detect", "autodetect", "detect", "自动", "自动检测", "自动识别"}
_LONGEST_NAME = 40

# Baidu's code | English name | other codes | other names; a Chinese name in 语 also stands for the one in 文
_TABLE = """\
zh|Chinese|zho chi cmn cn|mandarin, mandarin chinese, simplified chinese, chinese simplified, putonghua, 中文, 汉语,\
 华语, 国语, 普通话, 白话文, 现代汉语, 简体, 简体中文, 中文简体, 简体字, 中国语
en|English|eng|british english, american english, 英语, 英国语, 美语, 美式英语, 英式英语
yue|Cantonese|zh-yue|yue chinese, 粤语, 广东话, 广州话, 香港话
wyw|Classical Chinese|lzh zh-classical|literary chinese, ancient chinese, 文言, 文言文, 古文, 古汉语, 古代汉语
jp|Japanese|ja jpn|nihongo, 日语, 日本语, にほんご
kor|Korean|ko kr|hangul, 韩语, 韩国语, 朝鲜语, 한국어, 한국말
fra|French|fr fre|français, francais, 法语, 法国语
spa|Spanish|es esp|español, espanol, castilian, castellano, 西班牙语, 西语
th|Thai|tha|泰语, 泰国语, ไทย, ภาษาไทย
ara|Arabic|ar|阿拉伯语, 阿语, العربية
ru|Russian|rus|русский, русский язык, 俄语, 俄罗斯语
pt|Portuguese|por|português, portugues, brazilian portuguese, 葡萄牙语, 葡语, 巴西葡萄牙语
de|German|deu ger|deutsch, 德语, 德国语
it|Italian|ita|italiano, 意大利语, 意语
el|Greek|ell gre gr|modern greek, ελληνικά, ελληνικα, 希腊语
nl|Dutch|nld dut|nederlands, flemish, 荷兰语
pl|Polish|pol|polski, język polski, 波兰语
bul|Bulgarian|bg|български, български език, 保加利亚语
est|Estonian|et|eesti, eesti keel, 爱沙尼亚语
dan|Danish|da|dansk, 丹麦语
fin|Finnish|fi|suomi, suomen kieli, 芬兰语
cs|Czech|ces cze cz|čeština, cestina, 捷克语
rom|Romanian|ro ron rum|română, romana, moldovan, 罗马尼亚语
slo|Slovenian|sl slv|slovene, slovenščina, 斯洛文尼亚语
swe|Swedish|sv|svenska, 瑞典语
hu|Hungarian|hun|magyar, 匈牙利语
cht|Traditional Chinese|zh-hant zh-tw zh-hk zh-mo|chinese traditional, taiwanese mandarin, 繁体, 繁体中文, 中文繁体,\
 正体中文, 繁体字, 繁中
vie|Vietnamese|vi vn|tiếng việt, tieng viet, 越南语, 越语
"""

_SIMPLIFIED = str.maketrans(
    "語漢國話現簡體華廣東粵韓鮮蘭羅馬亞愛爾臘麥與動檢測識別繁",
    "语汉国话现简体华广东粤韩鲜兰罗马亚爱尔腊麦与动检测识别繁",
)
_TRADITIONAL_TAGS = {"hant", "tw", "hk", "mo"}


def source_code(name: str) -> str:
    """Baidu's code for the language of the text; nothing, or a word for detection, gives :data:`AUTO`.

    Raises:
        ToolExecutionError: the language is not among those that Baidu translates (kind ``unsupported-language``).
    """
    return AUTO if _normalised(name) in _AUTO_NAMES else _code(name)


def target_code(name: str) -> str:
    """Baidu's code for the language to translate into.

    Raises:
        ToolExecutionError: it is missing, left to detection, or not among those that Baidu translates.
    """
    if _normalised(name) in _AUTO_NAMES:
        raise _unsupported("'to' must name one language; only 'from' may be auto")
    return _code(name)


@cache
def accepted() -> str:
    """Every language with its code, for a model to choose from."""
    rows = (row.split("|") for row in _TABLE.splitlines())
    return ", ".join(f"{code} ({english})" for code, english, *_ in rows)


def _code(name: str) -> str:
    wanted = _normalised(name)
    code = _codes().get(wanted) or _code_of_tag(wanted)
    if code is None:
        raise _unsupported(f"{_shown(name)} is not a language that Baidu translates")
    return code


def _code_of_tag(tag: str) -> str | None:
    """Read a language tag with a script or a region (BCP 47), such as ``pt-br`` or ``zh-hant-tw``."""
    language, *rest = tag.split("-")
    if not rest or not re.fullmatch(r"[a-z]{2,3}(-[a-z0-9]{2,8}){1,4}", tag):
        return None
    code = _codes().get(language)
    return "cht" if code == "zh" and _TRADITIONAL_TAGS.intersection(rest) and "hans" not in rest else code


@cache
def _codes() -> dict[str, str]:
    codes: dict[str, str] = {}
    for row in _TABLE.splitlines():
        code, english, others, names = row.split("|")
        for short in (code, *others.split()):
            codes |= dict.fromkeys(map(_normalised, (short, f"{short} {english}", f"{english} {short}")), code)
        for name in map(_normalised, (english, *names.split(","))):
            codes[name] = code
            if name.endswith("语"):
                codes[name.removesuffix("语") + "文"] = code
    return codes


def _normalised(name: str) -> str:
    """A name without what does not matter: width, case, brackets, blanks at its ends, the traditional form."""
    name = name.strip()
    if len(name) > _LONGEST_NAME:
        return name
    text = unicodedata.normalize("NFKC", name).casefold().translate(_SIMPLIFIED)
    return " ".join(re.sub(r"[()\[\]]", " ", text.replace("_", "-")).split())


def _shown(name: str) -> str:
    return repr(name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}...")


def _unsupported(message: str) -> ToolExecutionError:
    return ToolExecutionError(message, kind="unsupported-language", hint=f"use one of: {accepted()}")
