"""Tool search: with many tools, the model searches for those it needs instead of receiving all of them."""

import math
import re
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Annotated, Any

from pydantic import Field

from toolchat.chat.advisors.base import Advisor, AdvisorChain
from toolchat.chat.request import ChatRequest, Emit
from toolchat.messages import AssistantMessage, Message, SystemMessage, ToolResponseMessage, turn_start
from toolchat.models.base import ChatResponse
from toolchat.tool_calling.callback import ToolCallback, ToolSet
from toolchat.tool_calling.definition import ToolDefinition, provider_name, written_name
from toolchat.tool_calling.function_callback import FunctionToolCallback
from toolchat.tool_calling.text_normalization import fold, normalize_name

# The usual values of BM25: how soon a repeated term stops to count, and how much a long text is held back.
_SATURATION, _LENGTH_WEIGHT = 1.2, 0.75
_NAME_WEIGHT = 3
"""Weight of a name's terms: a name says what the tool is, a description also says what it is not."""
_LEAST_SHARE = 0.25
"""Share of the best score below which a tool has little more in common with the query than words like "the"."""
_MAX_QUERY_CHARS = 1000
"""Longer queries are cut here; a model's query has a few words."""

_UNSPACED = "぀-ヿ㐀-䶿一-鿿豈-﫿가-힯"
"""Kana, Chinese characters and Hangul, as a range of a regular expression: scripts without spaces between words."""
_RUNS = rf"([{_UNSPACED}]+)|[^\W_{_UNSPACED}]+"
"""Compiled by the first search: that takes 5 ms."""
_CASE_CHANGES = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_AROUND_A_NAME = ".,;:!?'\"`()[]{}<>。，、；：！？“”‘’「」（）"


class ToolIndex:
    """A searchable set of tools (BM25). Build it once: a search costs a hundredth of that."""

    def __init__(self, tools: Sequence[ToolDefinition]) -> None:
        self._tools = tuple(tools)
        self._places = {tool.name: place for place, tool in enumerate(self._tools)}
        self._scores = _scores([_term_counts(tool) for tool in self._tools])

    def search(self, query: str, most: int) -> list[ToolDefinition]:
        """The best matches, best first; tools whose exact names are in the query come before all others."""
        query = query[:_MAX_QUERY_CHARS]
        found: defaultdict[int, float] = defaultdict(float)
        for term in dict.fromkeys(_terms(query)):
            for place, score in self._scores.get(term, ()):
                found[place] += score
        least = _LEAST_SHARE * max(found.values(), default=0.0)
        named = self._named(query)
        places = named + sorted(
            (place for place, score in found.items() if score >= least and place not in named),
            key=lambda place: (-found[place], place),
        )
        return [self._tools[place] for place in places[:most]]

    def _named(self, query: str) -> list[int]:
        words = (query, *(word.strip(_AROUND_A_NAME) for word in query.split()))
        return [self._places[name] for name in dict.fromkeys(words) if name in self._places]


def _scores(counts: Sequence[Counter[str]]) -> Mapping[str, Sequence[tuple[int, float]]]:
    """For each term the indexes of the tools that have it, each with the term's contribution to the score."""
    mean = sum(count.total() for count in counts) / max(len(counts), 1)
    found: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
    for place, count in enumerate(counts):
        held_back = _SATURATION * (1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * count.total() / max(mean, 1))
        for term, often in count.items():
            found[term].append((place, often * (_SATURATION + 1) / (often + held_back)))
    return {term: _weighted(places, len(counts)) for term, places in found.items()}


def _weighted(places: list[tuple[int, float]], tools: int) -> list[tuple[int, float]]:
    rarity = math.log(1 + (tools - len(places) + 0.5) / (len(places) + 0.5))
    return [(place, rarity * score) for place, score in places]


def _term_counts(tool: ToolDefinition) -> Counter[str]:
    count = Counter({term: _NAME_WEIGHT * often for term, often in Counter(_terms(tool.name, single=True)).items()})
    for text in (tool.description, *_parameters(tool.input_schema)):
        count.update(_terms(text, single=True))
    return count


