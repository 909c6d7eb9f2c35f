"""Templates of the offline model's sentences, in Chinese and English."""

from collections.abc import Iterable

__all__ = ["has_template", "listed", "render"]

# Key, Chinese, English; two strokes begin another line.
_SENTENCES = """
unknown_zone | 我不知道“{name}”在哪个时区。 | I do not know the time zone of "{name}".
unknown_language | 我不认识“{name}”这种语言，没有翻译成它。 |\
 I do not know the language "{name}", so I did not translate into it.
left_out | 一次最多查 {most} 个，没有查：{names}。 | I look up at most {most} at a time and left out: {names}.
list_unchanged | 我没有改动清单：我只会按“待办：第一步；第二步”写一份新的。 |\
 I did not change the list: I can only write a new one, as in "Todo: first step; second step".
no_past | 过去的日子查不到：这里只有从今天起的预报。 | It cannot look back: what there is begins with today.
calendar_day | 我推算不出那一天离今天有多远：查到的从今天算起。 |\
 I cannot work out how far away that day is: what there is begins with today.
days_limit | 最多 {high} 天（从今天算起）。 | The limit is {high} days from today on.
only_now | 我只能告诉你现在的时间，不能推算别的时刻。 | I can only tell the current time, not work out another moment.
no_fahrenheit | 数值用的是工具自己的单位：我不换算成华氏度。 |\
 The figures are in the tool's own units: I do not convert them to Fahrenheit.
not_judged | 我是离线模型，只报告查到的数据：比较和判断要由你自己或真正的大模型来做。 |\
 As the offline model I only report data; comparing and judging it is left to you or to a real model.
no_tools | 我是离线模型：没有联网，这次也没有可用的工具，所以{what}。//{remedy}设置 DASHSCOPE_API_KEY 或\
 OPENAI_API_KEY，重新启动后由真正的大模型回答。 |\
 I am the offline model: I have no network and was given no tools, so I {what}.{remedy}//With DASHSCOPE_API_KEY\
 or OPENAI_API_KEY set, and after a restart, a real model answers.
remedy | 想得到真实的答案，可以把地址末尾的 /chat 换成 /chat-tool-function 或 /chat-tool-method，让工具去查；也可以 |\
 //For a real answer, replace /chat at the end of the address by /chat-tool-function or /chat-tool-method.
cannot_answer | 没有办法回答这个问题 | cannot answer this question
cannot_time | 不知道现在几点 | cannot know what time it is
cannot_date | 不知道今天的日期 | cannot know today's date
cannot_weather | 不知道天气怎么样 | cannot know the weather
cannot_translate | 没有办法翻译 | cannot translate
what_i_am | {greeting}我是离线模型，没有密钥也能用：我不会聊天，但能借助这里的工具回答问题。 |\
 {greeting} I am the offline model and need no key: I cannot chat, but I answer with the tools here.
welcome | 不客气！ | You are welcome!
none_fits | 我是离线模型，只能借助工具回答，而这里的工具都不适合这个问题。//要自由对话，请设置\
 DASHSCOPE_API_KEY 或 OPENAI_API_KEY，接入真正的大模型。 |\
 I am the offline model: I can only answer with tools, and none of those here fits this.//For free\
 conversation, set DASHSCOPE_API_KEY or OPENAI_API_KEY, so that a real model answers.
try | 比如可以这样问： | You could ask, for example:
missing | 要用 {tool} 回答，还缺少：{details}。请补充后再问一次，例如这样写：{form} |\
 To answer with {tool} I still need {details}. Please ask again with it, for example like this: {form}
you_asked | 你刚才问的是：“{text}” | You asked: "{text}"
nothing_asked | 在这之前你没有问过别的。 | You asked nothing before this.
done | {tool} 已完成。 | {tool} is done.
returned | {tool} 的结果：{value} | {tool} returned {value}.
nothing | {tool} 没有返回任何内容。 | {tool} returned nothing.
failed | 没有查到结果：{tool} 报告说 {reason} | The look-up failed: {tool} reported: {reason}
rejected | 没有执行 {tool}：这次调用被拒绝了（{reason}）。 | {tool} was not run: the call was rejected ({reason}).
hint | 。提示：{hint} | . Hint: {hint}
inside | {name}（{inside}） | {name} ({inside})
no_such_day | 没有取得所问那一天的数据。{covered} | There is no data for that very day. {covered}
covered | 取得的是 {first} 到 {last} 的。 | What there is covers {first} to {last}.
in_all | ……共 {count} 项 | ... {count} in all
no_step | 没有适合这一步的工具。 | None of the tools can do this step.
pending | {step}（仍是待办） | {step} (still pending)
clock | {start} {day} {time}（时区 {where}）。 | {start} {time} on {day} ({where}).
now_in | {place}{gap}现在是 | In {place} it is
day | {year}年{month}月{day}日 {weekday} | {weekday}, {day} {name} {year}
later_day | {named}是{year}年{month}月{day}日，{weekday}。 | {named} is {weekday}, {day} {name} {year}.
in_days | {count}天后 | In {count} days it
in_2_days | 后天 | The day after tomorrow
"""
# Key, Chinese, English, for what is short; what an argument is called that a question does not give, by its role.
_WORDS = """
hello 你好！ Hello!; no_reason 原因不明 no reason given; now 现在是 It is; in_1_days 明天 Tomorrow; yes 是 yes; no 否 no
Monday 星期一 Monday; Tuesday 星期二 Tuesday; Wednesday 星期三 Wednesday; Thursday 星期四 Thursday
Friday 星期五 Friday; Saturday 星期六 Saturday; Sunday 星期日 Sunday
time_zone 城市或时区 the city or time zone; place 地点 the place; text 要处理的文字 the text; language 语言 the language
days 天数 the number of days; number 数值 a number; id 编号 the id; date 日期 the date; time_of_day 时间 the time
date_time 日期和时间 the date and time; moment 什么时候 when; duration 时长 how long
"""
_SAID = {"colon": ("：", ": "), "comma": ("，", ", ")}
for _entry in (
    *(_row.replace("//", "\n").split(" | ") for _row in _SENTENCES.strip().splitlines()),
    *(_word.split(maxsplit=2) for _word in _WORDS.strip().replace("\n", "; ").split("; ")),
):
    _SAID[_entry[0]] = (_entry[1], _entry[2])


def render(key: str, chinese: bool, **values: object) -> str:
    """A template in the requested language with its values."""
    return _SAID[key][0 if chinese else 1].format(**values)


def has_template(key: str) -> bool:
    """Whether there is a template of this name."""
    return key in _SAID


def listed(names: Iterable[str], chinese: bool) -> str:
    """Several names as a list in a sentence."""
    return ("、" if chinese else ", ").join(names)
