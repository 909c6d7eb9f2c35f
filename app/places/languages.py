"""Look-up of languages by their codes, and by the names that people and models use for them."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from toolchat.tool_calling.text_normalization import normalize_name

LONGEST_NAME = 40
"""Longer texts are not looked up as a language's name."""


@dataclass(frozen=True, slots=True)
class Language:
    """A language."""

    code: str
    """ISO 639-1, or ISO 639-3 if it has none; ``zh-TW`` for traditional Chinese."""
    english: str
    chinese: str
    names: tuple[str, ...]
    """Names that are unambiguous in any sentence, folded, the English one first."""
    aliases: tuple[str, ...]
    """Codes and names that count only where a language is expected: ``it``, ``古文``."""


@cache
def languages() -> tuple[Language, ...]:
    """Every language in the table."""
    return tuple(map(_language, _TABLE.strip().splitlines()))


def language_of(name: str) -> Language | None:
    """Look up a language by a code or a name, or by both (``Japanese (ja)``).

    Ignores case, width, accents, script, brackets and underscores. A BCP 47 tag (``pt-BR``) counts as its language;
    Chinese with a script or a region is simplified or traditional.
    """
    wanted = normalize_language(name)
    return _by_name().get(wanted) or _of_tag(wanted)


def normalize_language(name: str) -> str:
    """The look-up form of a name; a text that is too long for a name is returned unchanged."""
    name = name.strip()
    if len(name) > LONGEST_NAME:
        return name
    text = normalize_name(unicodedata.normalize("NFKC", name)).replace("_", "-")
    return " ".join(re.sub(r"[()\[\]]", " ", text).split())


def _of_tag(tag: str) -> Language | None:
    if not re.fullmatch(r"[a-z]{2,3}(-[a-z0-9]{2,8}){1,4}", tag):
        return None
    language, *rest = tag.split("-")
    found = _by_name().get(language)
    is_traditional = not {"hant", "tw", "hk", "mo"}.isdisjoint(rest) and "hans" not in rest
    return _by_name()["zh-tw"] if found and found.code == "zh" and is_traditional else found


@cache
def _by_name() -> dict[str, Language]:
    found: dict[str, Language] = {}
    for each in languages():
        for name in (each.code, *each.names, *each.aliases):
            found |= dict.fromkeys(map(normalize_language, _forms(name, each.english)), each)
    return found


def _forms(name: str, english: str) -> Iterator[str]:
    yield from (name, f"{name} {english}", f"{english} {name}")
    if name.endswith("语"):
        yield name.removesuffix("语") + "文"


def _language(row: str) -> Language:
    code, english, spoken, aliases = map(str.strip, row.split(";"))
    chinese, *others = spoken.split(", ")
    written = [chinese.removesuffix("语") + "文"] if chinese.endswith("语") else []
    names = (english.lower(), chinese, *written, *others)
    return Language(code, english, chinese, names, tuple(filter(None, aliases.split(", "))))


# Code; English name; Chinese name and other names that mean a language in any sentence; aliases: the other codes of
# ISO 639, those of Baidu where they differ (jp, cht, rom, slo, wyw), common mistakes (cn, kr, gr), the language's own
# name, and names that mean something else as well. A Chinese name in 语 stands also for the one in 文.
_TABLE = """
zh; Chinese; 中文, 汉语, 国语, 普通话, 简体中文, 简体, 华语, 中国语, mandarin, simplified chinese;\
 zho, chi, cmn, cn, mandarin chinese, chinese simplified, putonghua, 白话文, 现代汉语, 中文简体, 简体字
en; English; 英语, 英国语; eng, british english, american english, 美语, 美式英语, 英式英语
yue; Cantonese; 粤语, 广东话; zh-yue, yue chinese, 广州话, 香港话
lzh; Classical Chinese; 文言文; wyw, zh-classical, literary chinese, ancient chinese, 文言, 古文, 古汉语, 古代汉语
ja; Japanese; 日语, 日本语; jpn, jp, nihongo, にほんご
ko; Korean; 韩语, 韩国语, 朝鲜语; kor, kr, hangul, 한국어, 한국말
fr; French; 法语, 法国语; fra, fre, francais
es; Spanish; 西班牙语, 西语; spa, esp, espanol, castilian, castellano
th; Thai; 泰语, 泰国语; tha, ไทย, ภาษาไทย
ar; Arabic; 阿拉伯语; ara, 阿语, العربية
ru; Russian; 俄语; rus, русский, русский язык, 俄罗斯语
pt; Portuguese; 葡萄牙语, 葡语; por, portugues, brazilian portuguese, 巴西葡萄牙语
de; German; 德语, 德国语; deu, ger, deutsch
it; Italian; 意大利语, 意语; ita, italiano
el; Greek; 希腊语; ell, gre, gr, modern greek, ελληνικά, ελληνικα
nl; Dutch; 荷兰语; nld, dut, nederlands, flemish
pl; Polish; 波兰语; pol, polski, jezyk polski
bg; Bulgarian; 保加利亚语; bul, български, български език
et; Estonian; 爱沙尼亚语; est, eesti, eesti keel
da; Danish; 丹麦语; dan, dansk
fi; Finnish; 芬兰语; fin, suomi, suomen kieli
cs; Czech; 捷克语; ces, cze, cz, cestina
ro; Romanian; 罗马尼亚语; ron, rum, rom, romana, moldovan
sl; Slovenian; 斯洛文尼亚语, slovene; slv, slo, slovenscina
sv; Swedish; 瑞典语; swe, svenska
hu; Hungarian; 匈牙利语; hun, magyar
zh-TW; Traditional Chinese; 繁体中文, 繁体; zh-hant, zh-hk, zh-mo, cht, chinese traditional, taiwanese mandarin,\
 中文繁体, 正体中文, 繁体字, 繁中
vi; Vietnamese; 越南语, 越语; vie, vn, tieng viet
id; Indonesian; 印尼语, 印度尼西亚语; ind
ms; Malay; 马来语; msa, may
hi; Hindi; 印地语, 北印度语; hin
no; Norwegian; 挪威语; nor
uk; Ukrainian; 乌克兰语; ukr
tr; Turkish; 土耳其语; tur
he; Hebrew; 希伯来语; heb
fa; Persian; 波斯语, farsi; per, fas
la; Latin; 拉丁语; lat
"""
