"""Regions and countries, and places in a text with a region or a country as their qualifier."""

import re
from collections.abc import Iterator
from functools import cache

from toolchat.service.gazetteer.gazetteer import Place, entries, find_place, known_places, lesser_places, mentions
from toolchat.tool_calling.text_normalization import fold, normalize_name


def resolve_place(name: str) -> Place | None:
    """Find the place of a name with or without region and country: ``Suzhou, Anhui, China``."""
    first, *around = (part.strip() for part in normalize_name(name).replace("'", "").split(","))
    known = _by_full_name().get(", ".join((first, *around))) or find_place(name)
    if known is not None:
        return known
    place = find_place(first)
    return place if place is not None and all(belongs(each, place) for each in around) else None


def belongs(name: str, place: Place) -> bool:
    """Whether a place lies in the country or the region of that name.

    Args:
        name: in any language, folded and in simplified characters.
        place: for a city in China whose province is in no table, any province counts.
    """
    if not place.country:
        return False
    if name in (fold(place.country), fold(place.region)) or place.region in _regions().get(name, ()):
        return True
    country = find_place(name)
    if name in _countries().get(place.country, ()) or (country is not None and place.country in country.names):
        return True
    return country is None and place.country == "China" and not place.region and name in _province_names()


def is_country(name: str) -> bool:
    """Whether a folded name is a country's rather than a city's; Singapore counts as a city."""
    if name in ("singapore", "hong kong", "macau"):
        return False
    place = find_place(name)
    # A place with one name only comes from the tz database and is a city.
    if place is not None and not place.country and len(place.names) > 1:
        return True
    return len(name) > 1 and name in _country_names()


def is_region(name: str) -> bool:
    """Whether a folded name is a state's or a similar region's; China's provinces do not count."""
    return name in _regions()


@cache
def _country_names() -> frozenset[str]:
    return frozenset(name for country, names in _countries().items() for name in (fold(country), *names))


@cache
def _by_full_name() -> dict[str, Place]:
    """Places by name, region and country, as in requests to WeatherAPI; lesser ones also by their Chinese names."""
    index = {name: place for place in lesser_places() for name in place.names[1:]}
    for place in (*lesser_places(), *known_places()):
        in_full = ", ".join(filter(None, (place.name, place.region, place.country)))
        index[normalize_name(in_full.replace("'", ""))] = place
    return index


@cache
def chinese_countries() -> dict[str, str]:
    """The Chinese names of countries with several time zones, and their English names."""
    rows = _countries().items()
    return {name: country for country, names in rows for name in names if not name.isascii()}


@cache
def provinces() -> dict[str, str]:
    """China's provinces and municipalities by their Chinese names."""
    return {name: english for english, names in entries(_PROVINCES) for name in names}


@cache
def _province_names() -> frozenset[str]:
    return frozenset((*provinces(), *map(fold, provinces().values())))


@cache
def _countries() -> dict[str, tuple[str, ...]]:
    return dict(entries(_COUNTRIES))


@cache
def _regions() -> dict[str, tuple[str, ...]]:
    """The regions of each folded name: WA is Washington and Western Australia."""
    found: dict[str, tuple[str, ...]] = {}
    for region, names in entries(_REGIONS):
        # California and Hawaii are places themselves: their Chinese names are in that table.
        place = find_place(region) if all(name.isascii() for name in names) else None
        for name in dict.fromkeys((fold(region), *names, *map(fold, place.names if place else ()))):
            found[name] = (*found.get(name, ()), region)
    return found


# English name, as in the table of places: other names, folded. Names that are in that table are not repeated here, so
# countries with several time zones and lesser ones stand here with all of theirs.
_COUNTRIES = """
USA: us, u.s, u.s.a, united states, united states of america, america, 美国;
UK: gb, wales, northern ireland, 威尔士, 北爱尔兰; Canada: ca, 加拿大; Australia: au, 澳大利亚, 澳洲;
China: cn, people's republic of china, 中华人民共和国; Russia: ru, 俄罗斯, 俄国; Indonesia: 印度尼西亚, 印尼;
Mongolia: 蒙古, 蒙古国; Mexico: mx, 墨西哥; Brazil: br, 巴西; Chile: 智利; France: fr; Germany: de; Japan: jp;
Italy: it; Spain: es; South Korea: kr; Costa Rica: 哥斯达黎加; Jamaica: 牙买加; El Salvador: 萨尔瓦多;
Guatemala: 危地马拉; Puerto Rico: 波多黎各; Ecuador: 厄瓜多尔; Algeria: 阿尔及利亚; Tunisia: 突尼斯; Ghana: 加纳;
Tanzania: 坦桑尼亚; Jordan: 约旦; Oman: 阿曼; Georgia: 格鲁吉亚; Lithuania: 立陶宛; Latvia: 拉脱维亚; Estonia: 爱沙尼亚;
Slovakia: 斯洛伐克; Slovenia: 斯洛文尼亚; Malta: 马耳他; Cyprus: 塞浦路斯; Bolivia: 玻利维亚; Paraguay: 巴拉圭
"""

