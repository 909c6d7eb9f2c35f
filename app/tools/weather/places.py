"""Translate place names into queries that WeatherAPI understands.

WeatherAPI does not document names in Chinese and refuses accents (``q=Wrocław``). So a name in Chinese characters
becomes ``name, province, country`` in Latin letters, and others lose their accents.
"""

import re
import unicodedata
from dataclasses import dataclass, field

from app.places.gazetteer import Place, chinese_countries, find_place, mentions, provinces
from app.places.pinyin import find_chinese_place, romanize
from toolchat import ToolExecutionError
from toolchat.tool_calling.text_normalization import simplify

MAX_NAME = 80
"""Longest name in characters; the longest real ones have about 60."""

_HINT = "give the English or pinyin name of a city, with its country, such as 'Suzhou, Jiangsu, China'"
_PUNCTUATION = frozenset(" ,.'-()&·、;")
_COORDINATES = re.compile(r"([+-]?\d{1,2}(?:\.\d{1,10})?) ?, ?([+-]?\d{1,3}(?:\.\d{1,10})?)", re.ASCII)
_ADDRESS = re.compile(r"\d *\. *\d+ *\. *\d")
_POSTCODE = re.compile("[0-9]{5}")
_CHINA = "Asia/Shanghai"
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff"
# Compiled when they are first used: sets of so many characters take 10 ms.
_CHINESE = f"[{_HAN}]"
# Kana and hangul: with them, characters that Chinese shares are read in another way.
_OTHER_SCRIPT = "[\u3041-\u30ff\u1100-\u11ff\uac00-\ud7a3]"
# A name may be written in both scripts, as in 北京Beijing; a blank ends Chinese names, but stands inside of Latin ones.
_RUNS = f"(?P<chinese>[{_HAN}][{_HAN}·]*)|(?P<latin>[^\\W\\d_](?:[^\\W\\d_{_HAN}]|[ .'-](?=[^\\W\\d_{_HAN}]))*)"
# Letters that Unicode does not take apart into a plain one and a mark.
_UNFOLDING = str.maketrans(
    {"ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "đ": "d", "Đ": "D", "ı": "i", "ð": "d", "ß": "ss", "æ": "ae", "œ": "oe"}
)
# Peoples in the names of autonomous prefectures and counties; 各 is "various".
_PEOPLES = (
    "土家|蒙古|朝鲜|布依|景颇|哈尼|傈僳|维吾尔|哈萨克|柯尔克孜|仡佬|拉祜|纳西|普米|独龙|撒拉|东乡|保安|裕固|达斡尔|鄂温克"
    "|鄂伦春|锡伯|塔吉克|毛南|仫佬|布朗|苗|藏|羌|彝|回|侗|傣|白|壮|瑶|满|畲|黎|水|佤|怒|土|各"
)
# No name has one character: what would leave a single one behind (中国人) is itself a piece of a name.
_REST = "(?=..|$)"
_COUNTRY = re.compile(f"({'|'.join(sorted(chinese_countries(), key=len, reverse=True))}){_REST}")
_PROVINCE = re.compile(f"({'|'.join(provinces())})(?:省|市|(?:壮族|回族|维吾尔)?自治区)?{_REST}")
_CITY = re.compile(f"(..+?)(?:(?:(?:{_PEOPLES})族?)+自治[州县]|市|地区|盟){_REST}")
# What says the rank of a place; with two characters left before it, since 沙市 and 单县 are names.
_RANK = re.compile("(..+?)(?:地区|林区|新区|[市县区省盟州都府])")


def checked_name(city: str) -> str:
    """Normalise a name to NFKC with single spaces; ``latitude,longitude`` is accepted too.

    Raises:
        ToolExecutionError: ``invalid-place``.
    """
    if len(city) > 4 * MAX_NAME:
        raise refusal(f"the city is longer than {MAX_NAME} characters")
    if any(unicodedata.category(character)[0] == "C" for character in city):
        raise refusal("the city holds control characters")
    name = " ".join(unicodedata.normalize("NFKC", city).replace("\u2019", "'").split())
    if not name:
        raise refusal("the city is empty")
    if len(name) > MAX_NAME:
        raise refusal(f"the city is longer than {MAX_NAME} characters")
    if coordinates := _COORDINATES.fullmatch(name):
        latitude, longitude = coordinates.groups()
        if abs(float(latitude)) > 90 or abs(float(longitude)) > 180:
            raise refusal("these coordinates are not on Earth")
        return f"{latitude},{longitude}"
    if not _looks_like_a_name(name):
        raise refusal("the city is not the name of a place")
    return name


def refusal(message: str) -> ToolExecutionError:
    """Return the error for a name that cannot be looked up."""
    return ToolExecutionError(message, kind="invalid-place", hint=_HINT)


def _looks_like_a_name(name: str) -> bool:
    """Letters of any script and a little punctuation, or a postcode; no colon, slash, address or URL."""
    if any(unicodedata.category(each)[0] not in "LMN" and each not in _PUNCTUATION for each in name):
        return False
    if _ADDRESS.search(name):
        return False
    return any(each.isalpha() for each in name) or _POSTCODE.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class PlaceQuery:
    """A query to WeatherAPI."""

    q: str
    chinese: bool
    """Whether the place was named in Chinese characters."""


@dataclass(slots=True)
class _Parts:
    """The parts of a Chinese name."""

    names: list[str] = field(default_factory=list)
    latin: list[str] = field(default_factory=list)
    province: str = ""
    country: str = ""


def is_chinese(name: str) -> bool:
    """Whether a name has Chinese characters and neither kana nor hangul."""
    name = unicodedata.normalize("NFKC", name)
    return re.search(_CHINESE, name) is not None and re.search(_OTHER_SCRIPT, name) is None


def place_query(city: str) -> PlaceQuery:
    """Turn a name into a query.

    Well-known places and those that pinyin gets wrong come from tables; all others are read by pypinyin, which may
    take 0.1 s, and taken to be in China. A country or a province beside the name is kept: ``苏州,安徽`` is
    ``Suzhou, Anhui, China``.

    Raises:
        ToolExecutionError: ``invalid-place``: the text is not a place name, or the place is abroad and can only be
            found by its English name.
    """
    name = checked_name(city)
    if not is_chinese(name):
        return PlaceQuery(_without_accents(name), chinese=False)
    abroad = _abroad(name)
    return PlaceQuery(abroad.english if abroad else _of_parts(_parts_of(simplify(name))), chinese=True)


def _without_accents(name: str) -> str:
    return "".join(map(_plain, name.translate(_UNFOLDING)))


def _plain(character: str) -> str:
    base = unicodedata.normalize("NFD", character)[0]
    return base if base.isascii() else character


def _abroad(name: str) -> Place | None:
    place = find_place(name) or find_place(_bare(name))
    return place if place and place.zone != _CHINA else None


def _bare(name: str) -> str:
    """Drop a suffix that only names the rank of a place, such as city or county."""
    found = _RANK.fullmatch(name)
    return found[1] if found else name


def _parts_of(name: str) -> _Parts:
    parts = _Parts()
    for run in re.finditer(_RUNS, name):
        if run["chinese"]:
            _take_apart(run["chinese"].replace("·", "").replace("特别行政区", ""), parts)
        elif run["latin"].title() in provinces().values():
            parts.province = parts.province or run["latin"].title()
        elif run["latin"].title() != "China":
            parts.latin.append(_without_accents(run["latin"]))
    return parts


def _take_apart(run: str, parts: _Parts) -> None:
    """Split a run of characters into country, province and names."""
    while run and not find_chinese_place(run):
        if country := _country_at(run):
            english, length = country
            parts.country = english if english != "China" else parts.country or english
        elif not parts.province and (found := _PROVINCE.match(run)):
            parts.province, length = provinces()[found[1]], found.end()
        else:
            break
        run = run[length:]
    if run:
        parts.names.extend(_levels(run))


def _country_at(run: str) -> tuple[str, int] | None:
    if found := _COUNTRY.match(run):
        return chinese_countries()[found[1]], found.end()
    place, length = _place_at(run)
    return (place.english, length) if place and "," not in place.english else None


def _place_at(run: str) -> tuple[Place | None, int]:
    """The gazetteer's place that a run begins with, and where its name ends."""
    found = next(mentions(run), None)
    if found is None or found.start or len(run) - found.end == 1:
        return None, 0
    return found.place, found.end


def _levels(run: str) -> tuple[str, ...]:
    """Return the place, followed by the city around it if the run names one."""
    if find_chinese_place(run) or find_place(run):
        return (run,)
    if found := _CITY.match(run):
        return tuple(filter(None, (run[found.end() :], found[1])))
    place, length = _place_at(run)
    return (run[length:], run[:length]) if place else (run,)


def _of_parts(parts: _Parts) -> str:
    if not parts.names:
        country = parts.country or ("China" if parts.province else "")
        return _joined(*parts.latin, parts.province, country)
    inner = next((name for name in parts.names if not find_place(name)), parts.names[0])
    outer = next((name for name in parts.names if name != inner), "")
    spelled = _spelled(inner)
    abroad = next(filter(None, map(_abroad, (inner, outer))), None)
    if parts.country not in ("", "China", spelled and spelled.country):
        if abroad is None and not parts.latin:
            raise refusal(f"only the English name can find this place in {parts.country}")
        return _joined(abroad.name if abroad else parts.latin[0], parts.country)
    # 台北中山区 is a district of Taipei, although Zhongshan is a city as well.
    if abroad and not parts.province and (spelled is None or find_place(_bare(inner))):
        return abroad.english
    return _in_china(spelled or _read(inner), parts.province, outer)


def _in_china(place: Place, province: str, outer: str) -> str:
    around = (_spelled(outer) or _read(outer)) if outer else None
    region = province or place.region or (around.region or around.name if around else "")
    return _joined(place.name, region, place.country).replace("'", "")


def _spelled(name: str) -> Place | None:
    return find_chinese_place(name) or find_chinese_place(_bare(name))


def _read(name: str) -> Place:
    return Place((romanize(_bare(name)),), _CHINA, "China")


def _joined(*parts: str) -> str:
    return ", ".join(dict.fromkeys(filter(None, parts)))
