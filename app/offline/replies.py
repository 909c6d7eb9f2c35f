"""Replies of the offline model: from results, about missing arguments, and without any tool call."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice, zip_longest

from app.offline import lexicon
from app.offline.days import wanted_days
from app.offline.entities import extract_entities
from app.offline.planning import Plan, PlannedCall, plan
from app.offline.question import Question, concepts_in, folded_words
from app.offline.result_rendering import ResultRenderer
from app.offline.templates import has_template, listed, render
from app.offline.tool_profiles import Parameter, ToolProfile
from toolchat.messages import ToolResponse

__all__ = ["details", "from_results", "without_calls"]

_MOST_DETAILS, _MOST_EXAMPLES, _LONGEST = 8, 3, 300
# Example questions for tools that ask for these roles, in Chinese and in English.
_EXAMPLES: tuple[tuple[set[str], str, str], ...] = (
    ({"time_zone"}, "北京现在几点？", "What time is it in London?"),
    ({"place", "days"}, "上海明天天气怎么样？", "What is the weather in Paris tomorrow?"),
    ({"text", "language"}, "把“早上好”翻译成日语", 'Translate "good morning" into French'),
    ({"place"}, "杭州今天天气怎么样？", "What is the weather in Paris?"),
)
# A value that shows how an argument is given, by role.
_SAMPLES = {
    "time_zone": "Asia/Shanghai", "place": "Paris", "date": "2030-01-31", "time_of_day": "07:30",
    "date_time": "2030-01-31T07:30", "moment": "PT10M", "duration": "PT10M",
    "language": "en", "days": 3, "number": 3, "boolean": "true", "id": "123", "text": "hello",
}  # fmt: skip


def from_results(responses: Sequence[ToolResponse | None], planned: Plan, tools: Sequence[ToolProfile]) -> str:
    """The answer from the calls' results, with missing arguments and what the plan left out."""
    fields = {each.name: each.result_fields for each in tools}
    parts = []
    for call, each in zip_longest(planned.calls, responses):
        if each is None:
            continue
        question = (call.question if call else None) or planned.question.with_quotes_as_command()
        values = [*map(str, call.arguments.values())] if call else []
        places = (one.value for one in extract_entities(question, "place") if one.value.english is not None)
        place = next((one.name for one in places if one.zone in values or one.name in values), None)
        days = wanted_days(extract_entities(question, "day"))
        parts.append(ResultRenderer(question.chinese, place, days, fields.get(each.name, {})).render(each))
    told_of = {each.name for each in responses if each}
    parts += details((each for each in planned.incomplete if each.tool.name not in told_of), planned.question)
    return "\n".join((*parts, *planned.remarks)) or _cannot(planned.question)


def details(incomplete: Iterable[PlannedCall], question: Question) -> list[str]:
    """Requests for the arguments that fitting tools still need, each once, with an example."""
    return list(dict.fromkeys(_asking_for(each, question.chinese) for each in incomplete))


def _asking_for(incomplete: PlannedCall, chinese: bool) -> str:
    name, missing = incomplete.tool.name, incomplete.missing[:_MOST_DETAILS]
    shown = []
    for each in missing:
        given = " ".join(str(each.schema.get("description", "")).split())[:80]
        detail, key = f"{each.name}: {given}" if given else each.name, each.role
        shown.append(
            render("inside", chinese, name=render(key, chinese), inside=detail) if has_template(key) else detail
        )
    simple = [(key, each) for key, each in incomplete.arguments.items() if not isinstance(each, dict | list)]
    pairs = [f"{key}: {each}" for key, each in simple]
    form = f"{name} {', '.join((*pairs, *map(_pair, missing)))}"
    return render("missing", chinese, tool=name, details=listed(shown, chinese), form=form)


def _pair(parameter: Parameter) -> str:
    """An argument by its name, with a value that the schema gives, else one that shows the form."""
    given = parameter.choices or parameter.schema.get("examples")
    low = parameter.number("minimum")
    role = parameter.inner[0].role if parameter.type == "array" and parameter.inner else parameter.role
    sample = f"{max(low, 3):g}" if low is not None else _SAMPLES.get(role, "…")
    return f"{parameter.name}: {given[0] if isinstance(given, list) and given else sample}"


def without_calls(
    question: Question, tools: tuple[ToolProfile, ...], asked: Sequence[str], guarded: Collection[str] = ()
) -> str:
    """An answer without tool calls: the user's earlier questions, or what this model is and can be asked.

    Tools that need approval are not suggested, since they may be dangerous.
    """
    chinese = question.chinese
    if lexicon.WHAT_WAS_ASKED.search(question.command):
        before = next((" ".join(each.split()) for each in reversed(asked[:-1]) if each.strip()), "")
        shown = before if len(before) <= _LONGEST else f"{before[:_LONGEST]}…"
        return render("you_asked" if before else "nothing_asked", chinese, text=shown)
    is_small_talk = lexicon.SMALL_TALK.fullmatch(question.flat) and question.flat.strip()
    if not tools and not is_small_talk:
        return _cannot(question)
    examples = [f"- {each}" for each in islice(_examples(tools, chinese, guarded), _MOST_EXAMPLES)]
    lines = [render("try", chinese), *examples] if examples else [] if tools else [_cannot(question)]
    if not is_small_talk and not lexicon.WHAT_IT_CAN.search(question.flat):
        return "\n".join((render("none_fits", chinese), *lines))
    greeting = render("welcome" if lexicon.THANKS.search(question.flat) else "hello", chinese)
    return "\n".join((render("what_i_am", chinese, greeting=greeting), *lines))


def _cannot(question: Question) -> str:
    """Say that without tools it cannot answer; where tools could, how to get them."""
    about = next((key for key, _ in concepts_in(question.command) if has_template(f"cannot_{key}")), None)
    what, remedy = (render(key, question.chinese) for key in (f"cannot_{about or 'answer'}", "remedy"))
    return render("no_tools", question.chinese, what=what, remedy=remedy if about else "")


def _examples(tools: tuple[ToolProfile, ...], chinese: bool, guarded: Collection[str]) -> Iterator[str]:
    """Questions that lead to a call of one tool each, as a trial shows; tools of an unforeseen kind come first."""
    kinds: dict[int, list[str]] = {}
    for tool in (each for each in tools if each.name not in guarded):
        kind = next((n for n, (roles, *_) in enumerate(_EXAMPLES) if roles <= set(tool.roles)), -1)
        _, in_chinese, in_english = _EXAMPLES[kind]
        text = in_chinese if chinese else in_english
        if kind < 0:
            # Its description, or its name in words, with the arguments that it needs by their names.
            described = lexicon.HAN.search(tool.definition.description) if chinese else None
            pairs = [_pair(each) for each in tool.parameters if each.required]
            text = render("comma", chinese).join((described[0] if described else folded_words(tool.name), *pairs))
        calls = plan(Question.of(text), tools).calls
        if "…" not in text and [each.tool for each in calls] == [tool]:
            kinds.setdefault(kind, []).append(text)
    for kind in sorted(kinds):
        shortest_first = sorted(dict.fromkeys(kinds[kind]), key=lambda text: text.count(": "))
        yield from shortest_first if kind < 0 else shortest_first[:1]
