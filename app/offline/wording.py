"""Words of a question that a pattern finds: the lexicon's for addresses, ids and names, or a schema's own."""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from pydantic_core import SchemaError, SchemaValidator

from app.offline import lexicon
from app.offline.numbers import Found, dates, times_of_day
from app.offline.parameters import Parameter
from app.offline.question import Question
from app.offline.words import concepts_in

__all__ = ["allowed", "ids", "matches"]

_TOKEN = re.compile(r"[^\s,;，；。、?？!！\"“”()（）㐀-鿿]{1,60}")


def matches(pattern: re.Pattern[str], question: Question, role: str) -> Iterator[Found]:
    """What the first group of a pattern finds in the folded text, as written."""
    for match in pattern.finditer(question.flat):
        yield Found(role, question.raw[slice(*match.span(1))].strip(), *match.span(1))


def ids(parameter: Parameter, question: Question) -> list[Found]:
    """Words with a digit, those near to what the parameter is about first; then what is called an id, and capitals."""
    about = {concept for concept, _ in concepts_in(parameter.about)}
    near = [position for concept, position in concepts_in(question.command) if concept in about]
    found = list(matches(lexicon.ID, question, "id"))
    found.sort(key=lambda each: min((abs(each.start - position) for position in near), default=0))
    if parameter.type != "string":
        return [each for each in found if each.value.isdecimal()]
    capitals = (Found("id", each[1], *each.span()) for each in lexicon.CAPITALS.finditer(question.raw))
    return [*found, *matches(lexicon.LABELLED, question, "id"), *capitals]


def allowed(parameter: Parameter, question: Question) -> list[Found]:
    """Words that the schema's pattern allows, as written, then in capitals."""
    validator = _validator(str(parameter.schema["pattern"])[:500])
    tokens = [Found("pattern", each[0], *each.span()) for each in _TOKEN.finditer(question.raw)]
    found = [*tokens, *matches(lexicon.ID, question, "pattern")]
    found += [replace(each, value=each.value.upper()) for each in tokens]
    found += [Found("pattern", question.raw[start:end], start, end) for start, end in question.payloads]
    found += [*dates(question.flat), *times_of_day(question.flat)]
    return [each for each in found if validator and validator.isinstance_python(each.value)]


@lru_cache(maxsize=256)
def _validator(pattern: str) -> SchemaValidator | None:
    """Pydantic's own engine takes linear time whatever the pattern; what it cannot read is not filled."""
    try:
        return SchemaValidator({"type": "str", "pattern": pattern})
    except SchemaError:
        return None
