"""The words that the offline model knows: what they mean for any tool, and which say nothing about the tool."""

import re
from collections.abc import Iterator

# A concept and the words for it: a question is led to a tool that uses any other word for the same concept.
_CONCEPTS = """
weather: forecast temperature rain rainy snow snowy sunny cloudy foggy wind windy storm humidity umbrella coat jacket
cold colder hot hotter warm warmer degrees 天气 气温 气象 预报 下雨 下雪 降雨 降雪 刮风 台风 暴雨 晴天 多云 多少度 几度
冷 热 暖和 凉快 温度 湿度 雨 雪 带伞 雨伞 外套 穿什么; time: clock hour timezone night day date weekday 日期 几号
星期几 周几 时间 几点 几点钟 时刻 时区; date: day weekday calendar 日期 几号 星期几 周几; translate: translation
translator say mean 翻译 译成 译为 译文 怎么说 怎么讲 怎么写 翻成; exchange: convert conversion change currency rate
兑换 换汇 换成 汇率 货币 换算 能换 换; dice: die 骰子; roll: throw 掷; order: 订单; parcel: package shipment delivery
delivered arrived 快递 包裹 物流 运单; track: trace follow 追踪 跟踪; room: 房间 会议室; book: reserve reservation
booking 预订 预定 订; event: appointment 日程 活动; message: sms 消息 短信; mail: email 邮件; send: 发送 发 寄; stock:
share 股票 股价; price: cost quote 价格 多少钱 报价; customer: client 客户; employee: staff 员工; file: 文件; delete:
remove erase 删除 删掉; cancel: 取消 撤销; create: make add new 创建 新建 添加; update: change modify edit 修改 更新
更改 改名为 改名成 改名 改叫 改为 改成; search: find lookup query 搜索 查找 检索 查询; list: 列出 列表 清单; compute:
calculate calculation 计算 算; light: lamp 灯; switch: turn 开关 打开 关闭 关掉 开 关; ship: 发货; todo: task 待办
任务; add: plus 加; set: wake 设 设置 设定 调到 叫醒; status: state 状态; alarm: wake 闹钟 叫醒; weight: 体重; height:
身高
"""
_ACTIONS = "#search #list #create #update #delete #cancel #send #book #compute #switch #track #status #set #add read"
ACTIONS = frozenset(_ACTIONS.split())
"""What many tools do: such a word alone does not say which one is meant."""
_FUNCTION_WORDS = """
a an the this that these those it its i me my we us our you your he she they them his her their there here of in on at
to into for from by with about over and or but also then so as is are be been am do does will would can could shall
should may might must have has get give gives tell show let see look check know want need like ask please pls plz
thanks thank hello hi hey ok okay now right currently current just today tonight what whats which when where who whom
how much many going go both each between per some any all up out if got one ones said use using run help try question
answer it's what's i'm i'd you're let's how's today's there's s again same too more most compare than u r visiting
travelling trip named called number no id value name result reply sentence well plan take bring first api function
method tool returns return information info data specified given general text based service user users city place
content needed needs translated such fetch days range rn local yet already detail equal equals
请问 请告诉我 告诉我 请帮我 帮我看下 请 麻烦 帮我 帮忙 给我 为我 替我 你能 能不能 可不可以 可以 能否 能 我想知道 我想
想知道 想 知道 我要 要 查一下 看一下 查查 看看 查看 查询 查 看 问一下 问 一下 一遍 说说 讲讲 现在 当前 目前 此刻 是多少
是什么 是不是 是 什么 怎么样 怎样 如何 怎么 多少 哪个 哪里 哪儿 哪些 有没有 有 没有 吗 呢 吧 啊 呀 了 的 地 得 在 到 去
从 由 往 把 将 被 和 与 跟 以及 及 还有 并且 并 然后 最后 首先 先 再 也 都 又 那么 那 这 这个 那个 那边 那里 那儿 这里
当地 外面 里 不 个 会不会 会 更 最 比较 比 谢谢 你好 您好 您 你 我们 我 他 她 它 咱们 分别 各自 各 一共 还是 或者 或 年
为 用 出差 旅游 出门 出去 出发 玩 需要 应该 该 厚 薄 情况 信息 内容 以下 下面 下列 上面 刚才 结果 回答 句话 句子 编号
号 位 做 来 给 让 叫 名 谁 时候 所有 全部 成 些 每 哪 几 说 未来 接下来 是否 穿 带 一个 一 两 共 向 就 计划 等于
"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
"""Words that may stand in any question or description and say nothing about the tool."""
# How the values of an enumeration are said in other words.
_SYNONYMS = """
celsius c metric: 摄氏度 摄氏 celsius; fahrenheit f imperial: 华氏度 华氏 fahrenheit; small: 小杯 小号; medium: 中杯
中号; large big: 大杯 大号; kilometer km: 公里 千米 kilometers km; mile mi: 英里 mile; meter m: 米 meter; foot feet ft:
英尺 feet foot; kilogram kg: 公斤 千克 kilogram; pound lb: 磅 pound; liter litre l: 升 liter litre
"""


def stem(word: str) -> str:
    """An English word without its ending: ``orders`` is ``order``, ``converting`` is ``convert``."""
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("es", "e"), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word.removesuffix(ending) + instead
            break
    return word.removesuffix("e") if len(word) > 3 else word


def concepts_of(word: str) -> frozenset[str]:
    """The concepts that a word means, each behind a ``#``; none for most words."""
    return _CONCEPTS_OF.get(stem(word) if word.isascii() else word, frozenset())


def _rows(table: str) -> Iterator[tuple[list[str], list[str]]]:
    for row in re.split(r";\s", table):
        names, _, words = row.partition(":")
        yield names.split(), words.split()


_CONCEPTS_OF: dict[str, frozenset[str]] = {}
for (_name,), _words in _rows(_CONCEPTS):
    for _key in (stem(each) if each.isascii() else each for each in (_name, *_words)):
        _CONCEPTS_OF[_key] = _CONCEPTS_OF.get(_key, frozenset()) | {f"#{_name}"}
SYNONYMS = {name: words for names, words in _rows(_SYNONYMS) for name in names}
HAN_WORDS = [word for _, words in _rows(_CONCEPTS) for word in words if len(word) > 1 and not word.isascii()]
