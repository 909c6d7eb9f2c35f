"""General words in Chinese and English, by what they are about, and what a text is about."""

import re
from collections.abc import Iterator, Mapping
from functools import cache

from app.folding import folded

__all__ = [
    "TRANSLATE",
    "TRANSLATE_VERB",
    "TermWeights",
    "concepts_in",
    "folded_words",
    "is_concept",
    "terms",
    "words_of",
]

TermWeights = Mapping[str, float]

TRANSLATE = "translate"
TRANSLATE_VERB = re.compile(
    r"翻译|翻譯|翻成|译成|译为|譯成|[中英日韩法德俄汉]译[中英日韩法德俄汉]"
    r"|\b(?:translate|translation|translating|how (?:do|would|can) (?:you|i|we) say)\b"
)

CONCEPTS = """
weather: 天气 天氣 气温 氣溫 气象 温度 预报 預報 下雨 下雪 降雨 降水 刮风 晴天 多云 冷不冷 热不热
weather: weather forecast temperature rain raining rainy snow sunny cloudy windy humidity
time: 时间 時間 几点 幾點 时刻 钟点 时差 時差 什么时候了 time clock oclock timezone
date: 日期 几号 幾號 几月几 星期几 星期幾 周几 礼拜几 date weekday calendar
translate: 翻译 翻譯 翻成 译成 译为 譯成 译文 怎么说 用英语说 translate translation translating translator
dice: 骰子 色子 筛子 掷 dice die roll
order: 订单 訂單 order
delivery: 快递 物流 包裹 运单 发货 配送 delivery shipment parcel package shipping tracking courier
alarm: 闹钟 鬧鐘 叫醒 alarm wake
reminder: 提醒 备忘 remind reminder
timer: 计时 倒计时 timer countdown stopwatch
calendar: 日程 日历 行程 schedule appointment
meeting: 会议 開會 开会 meeting conference
mail: 邮件 郵件 邮箱 email mail
message: 短信 消息 sms message
phone: 电话 電話 拨打 phone telephone dial
stock: 股票 股价 股市 stock stocks shares ticker
currency: 汇率 匯率 外汇 货币 换汇 兑换 currency exchange forex
convert: 换算 转换 轉換 convert conversion
price: 价格 價格 多少钱 报价 price cost quote
calculate: 计算 計算 算一下 求和 加法 乘法 calculate calculator compute arithmetic sum add multiply
news: 新闻 新聞 头条 资讯 news headline headlines
search: 搜索 搜寻 检索 查找 search find lookup query
light: 灯 燈 照明 light lamp lights lamps
music: 音乐 音樂 歌曲 播放 music song songs
flight: 航班 机票 飞机 flight flights airline plane
train: 火车 高铁 列车 车次 train railway
hotel: 酒店 宾馆 旅馆 hotel
restaurant: 餐厅 饭店 餐馆 restaurant
map: 地图 路线 导航 怎么走 map route directions navigate navigation
distance: 距离 多远 distance
user: 用户 用戶 user account
customer: 客户 顾客 customer client
employee: 员工 雇员 employee staff
product: 商品 产品 货物 product item
stockroom: 库存 存货 inventory warehouse
payment: 支付 付款 转账 余额 payment pay transfer balance
invoice: 发票 账单 invoice bill receipt
ticket: 工单 ticket issue
password: 密码 口令 password passphrase
random: 随机 隨機 random
joke: 笑话 joke
poem: 诗 poem poetry
picture: 图片 照片 图像 画 picture image photo draw
file: 文件 文档 file document
note: 笔记 便签 note notes
todo: 待办 任务 todo task tasks
book: 图书 书籍 book books
movie: 电影 影片 movie film
sport: 比赛 比分 match score sport
health: 健康 体重 步数 health weight steps
cancel: 取消 撤销 cancel
delete: 删除 刪除 移除 delete remove
summary: 总结 摘要 概括 summary summarize summarise
holiday: 节假日 假期 放假 holiday holidays
lunar: 农历 黄历 lunar
air: 空气质量 雾霾 air aqi pollution
"""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_STOP = _words("""
    a an and any api are as at be by can could current currently data do does for from function functions general
    get given gives has have helper how i if in info information input into is it its let like list me method my
    name names need now number numbers object of on one or our output parameter please provide range ranges request
    response result return returns service services set show some specific specified specify string such tell text
    that the their them there this to tool tools up us use used user using utility value values want we what whats
    when where which who why will with would you your city cities place places country location help day days hello
    hi thanks
""")
_STOP_PAIRS = _words("""
    什么 怎么 怎样 现在 请问 告诉 一下 我的 你好 可以 帮我 需要 这个 那个 多少 查询 获取 指定 城市 的是
    是的 是什 么样 们的 今天 明天 给我 用于 工具 如果 进行 使用 返回 一个 参数 以及 或者 例如 比如
""")
_LONGEST = 2000
_PIECE = re.compile(r"[a-z]+|[㐀-鿿]+")
_SUBWORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^A-Za-z0-9㐀-鿿]+")


