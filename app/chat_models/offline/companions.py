"""Names that a question lists beside the places that are known: ``Blorptown`` in ``in Blorptown and Paris``."""

import re
from collections.abc import Iterator

from app.chat_models.offline.vocabulary import concepts_in

__all__ = ["companions"]

_MARK = "\N{OBJECT REPLACEMENT CHARACTER}"
_MOST_SPANS = 60
_CAPITAL = r"[A-Z][\w'’.-]*(?: [A-Z][\w'’.-]*){0,3}"
_LATIN = (
    re.compile(rf"\b(?:in|at|for|of|near)\s+({_CAPITAL})(?=\s*(?:[,&?.!]|and\b|or\b|$))"),
    re.compile(rf"{_MARK}\s*(?:,\s*and\b|,\s*or\b|,|and\b|or\b|&)\s*(?:in\s+)?({_CAPITAL})"),
    re.compile(rf"({_CAPITAL})\s*(?:,\s*and\b|,\s*or\b|,|and\b|or\b|&)\s*(?:in\s+)?{_MARK}"),
    re.compile(rf"\bin\s+([a-z][a-z'-]+)\s*(?:,|and\b|or\b|&)\s*(?:in\s+)?{_MARK}"),
    re.compile(rf"{_MARK}\s*(?:,\s*and\b|and\b|or\b|&)\s*(?:in\s+)?([a-z][a-z'-]+)(?=\s*(?:[?!.]|$))"),
)
_WITH = r"(?:和|与|與|跟|及|以及|、|,)"
_CHINESE = (
    re.compile(rf"{_MARK}{_WITH}\s*([㐀-鿿·]{{2,12}})"),
    re.compile(rf"([㐀-鿿·]{{2,12}}?){_WITH}\s*{_MARK}"),
)
_CHINESE_END = re.compile(
    r"现在|現在|当前|目前|今天|明天|后天|昨天|未来|接下来|最近|这周|本周|下周|周末|早上|晚上|下午|分别|各自|各是|都|的|时间|時間"
    r"|天气|天氣|气温|几点|幾點|会不会|会下|下雨|下雪|怎么|如何|什么|呢|吗|[0-9一二两三四五六七八九十]{1,3}[天日周]|和|与|與|跟|及"
)
_CHINESE_START = re.compile(
    r"^(?:请问|请|麻烦|帮我|帮忙|给我|告诉我|告诉|我想知道|想知道|我想|查询一下|查询|查一下|查查|查|看一下|看看|说说"
    r"|一下|今天|明天|后天|现在|当前|目前|未来|在)+"
)
_NO_CHINESE = re.compile(
    r"[我你您他她它这那哪谁吗呢吧啊]|以后|之后|还有|另外|同时|比较|翻译|语$|文$|度$|率$|速$|区$|是否|可以|多少"
)
_NO_LATIN = re.compile(
    r"\b(?:the|a|an|me|us|my|your|this|that|these|it|its|i|you|we|they|what|which|who|how|when|where|why|will|would|is"
    r"|are|do|does|can|could|please|thanks|thank|tell|show|give|find|get|check|compare|translate|say|also|then|there"
    r"|here|now|today|tomorrow|tonight|yesterday|week|weekend|month|year|days?|hours?|minutes?|morning|evening|night"
    r"|afternoon|noon|midnight|monday|tuesday|wednesday|thursday|friday|saturday|sunday|january|february|march|april"
    r"|may|june|july|august|september|october|november|december|celsius|fahrenheit|utc|gmt|back|more|so|on|in|at|to"
    r"|from|for|by|both|general|detail|details|total|short|english|chinese|french|german|spanish|japanese|korean)\b"
)


def companions(text: str, spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Find the names listed beside what is known in a text, as spans.

    Args:
        text: The question as written, with what it only quotes blank.
        spans: Where the known places stand.
    """
    for start, end in spans[:_MOST_SPANS]:
        text = text[:start] + _MARK * (end - start) + text[end:]
    for pattern in _LATIN:
        for match in pattern.finditer(text):
            if not _NO_LATIN.search(match[1].lower()) and not _is_about_something(match[1]):
                yield match.start(1), match.start(1) + len(match[1].rstrip(" .,"))
    for pattern in _CHINESE:
        for match in pattern.finditer(text):
            yield from _chinese(match)


def _chinese(match: re.Match[str]) -> Iterator[tuple[int, int]]:
    opening = _CHINESE_START.match(match[1])
    start = opening.end() if opening else 0
    ending = _CHINESE_END.search(match[1], start)
    name = match[1][start : ending.start() if ending else len(match[1])]
    if len(name) >= 2 and not _NO_CHINESE.search(name) and not _is_about_something(name):
        yield match.start(1) + start, match.start(1) + start + len(name)


def _is_about_something(text: str) -> bool:
    return any(True for _ in concepts_in(text.lower()))