# What the brackets in the table of places name: states, provinces and the like, by their short forms and in Chinese.
_REGIONS = """
Alabama: al, 亚拉巴马, 阿拉巴马; Alaska: ak, 阿拉斯加; Arizona: az, 亚利桑那; Arkansas: ar, 阿肯色; California: ca;
Colorado: co, 科罗拉多; Connecticut: ct, 康涅狄格; Delaware: de, 特拉华; Florida: fl, 佛州, 佛罗里达;
Georgia: ga, 佐治亚, 乔治亚; Hawaii: hi; Idaho: id, 爱达荷; Illinois: il, 伊利诺伊, 伊利诺斯; Indiana: in, 印第安纳;
Iowa: ia, 艾奥瓦; Kansas: ks, 堪萨斯; Kentucky: ky, 肯塔基; Louisiana: la, 路易斯安那; Maine: me, 缅因;
Maryland: md, 马里兰; Massachusetts: ma, 麻省, 马萨诸塞; Michigan: mi, 密歇根; Minnesota: mn, 明尼苏达;
Mississippi: ms, 密西西比; Missouri: mo, 密苏里; Montana: mt, 蒙大拿; Nebraska: ne, 内布拉斯加; Nevada: nv, 内华达;
New Hampshire: nh, 新罕布什尔; New Jersey: nj, 新泽西; New Mexico: nm, 新墨西哥; New York: ny, 纽约;
North Carolina: nc, 北卡罗来纳, 北卡; North Dakota: nd, 北达科他; Ohio: oh, 俄亥俄; Oklahoma: ok, 俄克拉荷马;
Oregon: or, 俄勒冈; Pennsylvania: pa, 宾州, 宾夕法尼亚; Rhode Island: ri, 罗得岛; South Carolina: sc, 南卡罗来纳, 南卡;
South Dakota: sd, 南达科他; Tennessee: tn, 田纳西; Texas: tx, 得州, 德州, 德克萨斯, 得克萨斯; Utah: ut, 犹他;
Vermont: vt, 佛蒙特; Virginia: va, 弗吉尼亚; Washington: wa, 华盛顿; West Virginia: wv, 西弗吉尼亚;
Wisconsin: wi, 威斯康星; Wyoming: wy, 怀俄明; DC: d.c; Ontario: on, 安大略; Quebec: qc, 魁北克;
British Columbia: bc, 不列颠哥伦比亚, 卑诗; Alberta: ab, 艾伯塔, 阿尔伯塔; Manitoba: mb, 曼尼托巴;
Nova Scotia: ns, 新斯科舍; Saskatchewan: sk, 萨斯喀彻温; New Brunswick: nb, 新不伦瑞克; Newfoundland: nl, 纽芬兰;
New South Wales: nsw, 新南威尔士; Victoria: vic, 维多利亚; Queensland: qld, 昆士兰; Western Australia: wa, 西澳;
South Australia: sa, 南澳; Northern Territory: nt, 北领地; Tasmania: tas, 塔斯马尼亚; England: 英格兰; Scotland: 苏格兰;
Bavaria: 巴伐利亚; Hesse: 黑森
"""

# Separate from the regions: Chinese texts name the province by habit (江苏苏州), not to tell places apart.
_PROVINCES = """
Beijing: 北京; Shanghai: 上海; Tianjin: 天津; Chongqing: 重庆; Hebei: 河北; Shanxi: 山西; Inner Mongolia: 内蒙古;
Liaoning: 辽宁; Jilin: 吉林; Heilongjiang: 黑龙江; Jiangsu: 江苏; Zhejiang: 浙江; Anhui: 安徽; Fujian: 福建;
Jiangxi: 江西; Shandong: 山东; Henan: 河南; Hubei: 湖北; Hunan: 湖南; Guangdong: 广东; Guangxi: 广西; Hainan: 海南;
Sichuan: 四川; Guizhou: 贵州; Yunnan: 云南; Tibet: 西藏; Shaanxi: 陕西; Gansu: 甘肃; Qinghai: 青海; Ningxia: 宁夏;
Xinjiang: 新疆
"""


_Qualified = tuple[int, int, bool]
"""Start and end of a name with its qualifier, and whether the qualifier belongs to the place."""

