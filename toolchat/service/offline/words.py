"""The words that the offline model knows: concepts of any tool, and words that say nothing about the tool."""

import re
from collections.abc import Iterator
from functools import lru_cache

# A concept and the words for it: a question is led to a tool that uses any other word for the same concept.
_CONCEPTS = """
status: state 状态; set: 设 设置 设定; weather: forecast temperature rain rainy raining snow snowing sunny cloudy
windy humidity umbrella coat jacket cold colder hot hotter warm warmer degrees 天气 气温 气象 预报 下雨 下雪 刮风 台风
多云 多少度 几度 冷 热 暖和 温度 湿度 雨 雪 带伞 雨伞 外套 穿什么; time: clock hour timezone late night day 时间 几点
几点钟 时刻 时区; date: day weekday calendar 日期 几号 星期几 周几; translate: translation say mean 翻译 译成 译为
译文 怎么说 怎么讲 怎么写 翻成 意思; exchange: convert conversion change currency rate 兑换 换汇 汇率 货币 换算 换成
能换; order: 订单; parcel: package shipment delivery delivered arrived tracking 快递 包裹 物流; book: reserve
reservation booking 预订 预定; send: 发送 发 寄; message: 消息 短信; price: cost 价格 多少钱 报价; stock: share 股票;
customer: client 客户; employee: staff 员工; file: 文件; delete: remove 删除 删掉; create: make add new 创建 新建
添加; update: change modify edit 修改 更新 更改 改名为 改名成 改为; search: find lookup 搜索 查找 检索 查询; list:
列出 列表 清单; compute: calculate 计算; switch: turn 开关 打开 关闭; light: 灯; alarm: wake 闹钟 叫醒; weight: 体重;
height: 身高; hours: 几点 营业; roll: throw 掷; die: dice 骰子; track: trace 追踪 跟踪 到哪; room: 会议室 房间; faq:
常见问题; refund: 退款
"""
_ACTIONS = "#search #list #create #update #delete #send #book #compute #switch #track #set read"
ACTIONS = frozenset(_ACTIONS.split())
"""What many tools do: such a word alone does not say which one is meant."""
_FUNCTION_WORDS = """
a an the this that these those it its i me my we us our you your he she they them his her their there here of in on at
to into for from by with about over and or but also then so as is are be been am do does will would can could shall
should may might must has have get give gives tell show let see look check know want need like ask please pls plz
thanks thank hello hi hey ok okay now right currently current just today tonight what whats which when where how much
many going go both each between per some any all up out if got one ones said use using run help try question answer
it's what's i'm i'd you're let's how's today's there's where's s again same too more most than u r looking who yet
already local plan content named called number no id value name result unit well plan bring nice come been where not
请问 请告诉我 告诉我 请帮我 帮我看下 请 麻烦 帮我 帮忙 给我 为我 你能 能不能 可不可以 可以 能否 能 我想知道 我想
想知道 想 知道 我要 要 内容 查一下 看一下 查查 看看 查看 查询 查 看 问一下 问 一下 一遍 说说 现在 当前 目前 此刻
是多少 是什么 是不是 是 什么 怎么样 怎样 如何 怎么 多少 哪个 哪里 哪儿 哪些 有没有 有 没有 吗 呢 吧 啊 呀 了 的 地 得
在 到 去 从 由 往 把 将 被 和 与 跟 以及 及 还有 并且 并 然后 再 也 都 又 那么 那 这 这个 那个 那边 那里 那儿 这里
当地 外面 里 不 个 会不会 会 更 最 比较 比 谢谢 你好 您好 您 你 我们 我 分别 各自 各 还是 或者 或 年 为 用 出差 旅游
应该 该 厚 情况 信息 以下 下面 编号 号 位 来 给 让 叫 谁 时候 所有 全部 成 每 哪 几 说 未来 接下来 是否 穿 带 一个 一
共 向 就 计划 等于 找 吃 人 我的
"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
"""Words that may stand in any question or description and say nothing about the tool."""
# How the values of an enumeration are said in other words.
_SYNONYMS = """
celsius c: 摄氏度 摄氏 celsius; fahrenheit f: 华氏度 华氏 fahrenheit; kilometer km: 公里 千米 kilometers kilometres
km; mile mi: 英里 miles; meter metre m: 米 meters metres; foot feet ft: 英尺 feet foot; inch: 英寸 inches; kilogram
kg: 公斤 千克; pound lb: 磅 pounds
"""


def _rows(table: str) -> Iterator[tuple[list[str], list[str]]]:
    for row in re.split(r";\s", table):
        names, _, words = row.partition(":")
        yield names.split(), words.split()


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """An English word without its ending: ``orders`` is ``order``, ``converting`` is ``convert``."""
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("es", "e"), ("s", "")):
        if word.isascii() and word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word.removesuffix(ending) + instead
            break
    return word.removesuffix("e") if len(word) > 3 and word.isascii() else word


_CONCEPTS_OF: dict[str, frozenset[str]] = {}
for (_name,), _words in _rows(_CONCEPTS):
    for _key in map(stem, (_name, *_words)):
        _CONCEPTS_OF[_key] = _CONCEPTS_OF.get(_key, frozenset()) | {f"#{_name}"}
SYNONYMS = {name: words for names, words in _rows(_SYNONYMS) for name in names}
HAN_WORDS = [word for _, words in _rows(_CONCEPTS) for word in words if not word.isascii()]


def terms_of(word: str) -> frozenset[str]:
    """What a word can be matched by: its stem and its concepts, each behind a ``#``."""
    return _CONCEPTS_OF.get(stem(word), frozenset()) | {stem(word)}