def terms(text: str) -> dict[str, int]:
    """What a folded text is about, each with its first position: concepts, other words, other pairs of characters."""
    found: dict[str, int] = {}
    for concept, position in concepts_in(text):
        _note(found, f"concept:{concept}", position)
    for piece in _PIECE.finditer(text):
        for term, position in _plain_terms(piece[0]):
            _note(found, term, piece.start() + position)
    return found


def concepts_in(text: str) -> Iterator[tuple[str, int]]:
    """The concepts that a folded text names, with where it does."""
    latin, chinese = _concept_words()
    for word in re.finditer(r"[a-z]+", text):
        concept = latin.get(word[0]) or latin.get(_stem(word[0]))
        if concept is not None:
            yield concept, word.start()
    for match in chinese.finditer(text):
        yield _by_chinese_word()[match[0]], match.start()
    phrase = TRANSLATE_VERB.search(text)
    if phrase is not None:
        yield TRANSLATE, phrase.start()


def words_of(name: str) -> str:
    """An identifier in words: ``getCityTime`` and ``get_city_time`` become ``get city time``."""
    return folded(" ".join(part for part in _SUBWORD.split(name) if part))


def folded_words(text: str) -> str:
    """A text, identifiers in it in words, folded; bounded."""
    return words_of(text[:_LONGEST])


def is_concept(term: str) -> bool:
    """Whether a term is a concept."""
    return term.startswith("concept:")


def _note(found: dict[str, int], term: str, position: int) -> None:
    found[term] = min(position, found.get(term, position))


def _plain_terms(piece: str) -> Iterator[tuple[str, int]]:
    if piece[0].isascii():
        stem = _stem(piece)
        known = _concept_words()[0]
        if len(piece) > 1 and piece not in _STOP and stem not in _STOP and not (piece in known or stem in known):
            yield f"word:{stem}", 0
        return
    for position in range(len(piece) - 1):
        pair = piece[position : position + 2]
        if pair not in _STOP_PAIRS:
            yield f"pair:{pair}", position


def _stem(word: str) -> str:
    for ending in ("ing", "ies", "es", "ed", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            return word[: -len(ending)] + ("y" if ending == "ies" else "")
    return word


@cache
def _concept_words() -> tuple[dict[str, str], re.Pattern[str]]:
    latin = {word: concept for concept, words in _rows() for word in words if word.isascii()}
    chinese = sorted(_by_chinese_word(), key=len, reverse=True)
    return latin, re.compile("|".join(chinese))


@cache
def _by_chinese_word() -> dict[str, str]:
    return {word: concept for concept, words in _rows() for word in words if not word.isascii()}


def _rows() -> Iterator[tuple[str, list[str]]]:
    for line in CONCEPTS.strip().splitlines():
        concept, _, words = line.partition(":")
        yield concept, words.split()
