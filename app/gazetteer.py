"""Places that people ask about: their Chinese and English names, and their time zones.

A hand-checked table: neither CLDR nor GeoNames knows how Chinese speakers call Hanoi, Milan, Cape Town or Seattle.
After it come the last parts of the tz database's ids, such as ``new york`` of ``America/New_York``. Countries are in
it when one time zone holds for (nearly) all of their people; the others are not, since a guess would be wrong.
"""

import pkgutil
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

__all__ = ["Mention", "Place", "find_place", "folded", "mentions", "place_in", "place_names", "zone_ids"]


@dataclass(frozen=True, slots=True)
class Place:
    """A city, or a country with one time zone."""

    names: tuple[str, ...]
    """Every name that it is found by, the English one first."""
    english: str
    """The name with its country, such as ``Tokyo, Japan``."""
    zone: str
    """The tz database's id, such as ``Asia/Tokyo``."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A place named in a text."""

    place: Place
    start: int
    """Where the name begins in the text."""
    end: int


def find_place(name: str) -> Place | None:
    """Look up a place by its name: case, accents, width of characters and a final 市 do not matter."""
    key = " ".join(folded(unicodedata.normalize("NFKC", name)).replace("_", " ").split()).replace(" ,", ",")
    key = re.sub(r",(?=\S)", ", ", key)
    return _by_name().get(key) or _by_name().get(key.removesuffix("市"))


def place_in(text: str) -> Place | None:
    """Find the place that a text names: the first mention, and the longest name where names overlap.

    A Latin name counts only as whole words, and one of up to three letters (``LA``) only in capitals.
    """
    return next((found.place for found in mentions(unicodedata.normalize("NFKC", text))), None)


def mentions(text: str) -> Iterator[Mention]:
    """Find every place that a text names, in order and without overlaps; see :func:`place_in`."""
    flat, start = folded(text), 0
    while start < len(flat):
        end = _end_of_name(flat, text, start)
        place = _by_name().get(flat[start:end])
        if place is not None:
            yield Mention(place, start, end)
        start = max(end, start + 1)


def place_names() -> dict[str, str]:
    """Every name that :func:`find_place` knows, folded, with its time zone."""
    return {name: place.zone for name, place in _by_name().items()}


@cache
def zone_ids() -> frozenset[str]:
    """The tz database's ids, from the list in the ``tzdata`` package; the file system is not searched."""
    listed = pkgutil.get_data("tzdata", "zones") or b""
    return frozenset(listed.decode("ascii").split()) - {"Factory", "localtime", "posixrules"}


def folded(text: str) -> str:
    """Bring a text to plain width, lower case and unaccented Latin letters, character by character: none is added."""
    return text.lower() if text.isascii() else "".join(map(_folded_character, text))


@lru_cache(maxsize=4096)
def _folded_character(character: str) -> str:
    normal = unicodedata.normalize("NFKC", character)
    character = normal if len(normal) == 1 else character
    if "À" <= character <= "ɏ" or "Ḁ" <= character <= "ỿ":
        character = unicodedata.normalize("NFD", character)[0]
    lower = character.lower()
    return lower if len(lower) == 1 else character


def _end_of_name(text: str, original: str, start: int) -> int:
    """The end of the longest name, or of what looks like one but is none, that begins here; else ``start``."""
    for length in _lengths().get(text[start], ()):
        end = start + length
        name = text[start:end]
        known = name in _NOT_PLACES or (name in _by_name() and _stands_alone(text, original, start, end))
        if known and len(name) == length:
            return end
    return start


def _stands_alone(text: str, original: str, start: int, end: int) -> bool:
    if not _is_latin(text[start]):
        return True
    if end - start <= 3 and not original[start:end].isupper():
        return False
    before, after = text[start - 1 : start], text[end : end + 1]
    return not (_is_latin(before) or _is_latin(after))


def _is_latin(character: str) -> bool:
    return character.isalnum() and character < "ʰ"


