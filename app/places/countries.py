"""Countries and China's provinces by their names, and whether a place lies in the one of a name."""

from functools import cache

from app.places.gazetteer import Place, entries, find_place
from toolchat.tool_calling.text_normalization import fold


@cache
def chinese_countries() -> dict[str, str]:
    """The Chinese names of countries with several time zones, and their English names."""
    rows = _countries().items()
    return {name: country for country, names in rows for name in names if not name.isascii()}


@cache
def provinces() -> dict[str, str]:
    """China's provinces and municipalities by their Chinese names."""
    return {name: english for english, names in entries(_PROVINCES) for name in names}


def belongs(name: str, place: Place) -> bool:
    """Whether a place lies in the country or the region of a folded name."""
    country = find_place(name)
    known = {fold(place.country), fold(place.region), *_countries().get(place.country, ())}
    return name in known or (country is not None and place.country in country.names)


@cache
def _countries() -> dict[str, tuple[str, ...]]:
    return dict(entries(_COUNTRIES))


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

_PROVINCES = """
Beijing: 北京; Shanghai: 上海; Tianjin: 天津; Chongqing: 重庆; Hebei: 河北; Shanxi: 山西; Inner Mongolia: 内蒙古;
Liaoning: 辽宁; Jilin: 吉林; Heilongjiang: 黑龙江; Jiangsu: 江苏; Zhejiang: 浙江; Anhui: 安徽; Fujian: 福建;
Jiangxi: 江西; Shandong: 山东; Henan: 河南; Hubei: 湖北; Hunan: 湖南; Guangdong: 广东; Guangxi: 广西; Hainan: 海南;
Sichuan: 四川; Guizhou: 贵州; Yunnan: 云南; Tibet: 西藏; Shaanxi: 陕西; Gansu: 甘肃; Qinghai: 青海; Ningxia: 宁夏;
Xinjiang: 新疆
"""