def _parameters(schema: Mapping[str, Any]) -> Iterator[str]:
    """Names and descriptions of all parameters, nested ones too; not recursive, since schemas may be hostile."""
    pending: list[Any] = [schema]
    while pending:
        part = pending.pop()
        if isinstance(part, list | tuple):
            pending.extend(part)
        elif isinstance(part, Mapping):
            properties, description = part.get("properties"), part.get("description")
            yield from map(str, properties) if isinstance(properties, Mapping) else ()
            yield from (description,) if isinstance(description, str) else ()
            pending.extend(part.values())


def _terms(text: str, *, single: bool = False) -> Iterator[str]:
    """The terms of a text; ``single`` adds each character of a script without spaces.

    Tools are indexed by single characters, too, but a query only has them if one stands alone: it must match, while two
    words that merely share a character must not.
    """
    for run in re.finditer(_RUNS, text):
        if run[1]:
            yield from _pairs(normalize_name(run[1]), single=single)
        else:
            yield from _words(run[0])


def _pairs(run: str, *, single: bool) -> Iterable[str]:
    pairs = [run[at : at + 2] for at in range(len(run) - 1)]
    return [*pairs, *run] if single or not pairs else pairs


@lru_cache(maxsize=4096)  # tools repeat the same words, and other requests wait while an index is built
def _words(run: str) -> tuple[str, ...]:
    """A word's parts at its changes of case, and neighbours joined: a query for github must find GitHub."""
    parts = [fold(part) for part in _CASE_CHANGES.split(run)]
    return tuple(map(_singular, (*parts, *(first + second for first, second in pairwise(parts)))))


def _singular(word: str) -> str:
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    return f"{word[:-3]}y" if word.endswith("ies") else word[:-1]


SEARCH_TOOL = "searchTools"
"""The search tool's name; a number follows if another tool has it."""
MOST_FOUND = 8
"""Most tools that one search returns."""

_MAX_CACHED = 16
_SHOWN_DESCRIPTION = 200
_INSTRUCTIONS = (
    "Find tools. You have {count} tools, most of them not shown: you can call those that you see and, from your next "
    "message on, those that a search has found. Search before you say that you cannot do or know something, once for "
    "each kind of thing that you need; do not guess names."
)
_QUERY = "What the tool is to do, in a few words, such as: weather forecast, 发送邮件; or its name"
_CALL_THEM = "you can call these now; search again, in other words, if none of them will do"
_NO_TOOL = "no tool has these words; search again in other words, in English or in the language of the question"

# Results are not parsed but searched: a truncated one still names the tools that the model has seen.
_FOUND = re.compile(r'\{"name":"([^"\\]+)"')
_NAMES = re.compile(r"\w[\w.-]*", re.ASCII)

Query = Annotated[str, Field(description=_QUERY)]


class ToolSearchAdvisor(Advisor):
    """Offers a search tool, and the tools it has found, instead of very many tools.

    Its order is inside the tool loop, and it changes the offer of each round; the loop still has all tools, so that
    approval, limits, time-outs and the turn summary work as ever. Only tools that the service runs are counted and
    searched; the client's own tools are always offered. So are, from the first round on, the tool of ``tool_choice``
    and tools that the instructions or the question name. Tools that were found or called stay as long as the calls are
    in the conversation, in later turns too if it is stored with them: there is no state between rounds, and a paused
    turn resumes with them. It does not apply if the caller runs the calls, since the caller lacks the search tool.
    """

    order = 310

    def __init__(self, above: int = 30) -> None:
        """Offer up to ``above`` tools of the service as they are; 0 switches the search off."""
        self._above = above
        self._cache: OrderedDict[tuple[object, ...], _SearchableTools] = OrderedDict()

    def applies(self, request: ChatRequest) -> bool:
        if not 0 < self._above < len(request.tools):
            return False
        return len(request.tool_set.service_tools) > self._above and request.options.internal_tool_execution_enabled

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        if self.applies(request):
            tools = request.tool_set
            searchable = self._searchable(tools.service_tools, _free_name(tools.by_name))
            request = request.with_tools(searchable.offered(request))
        return await chain.proceed(request, emit)

    def _searchable(self, tools: tuple[ToolCallback, ...], name: str) -> "_SearchableTools":
        # By identity, since comparing definitions is slow. The entry refers to its tools: no others can have their ids.
        key = (name, *map(id, tools))
        if key not in self._cache:
            self._cache[key] = _SearchableTools.index(tools, name)
        self._cache.move_to_end(key)
        if len(self._cache) > _MAX_CACHED:
            self._cache.popitem(last=False)
        return self._cache[key]