_WORD = r"[A-Za-zÀ-ɏ][\w'’-]*|[A-Z](?:\.[A-Z])+\.?"
_BEHIND = re.compile(rf"\s*,\s*((?:{_WORD})(?:\s(?:{_WORD})){{0,3}})")
_GOES_ON = re.compile(r"\s*(?:,|&|\band\b|\bor\b|和|与|、)")
_STATE = re.compile(r"[㐀-鿿·]{1,8}?[州省邦郡县縣]的?$")
_ALSO_CITIES = ("new york", "washington", "quebec")
# Cities whose lesser namesake is in a state with the name of a city.
_NAMESAKES = {("Vancouver, Canada", "washington")}
# After "<place>," these words continue the sentence and are no qualifier.
_NO_QUALIFIER = re.compile(
    r"(?:please|thanks|thank|what|how|when|where|who|why|will|would|is|are|was|and|or|but|can|could|tell|show|give|do"
    r"|does|then|ok|okay|sir|i|it|its|the|a|my|me|you|we|in|at|on|for|to|now|right|today|tomorrow|tonight|yesterday"
    r"|next|this|last|weather|time|forecast|temperature|monday|tuesday|wednesday|thursday|friday|saturday|sunday"
    r"|utc|gmt|translate|europe|asia|africa|also|plus|which|should)\b"
)


def places_in(text: str) -> Iterator[tuple[Place | None, tuple[int, int]]]:
    """Find the places in a text, each with the position of its name and its qualifier, and qualified ones first.

    A known place behind another may be the next one of a list, as in ``Paris, London and Tokyo``. With a qualifier that
    no known place of the name has (``Paris, Narnia``), the place is ``None``. Lesser places count where the text goes
    on as it does after a place: ``漯河的天气``.
    """
    found = [(_find_qualifier(text, each.start, each.end, each.place), each) for each in mentions(text)]
    for qualified, each in sorted(found, key=lambda each: each[0] is None):
        start, end, is_own = qualified or (each.start, each.end, True)
        yield each.place if is_own else None, (start, end)
    for place in lesser_places():
        for match in re.finditer(rf"(?:{'|'.join(place.names[1:])})(?=[和与、的天今明后]|未来|现在|$)", text):
            yield place, match.span()


def _find_qualifier(text: str, start: int, end: int, place: Place) -> _Qualified | None:
    return _behind(text, start, end, place) or _in_front(normalize_name(text), start, end, place)


def _behind(text: str, start: int, end: int, place: Place) -> _Qualified | None:
    """The longest known qualifier after the name, or an unknown capitalised name."""
    match = _BEHIND.match(text, end)
    if match is None:
        return None
    words = match[1].split(" ")
    names = [" ".join(words[:count]) for count in range(len(words), 0, -1)]
    for name in names:
        plain, stop = normalize_name(name).replace("'s", "").strip("."), match.start(1) + len(name)
        if belongs(plain, place):
            return start, stop, True
        if _is_other_qualifier(plain, words[0], text[stop:], place):
            return start, stop, False
    capital = [name for name in names if all(word[:1].isupper() for word in name.split(" "))]
    if not capital or any(map(find_place, capital)) or _NO_QUALIFIER.match(normalize_name(capital[0])):
        return None
    return start, match.start(1) + len(capital[0]), False


def _is_other_qualifier(name: str, first: str, rest: str, place: Place) -> bool:
    if len(name) <= 3 and not first.isupper():
        return False
    if is_region(name):
        return name not in _ALSO_CITIES or (place.english, name) in _NAMESAKES
    return is_country(name) and not _GOES_ON.match(rest) and bool(place.country)


def _in_front(flat: str, start: int, end: int, place: Place) -> _Qualified | None:
    """A Chinese qualifier: the name of a country or region directly before the place's name."""
    before = flat[max(start - 12, 0) : start]
    for size in range(len(before), 1, -1):
        name = before[-size:].removesuffix("的")
        known = name if is_country(name) or is_region(name) else re.sub(r"[州省]$", "", name)
        if not name.isascii() and (belongs(known, place) or is_country(known) or is_region(known)):
            is_city = find_place(name) is not None and find_place(name.removesuffix("州")) is not None
            is_own = belongs(known, place)
            return None if is_city and not is_own and not is_country(name) else (start - size, end, is_own)
    state = _STATE.search(before)
    if state is None or not place.country:
        return None
    is_own = _is_own_province(state[0].removesuffix("的"), place)
    return None if is_own and "省" not in state[0] else (start - len(before) + state.start(), end, is_own)


def _is_own_province(named: str, place: Place) -> bool:
    is_city = any(find_place(named[-size:]) is not None for size in range(2, len(named) + 1))
    return is_city or place.country in ("China", "Taiwan")
