"""What a plan leaves out or cannot do, in sentences: nothing that was asked is dropped in silence."""

import re
from collections.abc import Callable, Iterable, Iterator

from app.chat_models.offline.numbers import horizon
from app.chat_models.offline.question import Question
from app.chat_models.offline.roles import Role, role_of
from app.chat_models.offline.schemas import Parameter
from app.chat_models.offline.vocabulary import concepts_in

__all__ = [
    "about_days",
    "about_moments",
    "about_units",
    "left_out",
    "list_unchanged",
    "unanswered",
    "unknown_languages",
    "unknown_places",
]

_PAST = re.compile(
    r"\byesterday\b|\blast (?:week|weekend|month|year|night|monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b"
    r"|\b(?:past|previous) (?:[a-z0-9]+ )?(?:day|week|month)s?\b|\b(?:days?|weeks?|months?) ago\b"
    r"|昨天|昨日|昨晚|前天|上周|上週|上个?星期|上个?礼拜|上个月|过去|[天日周]之?以?前"
)
_ODD_DAYS = re.compile(
    r"(?<![0-9a-z])[-−负負]\s?[0-9一二三四五六七八九十]+(?:\.[0-9]+)?[\s-]*(?:days?\b|[天日])"
    r"|[0-9]+\.[0-9]+[\s-]*(?:days?\b|[天日])|半天|\bhalf a day\b|(?<![0-9.])0\s*(?:days?\b|[天日])"
    r"|(?:minus|negative) [a-z0-9]+ days?\b"
)
_OTHER_MOMENT = re.compile(
    r"\b(?:hours?|minutes?|hrs?|mins?) (?:from now|later|ago|ahead)\b"
    r"|\bin (?:[0-9.]+|an?|[a-z]+) (?:hours?|minutes?)\b"
    r"|\b(?:when|if) it(?:'s| is| will be)\b(?=.*[0-9])"
    r"|\bat (?:[0-9]{1,2}(?::[0-9]{2})? ?(?:am|pm)|[0-9]{1,2}:[0-9]{2})"
    r"|(?:小时|小時|钟头|分钟|分鐘)\s*(?:以后|之后|以後|之後|后|後|以前|之前|前)|[点點时]\s*(?:的时候|时)"
    r"|当.{1,12}[0-9一二三四五六七八九十]点"
)
_VERB = (
    r"(?:\b(?:tell|sing|write|give|show|play|draw|make|recite|find|book|buy|order|send)\b"
    r"|讲|说|唱|写|画|放|播|来|发|订|买|推荐|(?P<open>\b(?:who|why)\b|谁|为什么))"
)
_WISHES = re.compile(_VERB)
_WISH = re.compile(rf"\s*(?:(?:please|also|can you|could you|请|帮我|给我|为我)\s*)*{_VERB}")
_EDGES = " \n,，.。;；、?？!！"
_NEXT = re.compile(r"(?:\b(?:and|also|then|plus)|还有|并且?|然后|另外|同时|[再和])$")
_COMES_ALONG = {"time", "date", "calendar", "search", "translate"}
_FAHRENHEIT = re.compile(r"华氏|華氏|\bfahrenheit\b|[°˚º]\s?f\b|℉")
_OTHER_DAY = re.compile(r"下个?(?:周|週|星期|礼拜)|下个月|\bnext (?:week|month|year|[a-z]+day)\b")


def unknown_places(names: Iterable[str], chinese: bool) -> Iterator[str]:
    """Say which places of a question have no known time zone."""
    for name in names:
        yield (
            f"我不知道“{name}”在哪个时区，没有查它。"
            if chinese
            else (f'I do not know the time zone of "{name}", so I did not look it up.')
        )