@cache
def _lengths() -> dict[str, tuple[int, ...]]:
    """How long the names are that begin with a character, longest first."""
    found: dict[str, set[int]] = {}
    for name in (*_by_name(), *_NOT_PLACES):
        found.setdefault(name[0], set()).add(len(name))
    return {first: tuple(sorted(lengths, reverse=True)) for first, lengths in found.items()}


@cache
def _by_name() -> dict[str, Place]:
    places = tuple(table())
    index = {folded(name): place for place in places for name in place.names}
    for place in places:
        index.setdefault(folded(place.english), place)
    for name, zone in _names_in_ids():
        index.setdefault(folded(name), Place((name,), name, zone))
    return index


def _names_in_ids() -> Iterator[tuple[str, str]]:
    for zone in sorted(zone_ids()):
        area, _, rest = zone.partition("/")
        name = rest.rpartition("/")[2].replace("_", " ")
        if area in _AREAS and len(name) > 3 and name not in _NOT_NAMES:
            yield name, zone


def table() -> Iterator[Place]:
    """The hand-checked places, in the table's order."""
    country, zone = "", ""
    for line in _TABLE.strip().splitlines():
        text, _, own_zone = line.partition(" @")
        if line.startswith("["):
            country, _, text = text[1:].partition("]")
            zone = own_zone
            if text.strip():
                yield _place(text, "", zone)
        else:
            yield _place(text, country, own_zone or zone)


def _place(text: str, country: str, zone: str) -> Place:
    names = tuple(name.strip() for name in text.split(";"))
    return Place(names, f"{names[0]}, {country}" if country else names[0], zone)


