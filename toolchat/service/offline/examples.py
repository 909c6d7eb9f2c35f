"""Example questions: those that a tool declares, else its words and a value for each parameter as a sentence."""

import re
from collections.abc import Sequence
from itertools import islice

from toolchat.service.offline.planning import plan
from toolchat.service.offline.text import Text, is_chinese
from toolchat.service.offline.tools import SOMEBODY, SUCH_AS, OfferedTool, Parameter, words_of

# A phrase for a parameter of each role, in Chinese and English.
_TABLE = """
number | 2 | 2
date | 2030-01-31 | on 2030-01-31
time | 19:30 | at 19:30
date_time | 10分钟后 | in 10 minutes
zone | 东京 | in Tokyo
place | 巴黎 | in Paris
place source | 从巴黎 | from Paris
place target | 到罗马 | to Rome
language | 法语 | in French
language target | 成法语 | into French
currency | USD | USD
currency target | 到EUR | to EUR
id | A1 | A1
name | 王伟 | Ann
name target | 王伟 | to Ann
text | ：你好 | : hello
choice target | 到 {} | to {}
choice | {} | {}
"""
_ROWS = (row.split(" | ") for row in _TABLE.strip().splitlines())
_TECHNICAL = ("get", "function", "method", "tool")
_PHRASES = {key: (chinese, english) for key, chinese, english in _ROWS}


def examples_of(shown: Sequence[OfferedTool], tools: Sequence[OfferedTool], chinese: bool, most: int) -> list[str]:
    """Questions that call the shown tools, those of the last ones first: the user's own follow the built-in ones."""
    asked = sorted(shown, key=lambda each: (each.changes_something, -shown.index(each)))
    found = (_example(each, tools, chinese) for each in asked if not each.metadata.requires_approval)
    return list(islice(dict.fromkeys(filter(None, found)), most))


def _example(tool: OfferedTool, tools: Sequence[OfferedTool], chinese: bool) -> str:
    """A question that works, preferably in the user's language; empty if there is none."""
    declared = tool.metadata.examples
    own = [each for each in declared if is_chinese(each) == chinese]
    questions = (*own, _sentence(tool, chinese), *declared, _sentence(tool, chinese=False))
    return next((each for each in questions if any(one.tool is tool for one in plan(Text.of(each), tools).calls)), "")


def _sentence(tool: OfferedTool, chinese: bool) -> str:
    """The tool's words with a phrase for each required parameter; empty if there are no words or no phrase."""
    required = [each for each in tool.parameters if each.required and "default" not in each.schema]
    required.sort(key=lambda each: (each.role == "text", each.role != "number"))
    phrases = [_phrase(each, chinese) for each in required]
    if chinese:
        lead = re.findall("[㐀-鿿]{2,12}", tool.definition.description)[:1]
    else:
        lead = [each for each in words_of(tool.name).split() if each not in _TECHNICAL]
    if not lead or not all(phrases):
        return ""
    written = re.sub(" (?=[:：])", "", " ".join((*lead, *phrases)))
    return written[0].upper() + written[1:]


def _phrase(parameter: Parameter, chinese: bool) -> str:
    example, role = SUCH_AS.search(str(parameter.schema.get("description", ""))), parameter.role
    if example and not parameter.side and role in ("id", "other", "word", "pattern"):
        return example[1]
    if role == "other" and SOMEBODY.search(parameter.about):
        role = "name"
    if role == "pattern":
        role = "id" if parameter.fit("A1") else "currency"
    phrases = _PHRASES.get(f"{role} {parameter.side}") or _PHRASES.get(role, ("", ""))
    choice = parameter.choices[1:2] if parameter.side == "target" else parameter.choices[:1]
    return phrases[not chinese].format(*choice) if choice or role != "choice" else ""
