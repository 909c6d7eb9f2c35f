"""The offline model's sentences, in Chinese and English."""

from collections.abc import Iterable

# Key, Chinese, English; a tilde is a space at an end.
_TABLE = """
greeting | 你好！我是离线模型，不需要密钥，只会使用这里的工具{examples}。 |\
 Hello! I am the offline model: I need no key, and can only use the tools that are here{examples}.
help | 我是离线模型，可以使用这些工具：{tools}{examples}。 |\
 I am the offline model and can use these tools: {tools}{examples}.
refusal | 我是离线模型，只会使用这里的工具，这个我帮不上忙{examples}。 |\
 I am the offline model and can only use the tools that are here, so I cannot help with this{examples}.
examples | ；你可以问：{examples} | ; you could ask, for example, {examples}
no_tools | 我是离线模型，这次没有可用的工具，所以无法回答；可以换用以 /chat-tool-function 结尾的地址，\
或者设置 DASHSCOPE_API_KEY 或 OPENAI_API_KEY 后重新启动，由真正的大模型回答。 |\
 I am the offline model and was given no tools, so I cannot answer this; use an address that ends in\
 /chat-tool-function, or set DASHSCOPE_API_KEY or OPENAI_API_KEY and restart, so that a real model answers.
missing | 要用 {tool} 回答，还缺少{names}{examples}。 | To answer with {tool} I still need {names}{examples}.
proposal | 这会改动数据，请先确认：{calls}。要执行请回答“是”，或者在问题后面加上“，确认”。 |\
 This may change something, so please confirm: {calls}. Answer "yes" to run it, or end the question in ", yes".
not_run | 好的，什么都没有执行。 | All right, nothing was run.
judged | 比较和判断要由你自己或真正的大模型来做。 | Comparing and judging this is left to you or to a real model.
quote | “{text}” | "{text}"
done | {tool} 已完成。 | {tool} is done.
returned | {tool} 的结果是 {value}。 | {tool} returned {value}.
nothing | {tool} 没有返回任何内容。 | {tool} returned nothing.
failed | {tool} 没有成功：{reason}。 | {tool} failed: {reason}.
not-found | 没有找到：{reason}。 | Nothing was found: {reason}.
no-such-place | 没有找到：{reason}。 | Nothing was found: {reason}.
rejected | {tool} 被拒绝，没有执行：{reason}。 | {tool} was rejected and was not run: {reason}.
outcome-unknown | {tool} 运行到一半，服务就中断了：它可能已经生效，也可能没有。为避免重复，没有再次运行。 |\
 The service stopped while {tool} was running, so it may or may not have taken effect. It was not run again.
clock | {place}现在是 {day} {time}（时区 {zone}）。 | {place}it is {time} on {day} ({zone}).
in | {place} | In {place}~
day | {day.year}年{day.month}月{day.day}日 星期{weekday} | {day:%A}, {day.day} {day:%B} {day.year}
later | {phrase}是{day}。 |~{phrase} is {day}.
colon | ： | :~
comma | ， | ,~
or | 或者 |~or~
and | 、 | ,~
yes | 是 | yes
no | 否 | no
"""
_ROWS = (row.split(" |") for row in _TABLE.strip().splitlines())
_SENTENCES = {key: (chinese.strip(), english.strip().replace("~", " ")) for key, chinese, english in _ROWS}


def say(key: str, chinese: bool, **values: object) -> str:
    """A sentence in one of the two languages."""
    return _SENTENCES[key][not chinese].format(**values)


def listed(items: Iterable[object], chinese: bool, last: str = "and") -> str:
    """Items in a row, each in quotes."""
    return say(last, chinese).join(say("quote", chinese, text=each) for each in items)