_AREAS = frozenset(("Africa", "America", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific"))


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NOT_NAMES = _words("""
    Canary Center Central Chatham Christmas Easter Jersey Johnston Knox Midway Norfolk North Oral Petersburg Regina
    Resolute Reunion South Stanley Truk Victoria Vincennes Virgin Wake West Winamac Yancowinna
""")
"""Last parts of ids that mean something else, or another place, in a sentence."""

_NOT_PLACES = _words("""
    三明治 大理石 大同小异 印度尼西亚 印度尼西亞 印度洋 罗马数字 罗马字 汉堡包 漢堡包 上海话 广州话 东京湾 纽约客
    北京烤鸭 中山路 中山大学 中山公园 孙中山 达尔文主义
""")
"""Words that begin with a place's name and mean something else."""

# One place per line: English name; further names. A line in brackets opens a country: names behind the brackets make
# the country itself a place, @ gives the zone of what follows; @ on a place's own line holds for it alone.
_TABLE = """
[China] China; PRC; 中国; 中國; 中国大陆 @Asia/Shanghai
Beijing; Peking; 北京
Shanghai; 上海
Guangzhou; Canton; 广州; 廣州
Shenzhen; 深圳
Tianjin; 天津
Chongqing; Chungking; 重庆; 重慶
Chengdu; 成都
Hangzhou; 杭州
Nanjing; Nanking; 南京
Wuhan; 武汉; 武漢
Xi'an; Xian; 西安
Suzhou; 苏州; 蘇州
Changsha; 长沙; 長沙
Zhengzhou; 郑州; 鄭州
Qingdao; Tsingtao; 青岛; 青島
Jinan; 济南; 濟南
Shenyang; 沈阳; 瀋陽
Dalian; 大连; 大連
Harbin; 哈尔滨; 哈爾濱
Changchun; 长春; 長春
Jilin City; 吉林
Shijiazhuang; 石家庄; 石家莊
Taiyuan; 太原
Hefei; 合肥
Nanchang; 南昌
Fuzhou; 福州
Xiamen; Amoy; 厦门; 廈門
Quanzhou; 泉州
Zhangzhou; 漳州
Putian; 莆田
Ningbo; 宁波; 寧波
Wenzhou; 温州; 溫州
Jiaxing; 嘉兴; 嘉興
Huzhou; 湖州
Shaoxing; 绍兴; 紹興
Jinhua; 金华; 金華
Yiwu; 义乌; 義烏
Taizhou, Zhejiang; 台州
Taizhou, Jiangsu; 泰州
Zhoushan; 舟山
Wuxi; 无锡; 無錫
Changzhou; 常州
Nantong; 南通
Yangzhou; 扬州; 揚州
Zhenjiang; 镇江; 鎮江
Xuzhou; 徐州
Lianyungang; 连云港; 連雲港
Yancheng; 盐城; 鹽城
Huai'an; 淮安
Kunshan; 昆山
Foshan; 佛山
Dongguan; 东莞; 東莞
Zhuhai; 珠海
Zhongshan; 中山
Huizhou; 惠州
Shantou; 汕头; 汕頭
Zhanjiang; 湛江
Jiangmen; 江门; 江門
Zhaoqing; 肇庆; 肇慶
Shaoguan; 韶关; 韶關
Nanning; 南宁; 南寧
Guilin; 桂林
Liuzhou; 柳州
Beihai; 北海
Haikou; 海口
Sanya; 三亚; 三亞
Guiyang; 贵阳; 貴陽
Zunyi; 遵义; 遵義
Kunming; 昆明
Lijiang; 丽江; 麗江
Dali; 大理
Xishuangbanna; 西双版纳; 西雙版納
Lhasa; 拉萨; 拉薩
Lanzhou; 兰州; 蘭州
Dunhuang; 敦煌
Xining; 西宁; 西寧
Yinchuan; 银川; 銀川
Urumqi; Ürümchi; 乌鲁木齐; 烏魯木齊
Kashgar; Kashi; 喀什
Hohhot; 呼和浩特
Baotou; 包头; 包頭
Ordos; 鄂尔多斯; 鄂爾多斯
Hulunbuir; 呼伦贝尔; 呼倫貝爾
Tangshan; 唐山
Baoding; 保定
Qinhuangdao; 秦皇岛; 秦皇島
Zhangjiakou; 张家口; 張家口
Chengde; 承德
Handan; 邯郸; 邯鄲
Langfang; 廊坊
Datong; 大同
Luoyang; 洛阳; 洛陽
Kaifeng; 开封; 開封
Nanyang; 南阳; 南陽
Yantai; 烟台; 煙台
Weihai; 威海
Weifang; 潍坊; 濰坊
Zibo; 淄博
Linyi; 临沂; 臨沂
Jining; 济宁; 濟寧
Tai'an; 泰安
Wuhu; 芜湖; 蕪湖
Huangshan; 黄山; 黃山
Bengbu; 蚌埠
Jiujiang; 九江
Ganzhou; 赣州; 贛州
Jingdezhen; 景德镇; 景德鎮
Yichang; 宜昌
Xiangyang; 襄阳; 襄陽
Jingzhou; 荆州; 荊州
Zhangjiajie; 张家界; 張家界
Yueyang; 岳阳; 岳陽
Zhuzhou; 株洲
Hengyang; 衡阳; 衡陽
Mianyang; 绵阳; 綿陽
Leshan; 乐山; 樂山
Yibin; 宜宾; 宜賓
Xianyang; 咸阳; 咸陽
Baoji; 宝鸡; 寶雞
Yan'an; 延安
Daqing; 大庆; 大慶
Qiqihar; 齐齐哈尔; 齊齊哈爾
Mudanjiang; 牡丹江
Mohe; 漠河
Anshan; 鞍山
Dandong; 丹东; 丹東
Yanji; 延吉
[Hong Kong] Hong Kong; Hongkong; 香港 @Asia/Hong_Kong
[Macau] Macau; Macao; 澳门; 澳門 @Asia/Macau
[Taiwan] Taiwan; 台湾; 台灣; 臺灣 @Asia/Taipei
Taipei; 台北; 臺北
Kaohsiung; 高雄
Taichung; 台中; 臺中
Tainan; 台南; 臺南
[Japan] Japan; 日本 @Asia/Tokyo
Tokyo; 东京; 東京
Osaka; 大阪
Kyoto; 京都
Nagoya; 名古屋
Sapporo; 札幌
Fukuoka; 福冈; 福岡
Yokohama; 横滨; 橫濱; 横浜
Kobe; 神户; 神戶
Hiroshima; 广岛; 廣島; 広島
Hokkaido; 北海道
Okinawa; 冲绳; 沖繩; 沖縄
[South Korea] South Korea; Korea; 韩国; 韓國; 南韩 @Asia/Seoul
Seoul; 首尔; 首爾; 汉城
Busan; Pusan; 釜山
Jeju; 济州岛; 濟州島
[North Korea] North Korea; 朝鲜; 朝鮮; 北韩 @Asia/Pyongyang
Pyongyang; 平壤
[Mongolia] @Asia/Ulaanbaatar
Ulaanbaatar; Ulan Bator; 乌兰巴托; 烏蘭巴托
[Singapore] Singapore; 新加坡; 星洲 @Asia/Singapore
[Malaysia] Malaysia; 马来西亚; 馬來西亞 @Asia/Kuala_Lumpur
Kuala Lumpur; 吉隆坡
Penang; 槟城; 檳城
[Thailand] Thailand; 泰国; 泰國 @Asia/Bangkok
Bangkok; 曼谷
Phuket; 普吉; 普吉岛
Chiang Mai; 清迈; 清邁
[Vietnam] Vietnam; 越南 @Asia/Ho_Chi_Minh
Hanoi; 河内; 河內
Ho Chi Minh City; Saigon; 胡志明市; 胡志明; 西贡; 西貢
Da Nang; Danang; 岘港; 峴港
[Cambodia] Cambodia; 柬埔寨 @Asia/Phnom_Penh
Phnom Penh; 金边; 金邊
Siem Reap; 暹粒
[Laos] Laos; 老挝; 寮国 @Asia/Vientiane
Vientiane; 万象; 萬象
[Myanmar] Myanmar; Burma; 缅甸; 緬甸 @Asia/Yangon
Yangon; Rangoon; 仰光
[Philippines] Philippines; 菲律宾; 菲律賓 @Asia/Manila
Manila; 马尼拉; 馬尼拉
Cebu; 宿务; 宿霧
[Brunei] Brunei; 文莱; 汶萊 @Asia/Brunei
[Indonesia] @Asia/Jakarta
Jakarta; 雅加达; 雅加達
Bali; Denpasar; 巴厘岛; 峇里島 @Asia/Makassar
[India] India; 印度 @Asia/Kolkata
New Delhi; Delhi; 新德里; 德里
Mumbai; Bombay; 孟买; 孟買
Bangalore; Bengaluru; 班加罗尔; 班加羅爾
Chennai; Madras; 金奈
Kolkata; Calcutta; 加尔各答; 加爾各答
Hyderabad; 海得拉巴
[Pakistan] Pakistan; 巴基斯坦 @Asia/Karachi
Karachi; 卡拉奇
Islamabad; 伊斯兰堡; 伊斯蘭堡
[Bangladesh] Bangladesh; 孟加拉国; 孟加拉 @Asia/Dhaka
Dhaka; 达卡; 達卡
[Nepal] Nepal; 尼泊尔; 尼泊爾 @Asia/Kathmandu
Kathmandu; 加德满都; 加德滿都
[Sri Lanka] Sri Lanka; 斯里兰卡; 斯里蘭卡 @Asia/Colombo
Colombo; 科伦坡; 可倫坡
[Maldives] Maldives; 马尔代夫; 馬爾地夫 @Indian/Maldives
[Kazakhstan] Kazakhstan; 哈萨克斯坦 @Asia/Almaty
Almaty; 阿拉木图
Astana; 阿斯塔纳
[Uzbekistan] Uzbekistan; 乌兹别克斯坦 @Asia/Tashkent
Tashkent; 塔什干
[United Arab Emirates] United Arab Emirates; UAE; 阿联酋; 阿聯酋 @Asia/Dubai
Dubai; 迪拜; 杜拜
Abu Dhabi; 阿布扎比; 阿布達比
[Saudi Arabia] Saudi Arabia; 沙特; 沙特阿拉伯; 沙烏地阿拉伯 @Asia/Riyadh
Riyadh; 利雅得
Mecca; 麦加; 麥加
Jeddah; 吉达
[Qatar] Qatar; 卡塔尔; 卡達 @Asia/Qatar
Doha; 多哈
[Kuwait] Kuwait; 科威特 @Asia/Kuwait
[Iraq] Iraq; 伊拉克 @Asia/Baghdad
Baghdad; 巴格达; 巴格達
[Iran] Iran; 伊朗 @Asia/Tehran
Tehran; Teheran; 德黑兰; 德黑蘭
[Israel] Israel; 以色列 @Asia/Jerusalem
Jerusalem; 耶路撒冷
Tel Aviv; 特拉维夫; 特拉維夫
[Lebanon] Lebanon; 黎巴嫩 @Asia/Beirut
Beirut; 贝鲁特; 貝魯特
[Turkey] Turkey; Türkiye; 土耳其 @Europe/Istanbul
Istanbul; 伊斯坦布尔; 伊斯坦堡
Ankara; 安卡拉
[UK] United Kingdom; UK; Britain; Great Britain; England; Scotland; 英国; 英國; 英格兰; 苏格兰 @Europe/London
London; 伦敦; 倫敦
Manchester; 曼彻斯特; 曼徹斯特
Edinburgh; 爱丁堡; 愛丁堡
Birmingham; 伯明翰
Liverpool; 利物浦
Glasgow; 格拉斯哥
Oxford; 牛津
Cambridge; 剑桥; 劍橋
[Ireland] Ireland; 爱尔兰; 愛爾蘭 @Europe/Dublin
Dublin; 都柏林
[France] France; 法国; 法國 @Europe/Paris
Paris; 巴黎
Lyon; 里昂
Marseille; Marseilles; 马赛; 馬賽
Nice, Provence; 尼斯
[Germany] Germany; Deutschland; 德国; 德國 @Europe/Berlin
Berlin; 柏林
Munich; München; 慕尼黑
Frankfurt; Frankfurt am Main; 法兰克福; 法蘭克福
Hamburg; 汉堡; 漢堡
Cologne; Köln; 科隆
Stuttgart; 斯图加特
Düsseldorf; Duesseldorf; 杜塞尔多夫
[Italy] Italy; 意大利; 義大利 @Europe/Rome
Rome; Roma; 罗马; 羅馬
Milan; Milano; 米兰; 米蘭
Venice; Venezia; 威尼斯
Florence; Firenze; 佛罗伦萨; 佛羅倫斯
Naples; Napoli; 那不勒斯
[Vatican] Vatican; Vatican City; 梵蒂冈; 梵蒂岡 @Europe/Vatican
[Spain] Spain; 西班牙 @Europe/Madrid
Madrid; 马德里; 馬德里
Barcelona; 巴塞罗那; 巴塞隆納
[Portugal] Portugal; 葡萄牙 @Europe/Lisbon
Lisbon; Lisboa; 里斯本
Porto; 波尔图
[Switzerland] Switzerland; 瑞士 @Europe/Zurich
Zurich; 苏黎世; 蘇黎世
Geneva; Genève; 日内瓦; 日內瓦
Bern; 伯尔尼
[Austria] Austria; 奥地利; 奧地利 @Europe/Vienna
Vienna; Wien; 维也纳; 維也納
Salzburg; 萨尔茨堡
[Netherlands] Netherlands; Holland; 荷兰; 荷蘭 @Europe/Amsterdam
Amsterdam; 阿姆斯特丹
Rotterdam; 鹿特丹
The Hague; 海牙
[Belgium] Belgium; 比利时; 比利時 @Europe/Brussels
Brussels; 布鲁塞尔; 布魯塞爾
[Luxembourg] Luxembourg; 卢森堡; 盧森堡 @Europe/Luxembourg
[Denmark] Denmark; 丹麦; 丹麥 @Europe/Copenhagen
Copenhagen; 哥本哈根
[Sweden] Sweden; 瑞典 @Europe/Stockholm
Stockholm; 斯德哥尔摩; 斯德哥爾摩
[Norway] Norway; 挪威 @Europe/Oslo
Oslo; 奥斯陆; 奧斯陸
[Finland] Finland; 芬兰; 芬蘭 @Europe/Helsinki
Helsinki; 赫尔辛基; 赫爾辛基
[Iceland] Iceland; 冰岛; 冰島 @Atlantic/Reykjavik
Reykjavik; 雷克雅未克
[Poland] Poland; 波兰; 波蘭 @Europe/Warsaw
Warsaw; 华沙; 華沙
Krakow; Cracow; 克拉科夫
[Czechia] Czechia; Czech Republic; 捷克 @Europe/Prague
Prague; Praha; 布拉格
[Hungary] Hungary; 匈牙利 @Europe/Budapest
Budapest; 布达佩斯; 布達佩斯
[Romania] Romania; 罗马尼亚; 羅馬尼亞 @Europe/Bucharest
Bucharest; 布加勒斯特
[Bulgaria] Bulgaria; 保加利亚; 保加利亞 @Europe/Sofia
Sofia; 索非亚
[Greece] Greece; 希腊; 希臘 @Europe/Athens
Athens; 雅典
[Serbia] Serbia; 塞尔维亚; 塞爾維亞 @Europe/Belgrade
Belgrade; 贝尔格莱德
[Croatia] Croatia; 克罗地亚; 克羅埃西亞 @Europe/Zagreb
Zagreb; 萨格勒布
[Ukraine] Ukraine; 乌克兰; 烏克蘭 @Europe/Kyiv
Kyiv; Kiev; 基辅; 基輔
[Belarus] Belarus; 白俄罗斯; 白俄羅斯 @Europe/Minsk
Minsk; 明斯克
[Russia] @Europe/Moscow
Moscow; 莫斯科
Saint Petersburg; St. Petersburg; St Petersburg; 圣彼得堡; 聖彼得堡
Novosibirsk; 新西伯利亚 @Asia/Novosibirsk
Vladivostok; 海参崴; 符拉迪沃斯托克 @Asia/Vladivostok
[Egypt] Egypt; 埃及 @Africa/Cairo
Cairo; 开罗; 開羅
[Morocco] Morocco; 摩洛哥 @Africa/Casablanca
Casablanca; 卡萨布兰卡; 卡薩布蘭卡
[South Africa] South Africa; 南非 @Africa/Johannesburg
Johannesburg; 约翰内斯堡; 約翰尼斯堡
Cape Town; 开普敦; 開普敦
[Kenya] Kenya; 肯尼亚; 肯亞 @Africa/Nairobi
Nairobi; 内罗毕; 奈洛比
[Nigeria] Nigeria; 尼日利亚; 奈及利亞 @Africa/Lagos
Lagos; 拉各斯
[Ethiopia] Ethiopia; 埃塞俄比亚 @Africa/Addis_Ababa
Addis Ababa; 亚的斯亚贝巴
[USA] @America/New_York
New York; New York City; NYC; 纽约; 紐約
Washington; Washington DC; Washington D.C.; 华盛顿; 華盛頓
Boston; 波士顿; 波士頓
Philadelphia; 费城; 費城
Miami; 迈阿密; 邁阿密
Atlanta; 亚特兰大; 亞特蘭大
Orlando; 奥兰多; 奧蘭多
Pittsburgh; 匹兹堡
Cleveland; 克利夫兰
Baltimore; 巴尔的摩
Detroit; 底特律 @America/Detroit
Indianapolis; 印第安纳波利斯 @America/Indiana/Indianapolis
[USA] @America/Chicago
Chicago; 芝加哥
Houston; 休斯敦; 休士頓; 休斯顿
Dallas; 达拉斯; 達拉斯
Austin; 奥斯汀; 奧斯汀
San Antonio; 圣安东尼奥
New Orleans; 新奥尔良; 紐奧良
Minneapolis; 明尼阿波利斯
Nashville; 纳什维尔
St. Louis; St Louis; Saint Louis; 圣路易斯; 聖路易斯
Denver; 丹佛 @America/Denver
Salt Lake City; 盐湖城; 鹽湖城 @America/Denver
Phoenix; 凤凰城; 鳳凰城; 菲尼克斯 @America/Phoenix
[USA] California; 加州; 加利福尼亚 @America/Los_Angeles
Los Angeles; LA; L.A.; 洛杉矶; 洛杉磯
San Francisco; SF; 旧金山; 舊金山; 三藩市; 圣弗朗西斯科
San Diego; 圣迭戈; 聖地牙哥
San Jose; 圣何塞; 聖荷西
Silicon Valley; 硅谷; 矽谷
Seattle; 西雅图; 西雅圖
Portland; 波特兰
Las Vegas; 拉斯维加斯; 拉斯維加斯
Hawaii; 夏威夷 @Pacific/Honolulu
Honolulu; 檀香山; 火奴鲁鲁; 火奴魯魯 @Pacific/Honolulu
Anchorage; 安克雷奇 @America/Anchorage
[Canada] @America/Toronto
Toronto; 多伦多; 多倫多
Ottawa; 渥太华; 渥太華
Montreal; 蒙特利尔; 蒙特婁
Quebec City; 魁北克城; 魁北克市
Vancouver; 温哥华; 溫哥華 @America/Vancouver
Calgary; 卡尔加里; 卡加利 @America/Edmonton
Edmonton; 埃德蒙顿 @America/Edmonton
Winnipeg; 温尼伯 @America/Winnipeg
Halifax; 哈利法克斯 @America/Halifax
[Mexico] @America/Mexico_City
Mexico City; 墨西哥城
Cancun; 坎昆 @America/Cancun
[Cuba] Cuba; 古巴 @America/Havana
Havana; 哈瓦那
[Panama] Panama; 巴拿马; 巴拿馬 @America/Panama
[Brazil] @America/Sao_Paulo
Sao Paulo; 圣保罗; 聖保羅
Rio de Janeiro; 里约热内卢; 里约; 里約熱內盧
Brasilia; 巴西利亚
[Argentina] Argentina; 阿根廷 @America/Argentina/Buenos_Aires
Buenos Aires; 布宜诺斯艾利斯; 布宜諾斯艾利斯
[Chile] @America/Santiago
Santiago; 圣地亚哥; 聖地亞哥
[Peru] Peru; 秘鲁; 秘魯 @America/Lima
Lima; 利马; 利馬
[Colombia] Colombia; 哥伦比亚; 哥倫比亞 @America/Bogota
Bogota; 波哥大
[Venezuela] Venezuela; 委内瑞拉; 委內瑞拉 @America/Caracas
Caracas; 加拉加斯
[Uruguay] Uruguay; 乌拉圭; 烏拉圭 @America/Montevideo
Montevideo; 蒙得维的亚
[Australia] @Australia/Sydney
Sydney; 悉尼; 雪梨
Canberra; 堪培拉; 坎培拉
Melbourne; 墨尔本; 墨爾本 @Australia/Melbourne
Brisbane; 布里斯班 @Australia/Brisbane
Gold Coast; 黄金海岸; 黃金海岸 @Australia/Brisbane
Perth; 珀斯; 伯斯 @Australia/Perth
Adelaide; 阿德莱德; 阿德萊德 @Australia/Adelaide
Darwin; 达尔文 @Australia/Darwin
Hobart; 霍巴特 @Australia/Hobart
[New Zealand] New Zealand; 新西兰; 新西蘭; 紐西蘭 @Pacific/Auckland
Auckland; 奥克兰; 奧克蘭
Wellington; 惠灵顿; 威靈頓
Christchurch; 基督城
Queenstown; 皇后镇
[Fiji] Fiji; 斐济; 斐濟 @Pacific/Fiji
"""