def left_out(names: list[str], most: int, chinese: bool) -> Iterator[str]:
    """Say what came after as many look-ups as one question gets."""
    if names:
        shown = ("、" if chinese else ", ").join(names[:20]) + ("……" if chinese else ", ...") * (len(names) > 20)
        yield (
            f"一次最多查 {most} 个，没有查：{shown}。"
            if chinese
            else (f"I look up at most {most} at a time and left out: {shown}.")
        )


def list_unchanged(chinese: bool) -> Iterator[str]:
    """Say that single items of a list were neither added nor changed."""
    yield (
        "我没有改动清单：我只会按“待办：第一步；第二步”写一份新的。"
        if chinese
        else ('I did not change the list: I can only write a new one, as in "Todo: first step; second step".')
    )


def unknown_languages(names: Iterable[str], chinese: bool) -> Iterator[str]:
    """Say which languages of a question are in no table."""
    for name in names:
        yield (
            f"我不认识“{name}”这种语言，没有翻译成它。"
            if chinese
            else (f'I do not know the language "{name}", so I did not translate into it.')
        )


def about_days(parameters: list[Parameter], question: Question) -> Iterator[str]:
    """Say which days a tool can tell about where the question is about others."""
    days = next((each for each in parameters if role_of(each) is Role.DAYS), None)
    if days is None:
        return
    low, high, chinese = days.number("minimum"), days.number("maximum"), question.chinese
    if _PAST.search(question.command):
        yield (
            "过去的日子查不到：这里只有从今天起的预报。"
            if chinese
            else ("It cannot look back: what there is begins with today.")
        )
    wanted = horizon(question.command)
    too_many = wanted is not None and high is not None and wanted.count > high
    if high is not None and (too_many or _ODD_DAYS.search(question.command)):
        first = 1 if low is None else low
        yield (
            f"天数只能是 {first:g} 到 {high:g} 的整数，最多 {high:g} 天（从今天算起）。"
            if chinese
            else (f"The limit is {high:g} days from today on, in whole days from {first:g}.")
        )


def about_moments(parameters: list[Parameter], question: Question) -> Iterator[str]:
    """Say that a clock tells the present time where the question is about another moment."""
    roles = {role_of(each) for each in parameters}
    if Role.TIME_ZONE not in roles or not roles <= {Role.TIME_ZONE, Role.PLACE}:
        return
    if any(each.search(question.command) for each in (_OTHER_MOMENT, _PAST, _OTHER_DAY)):
        yield (
            "我只能告诉你现在的时间，不能推算别的时刻。"
            if question.chinese
            else ("I can only tell the current time, not work out another moment.")
        )


def about_units(parameters: list[Parameter], question: Question) -> Iterator[str]:
    """Say that a tool which takes a place and no unit answers in its own where the question wants Fahrenheit."""
    takes_a_unit = any(re.search(r"\bunits?\b|fahrenheit|华氏|单位", each.about) or each.choices for each in parameters)
    if Role.PLACE in map(role_of, parameters) and not takes_a_unit and _FAHRENHEIT.search(question.command):
        yield (
            "数值用的是工具自己的单位：我不换算成华氏度。"
            if question.chinese
            else ("The figures are in the tool's own units: I do not convert them to Fahrenheit.")
        )


def unanswered(question: Question, covered: Callable[[str], bool]) -> Iterator[str]:
    """Say which parts of a question ask for something that none of its tools is about.

    Args:
        question: The question.
        covered: Whether a chosen tool is about a concept.
    """
    for start, end in question.clauses() if _WISHES.search(question.command) else ():
        wish = _WISH.match(question.command, start, end)
        about = {concept for concept, _ in concepts_in(question.command[start:end])} - _COMES_ALONG if wish else set()
        if wish and (about or wish["open"]) and not any(map(covered, about)):
            part = _NEXT.sub("", question.raw[start:end].strip(_EDGES)).strip(_EDGES)
            yield (
                f"没有回答“{part}”：没有适合它的工具。"
                if question.chinese
                else (f'I did not answer "{part}": no tool fits it.')
            )
