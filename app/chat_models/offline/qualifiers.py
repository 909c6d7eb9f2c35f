"""What stands beside a place's name to say which place of that name is meant: Paris, Texas and 德克萨斯州的巴黎."""

import re
from functools import cache

from app.gazetteer import find_place, folded

__all__ = ["Qualified", "qualified"]

Qualified = tuple[int, int, bool]
"""Where a name with its qualifier begins and ends, and whether the qualifier belongs to the place."""

_WORD = r"[A-Za-zÀ-ɏ][\w'’-]*|[A-Z](?:\.[A-Z])+\.?"
_BEHIND = re.compile(rf"\s*,\s*((?:{_WORD})(?:\s(?:{_WORD})){{0,3}})")
_BESIDE_MORE = re.compile(r"\s*(?:,|&|\band\b|\bor\b|和|与|、)")
_STATE = re.compile(r"[㐀-鿿·]{1,8}?[州省邦郡县縣]的?$")
_NO_QUALIFIER = re.compile(
    r"(?:please|thanks|thank|what|how|when|where|who|why|will|would|is|are|was|and|or|but|can|could|tell|show|give|do"
    r"|does|then|ok|okay|sir|i|it|its|the|a|my|me|you|we|in|at|on|for|to|now|right|today|tomorrow|tonight|yesterday"
    r"|next|this|last|weather|time|forecast|temperature|monday|tuesday|wednesday|thursday|friday|saturday|sunday"
    r"|utc|gmt|translate|europe|asia|africa|also|plus)\b"
)
_CITY_STATES = {"singapore", "hong kong", "macau"}
_ALSO_CITIES = {"new york", "washington", "quebec"}
_NAMESAKES = {("Vancouver, Canada", "washington")}
"""Cities of the table whose lesser namesake lies in a state that is called like a city."""

_COUNTRIES = """
USA: us; u.s; u.s.a; united states; united states of america; america; 美国; 美國
UK: gb; great britain; wales; northern ireland; 威尔士; 北爱尔兰
Canada: ca; 加拿大
Australia: au; 澳大利亚; 澳洲
China: cn; people's republic of china
Russia: ru; 俄罗斯; 俄国
Indonesia: 印度尼西亚; 印尼
Mongolia: 蒙古; 蒙古国
Mexico: mx; 墨西哥
Brazil: br; 巴西
Chile: 智利
France: fr
Germany: de
Japan: jp
Italy: it
Spain: es
South Korea: kr
Costa Rica: 哥斯达黎加
Jamaica: 牙买加
El Salvador: 萨尔瓦多
Guatemala: 危地马拉
Puerto Rico: 波多黎各
"""
_REGIONS = """
Alabama al 亚拉巴马 阿拉巴马:
Alaska ak 阿拉斯加: Anchorage
Arizona az 亚利桑那: Phoenix
Arkansas ar 阿肯色:
California ca 加州 加利福尼亚: Los Angeles; San Francisco; San Diego; San Jose; Silicon Valley
Colorado co 科罗拉多: Denver
Connecticut ct 康涅狄格:
Delaware de 特拉华:
Florida fl 佛州 佛罗里达: Miami; Orlando
Georgia ga 佐治亚 乔治亚: Atlanta
Hawaii hi 夏威夷: Honolulu
Idaho id 爱达荷:
Illinois il 伊利诺伊 伊利诺斯: Chicago
Indiana in 印第安纳: Indianapolis
Iowa ia 艾奥瓦:
Kansas ks 堪萨斯:
Kentucky ky 肯塔基:
Louisiana la 路易斯安那: New Orleans
Maine me 缅因:
Maryland md 马里兰: Baltimore
Massachusetts ma 麻省 马萨诸塞: Boston
Michigan mi 密歇根: Detroit
Minnesota mn 明尼苏达: Minneapolis
Mississippi ms 密西西比:
Missouri mo 密苏里: St. Louis
Montana mt 蒙大拿:
Nebraska ne 内布拉斯加:
Nevada nv 内华达: Las Vegas
New-Hampshire nh 新罕布什尔:
New-Jersey nj 新泽西:
New-Mexico nm 新墨西哥:
New-York ny 纽约: New York
North-Carolina nc 北卡罗来纳 北卡:
North-Dakota nd 北达科他:
Ohio oh 俄亥俄: Cleveland
Oklahoma ok 俄克拉荷马:
Oregon or 俄勒冈: Portland
Pennsylvania pa 宾州 宾夕法尼亚: Philadelphia; Pittsburgh
Rhode-Island ri 罗得岛:
South-Carolina sc 南卡罗来纳 南卡:
South-Dakota sd 南达科他:
Tennessee tn 田纳西: Nashville
Texas tx 得州 德州 德克萨斯 得克萨斯: Houston; Dallas; Austin; San Antonio
Utah ut 犹他: Salt Lake City
Vermont vt 佛蒙特:
Virginia va 弗吉尼亚:
Washington wa 华盛顿: Seattle
West-Virginia wv 西弗吉尼亚:
Wisconsin wi 威斯康星:
Wyoming wy 怀俄明:
DC d.c: Washington
Ontario on 安大略: Toronto; Ottawa
Quebec qc 魁北克: Montreal; Quebec City
British-Columbia bc 不列颠哥伦比亚 卑诗: Vancouver
Alberta ab 艾伯塔 阿尔伯塔: Calgary; Edmonton
Manitoba mb 曼尼托巴: Winnipeg
Nova-Scotia ns 新斯科舍: Halifax
Saskatchewan sk 萨斯喀彻温:
New-Brunswick nb 新不伦瑞克:
Newfoundland nl 纽芬兰:
New-South-Wales nsw 新南威尔士: Sydney
Victoria vic 维多利亚: Melbourne
Queensland qld 昆士兰: Brisbane; Gold Coast
Western-Australia wa 西澳: Perth
South-Australia sa 南澳: Adelaide
Northern-Territory nt 北领地: Darwin
Tasmania tas 塔斯马尼亚: Hobart
England 英格兰: London; Manchester; Birmingham; Liverpool; Oxford; Cambridge
Scotland 苏格兰: Edinburgh; Glasgow
Bavaria 巴伐利亚: Munich
Hesse 黑森: Frankfurt
"""