@dataclass(frozen=True, slots=True)
class _SearchableTools:
    """A set of tools, and the tool that searches it."""

    tools: ToolSet
    """The tool that searches, then the others."""
    spellings: Mapping[str, str]
    """Names that are not words of ASCII letters, by their normalized form."""

    @classmethod
    def index(cls, tools: tuple[ToolCallback, ...], name: str) -> "_SearchableTools":
        index = ToolIndex([tool.definition for tool in tools])

        async def search(query: Query) -> dict[str, Any]:
            return _result(index.search(query, MOST_FOUND))

        description = _INSTRUCTIONS.format(count=len(tools))
        callback = FunctionToolCallback.from_function(search, name=name, description=description)
        written = {written_name(tool.definition): tool.definition.name for tool in tools}
        spellings = {normalize_name(it): name for it, name in written.items() if not it.isascii()}
        return cls(ToolSet((callback, *tools)), spellings)

    def offered(self, request: ChatRequest) -> tuple[ToolCallback, ...]:
        """The search tool, then the others in the order of the conversation: a longer one only adds to their end.

        The tools are the beginning of a request, without which a provider's prompt cache does not serve the rest.
        """
        search = self.tools[0]
        names = dict.fromkeys(
            (search.definition.name, *self._mentioned(request.messages), request.options.tool_choice or "")
        )
        # The same set for the same names, since a set is examined, and written as JSON, only once.
        _, *found = offered = self.tools.subset(tuple([name for name in names if name in self.tools.by_name]))
        client_tools = request.tool_set.client_tools
        return (search, *client_tools, *found) if client_tools else offered

    def _mentioned(self, messages: Sequence[Message]) -> Iterator[str]:
        """Names of tools that were found or called, and words of instructions and question that may be such names."""
        start = turn_start(messages)
        for place, message in enumerate(messages):
            if isinstance(message, AssistantMessage):
                yield from (call.name for call in message.tool_calls)
            elif isinstance(message, ToolResponseMessage):
                for response in message.responses:
                    yield from _FOUND.findall(response.text) if response.name == self.tools[0].definition.name else ()
            elif isinstance(message, SystemMessage) or place == start:
                yield from self._named(message.text)

    def _named(self, text: str) -> Iterator[str]:
        yield from (provider_name(each.rstrip(".-")) for each in _NAMES.findall(text))
        # Chinese has no spaces that would make a name a word.
        text = normalize_name(text) if self.spellings else ""
        yield from (name for spelling, name in self.spellings.items() if spelling in text)


def _result(found: Sequence[ToolDefinition]) -> dict[str, Any]:
    tools = [{"name": each.name, "description": _short(each.description)} for each in found]
    return {"tools": tools, "note": _CALL_THEM if tools else _NO_TOOL}


def _short(description: str) -> str:
    # The model receives the whole description with the tool itself.
    return description if len(description) <= _SHOWN_DESCRIPTION else f"{description[: _SHOWN_DESCRIPTION - 3]}..."


def _free_name(taken: Collection[str]) -> str:
    if SEARCH_TOOL not in taken:
        return SEARCH_TOOL
    return next(name for number in range(2, len(taken) + 3) if (name := f"{SEARCH_TOOL}{number}") not in taken)