def qualified(text: str, start: int, end: int, english: str) -> Qualified | None:
    """Find the qualifier of a place named at ``text[start:end]``; ``None`` when the name stands alone.

    A place that the gazetteer knows may be the next of a list instead, as in ``Paris, London and Tokyo``.
    """
    return _behind(text, start, end, english) or _in_front(folded(text), start, end, english)


def _behind(text: str, start: int, end: int, english: str) -> Qualified | None:
    match = _BEHIND.match(text, end)
    words = match[1].split(" ") if match else []
    for count in range(len(words), 0, -1):
        name = folded(" ".join(words[:count])).replace("'s", "").strip(".")
        stop = _end(match, words, count)
        if _belongs(name, english):
            return start, stop, True
        if _is_other_qualifier(name, words[0], text[stop:], english):
            return start, stop, False
    return _unknown(match, words, start)


def _unknown(match: re.Match[str] | None, words: list[str], start: int) -> Qualified | None:
    """A capitalised name that nobody knows qualifies a place, unless a known place begins there."""
    count = next((n for n, word in enumerate(words) if not word[:1].isupper()), len(words))
    names = [" ".join(words[:n]) for n in range(count, 0, -1)]
    if not names or any(find_place(name) for name in names) or _NO_QUALIFIER.match(folded(names[0])):
        return None
    return start, _end(match, words, count), False


def _end(match: re.Match[str] | None, words: list[str], count: int) -> int:
    return (match.start(1) if match else 0) + len(" ".join(words[:count]))


def _is_other_qualifier(name: str, first: str, rest: str, english: str) -> bool:
    if len(name) <= 3 and not first.isupper():
        return False
    if name in _regions():
        return name not in _ALSO_CITIES or (english, name) in _NAMESAKES
    listed = _BESIDE_MORE.match(rest) is not None or "," not in english
    return _is_country(name) and not listed


def _in_front(flat: str, start: int, end: int, english: str) -> Qualified | None:
    """A Chinese qualifier: a country's or a region's name just before the place's."""
    before = flat[max(start - 12, 0) : start]
    shift = start - len(before)
    for size in range(len(before), 1, -1):
        name = re.sub(r"的$", "", before[-size:])
        bare = re.sub(r"[州省]$", "", name)
        known = name if _is_country(name) or name in _regions() else bare
        if not name.isascii() and (_belongs(known, english) or _is_country(known) or known in _regions()):
            is_list = find_place(name) is not None and find_place(name.removesuffix("州")) is not None
            return (start - size, end, True) if _belongs(known, english) else _foreign(start - size, end, is_list, name)
    state = _STATE.search(before)
    if state is None or "," not in english:
        return None
    belongs = _is_own_province(state[0], english)
    return None if belongs and "省" not in state[0] else (shift + state.start(), end, belongs)


def _foreign(start: int, end: int, is_list: bool, name: str) -> Qualified | None:
    return None if is_list and not _is_country(name) else (start, end, False)


def _is_own_province(text: str, english: str) -> bool:
    named = text.removesuffix("的")
    city = any(find_place(named[-size:]) is not None for size in range(2, len(named) + 1))
    return city or english.endswith((", China", ", Taiwan"))


def _belongs(name: str, english: str) -> bool:
    city, *rest = english.split(", ")
    country = rest[-1] if rest else ""
    if not country:
        return False
    if folded(name) in map(folded, rest) or city in _regions().get(name, ()):
        return True
    place = find_place(name)
    return name in _countries().get(country, ()) or (place is not None and place.english == _own_name(country))


def _own_name(country: str) -> str:
    return "United Kingdom" if country == "UK" else country


def _is_country(name: str) -> bool:
    if name in _CITY_STATES:
        return False
    place = find_place(name)
    if place is not None and len(place.names) > 1 and "," not in place.english:
        return True
    return any(name == folded(country) or name in names for country, names in _countries().items() if len(name) > 1)


@cache
def _countries() -> dict[str, frozenset[str]]:
    rows = (line.partition(": ") for line in _COUNTRIES.strip().splitlines())
    return {country: frozenset(names.split("; ")) for country, _, names in rows}


@cache
def _regions() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for line in _REGIONS.strip().splitlines():
        names, _, cities = line.partition(":")
        for name in names.split():
            key = folded(name).replace("-", " ")
            found[key] = (*found.get(key, ()), *cities.strip().split("; "))
    return found
