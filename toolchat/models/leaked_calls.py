"""Read tool calls that a model wrote as text, since its server did not recognise them.

Only an answer that is nothing but calls of offered tools counts, and none that the conversation has brought in: the
text of a web page must not become a call because the model repeats it.
"""

import json
import re
from collections.abc import Callable, Collection, Coroutine, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Literal
from uuid import uuid4

from toolchat.messages import Message, ToolCall, ToolResponseMessage
from toolchat.models.base import CUT, ChatResponse, EmitModelEvent, ModelEvent, Progress, Prompt, TextDelta
from toolchat.tool_calling.definition import ToolDefinition

_MARKS = (
    r"</?(?:minimax:|｜DSML｜)?tool_calls?>|</?tools>|</?function_calls?>|</function>|</(?:｜DSML｜)?invoke>",  # Qwen
    r"<\|(?:python_(?:tag|start|end)|eom_id|eot_id|im_end)\|>|functools|<\|/?tool_calls?\|>",  # Llama, Phi, Granite
    r"\[/?TOOL_CALLS?\]|\[(?:END_)?TOOL_REQUEST\]",  # Mistral, LM Studio
    r"<[|｜]tool[_▁]calls?(?:_section)?[_▁](?:begin|end)[|｜]>",  # Kimi, DeepSeek
    r"```(?:json|xml|tool_calls?|tool_code)?|[\s,;]+",
)
"""What stands around calls and between them."""
_NAME = r"([\w.-]+)"
_HEADS = (
    rf"<function={_NAME}[=>]?",  # Llama 3, Qwen3-Coder
    rf'<(?:｜DSML｜)?invoke name="{_NAME}">',  # MiniMax, DeepSeek V4
    rf"function<｜tool▁sep｜>{_NAME}(?:\s*```json)?",  # DeepSeek V3 and R1
    # Mistral, DeepSeek V3.1, Kimi, GLM
    rf"{_NAME}(?:\[ARGS\]|<｜tool▁sep｜>|:\d+\s*<\|tool_call_argument_begin\|>|\s*(?={{|</?[a-z]))",
)
"""What stands before arguments, with the tool's name."""
_PARAMETERS = (
    r"<parameter=([^<>]+)>(.*?)(?:</parameter>|(?=<parameter=|</function>|</tool_call>))",
    r'<(?:｜DSML｜)?parameter name="([^"<>]+)"[^<>]*>(.*?)</(?:｜DSML｜)?parameter>',
    r"<arg_key>([^<>]+)</arg_key>\s*<arg_value>(.*?)</arg_value>",
)
"""Arguments that are not JSON: texts, which the tool reads as its schema says."""
_WRITTEN = ('"{}":"{}"', '"{}":{}', "{}>{}</", "{}</arg_key><arg_value>{}</")
"""How an argument may be written in a flattened text: as JSON, its value perhaps as text, or between tags."""
_NAME_KEYS = ("name", "function", "tool", "tool_name", "function_name", "recipient_name")
_ARGUMENT_KEYS = ("arguments", "parameters", "args")
_LIST_KEYS = ("tool_calls", "tool_uses", "function_call", "function")
_KEYS = frozenset((*_NAME_KEYS, *_ARGUMENT_KEYS, *_LIST_KEYS, "type", "id", "index"))
_PREFIXES = ("functions.", "function.", "tools.", "default_api.", "")
_MAX_UNCERTAIN = 400
"""Characters of a stream that are held back before the name of an offered tool."""
_STARTS = ("", "{", "[", "<", "`", "f")
_ESCAPE = re.compile(r"(?<!\\)\\+u([0-9a-fA-F]{4})")
_NO_WORD = re.compile(r"[\W_]+")
_MAX_VALUES = 200
"""Values of all calls of an answer that are looked for in the conversation; one with more is taken for an echo."""
_MAX_CALLS = 100
_THOUGHT = "</think>"

_json = json.JSONDecoder(strict=False)
_marks = re.compile(f"(?:{'|'.join(_MARKS)})*")  # not possessive: github.com/python/cpython/issues/106052
_half_a_mark = re.compile(r"<(?:(?:｜DSML｜)?invoke )?[^<>\s]*|\[[/A-Z_]*|```\w*|`{1,2}")
_half_a_head = re.compile(r"[\w.:-]*\s*(?:[<\[]\S*)?")
_head = re.compile(rf"(?:{'|'.join(_HEADS)})\s*")
_parameter = re.compile(rf"(?:{'|'.join(_PARAMETERS)})\s*", re.DOTALL)
_first_key = re.compile(r'[\[{\s]*(?:"(\w*)(")?|$)')
_named = re.compile(rf'"(?:{"|".join(_NAME_KEYS)})"\s*:\s*"([^"\\]*)"')
_Calls = list[tuple[str, dict[str, Any]]]


async def respond_reading_calls(
    respond: Callable[[Prompt, EmitModelEvent], Coroutine[Any, Any, ChatResponse]], prompt: Prompt, emit: EmitModelEvent
) -> ChatResponse:
    """Call a model, and read an answer that consists of calls of the offered tools as these calls."""
    if not prompt.tools or prompt.options.response_format:
        return await respond(prompt, emit)
    if not prompt.stream:
        response = await respond(prompt, emit)
        return _with_calls(response, response.message.text, prompt)
    reader = _Reader(prompt, emit)
    return await reader.finish(await respond(prompt, reader.emit))


def _with_calls(response: ChatResponse, text: str, prompt: Prompt) -> ChatResponse:
    """The response with the calls that the end of its text consists of."""
    message = response.message
    if message.tool_calls or response.finish_reason in CUT or not _may_begin(text):
        return response
    if not (calls := read_calls(text, prompt.tools, prompt.messages)):
        return response
    message = replace(message, text=message.text.removesuffix(text), tool_calls=calls)
    return replace(response, message=message, finish_reason="tool_calls")


def read_calls(text: str, tools: Sequence[ToolDefinition], messages: Sequence[Message]) -> tuple[ToolCall, ...]:
    """Return the calls that a text consists of; none if it holds anything else, or an echo of the conversation."""
    single = text.replace("{{", "{")
    # A model may double the braces as its template does, all of them or only the outer ones.
    is_doubled = text.startswith("{{", _skip(text, 0))
    for variant in (single.replace("}}", "}"), single) if is_doubled else (text,):
        found, end = _parse(variant)
        if found and end == len(variant):
            break
    else:
        return ()
    names = _names(tools)
    if len(found) > _MAX_CALLS or any(name not in names for name, _ in found):
        return ()
    if _is_echo(text, [(names[name], arguments) for name, arguments in found], messages):
        return ()
    calls = [(names[name], json.dumps(arguments, ensure_ascii=False)) for name, arguments in found]
    return tuple([ToolCall(f"call_{uuid4().hex}", name, arguments, repaired=True) for name, arguments in calls])


def _names(tools: Sequence[ToolDefinition]) -> dict[str, str]:
    """The names of the tools by what a model may write for them."""
    return {prefix + tool.name: tool.name for prefix in _PREFIXES for tool in tools}


def _parse(text: str) -> tuple[_Calls, int]:
    """The calls at the beginning of a text, by name and arguments, and where they and the marks behind them end."""
    found: _Calls = []
    end = _skip(text, 0)
    while end < len(text):
        try:
            calls, after = _calls_at(text, end)
        except (ValueError, RecursionError):
            break
        found += calls
        end = _skip(text, after)
    return found, end


def _skip(text: str, start: int) -> int:
    return _marks.match(text, start).end()  # type: ignore[union-attr] # matches the empty text as well


def _calls_at(text: str, start: int) -> tuple[_Calls, int]:
    if text[start] in "[{":
        value, end = _json.raw_decode(text, start)
        return _calls_in(value), end
    head = _head.match(text, start) if start or text[0] == "<" else None
    if head is None:
        raise ValueError("no call")
    name, end = next(filter(None, head.groups())), head.end()
    if text[end : end + 1] in ("{", '"'):
        value, end = _json.raw_decode(text, end)
        return [(name, _object(value))], end
    arguments = {}
    while parameter := _parameter.match(text, end):
        key, value = [group.strip() for group in parameter.groups() if group is not None]
        arguments[key], end = value, parameter.end()
    if not text.startswith("</", end):
        raise ValueError("half a call")
    return [(name, arguments)], end


def _calls_in(value: Any) -> _Calls:
    if isinstance(value, list):
        return [call for each in value for call in _calls_in(each)]
    if not isinstance(value, dict) or value.keys() - _KEYS:
        raise ValueError("no call")
    for key in _LIST_KEYS:
        if isinstance(inner := value.get(key), dict | list) and not value.keys() & _ARGUMENT_KEYS:
            return _calls_in(inner)
    [name] = [str(each) for key, each in value.items() if key in _NAME_KEYS]
    [arguments] = [_object(each) for key, each in value.items() if key in _ARGUMENT_KEYS]
    return [(name, arguments)]


def _object(value: Any) -> dict[str, Any]:
    arguments = _json.decode(value) if isinstance(value, str) else value
    if isinstance(arguments, dict):
        return arguments
    raise ValueError("arguments that are no object")


def _is_echo(text: str, calls: _Calls, messages: Sequence[Message]) -> bool:
    """Whether the conversation has brought a call in: the text as it is, or one of its calls in another form.

    The conversation is not parsed, since a hostile text could hide the call, or make the search take long.
    """
    source = "".join([_flat(text) for message in messages for text in _texts(message)])
    if _NO_WORD.sub("", _flat(text)) in _NO_WORD.sub("", source):
        return True
    pairs = [(name, list(islice(_pairs(arguments), _MAX_VALUES))) for name, arguments in calls]
    if sum(len(each) for _, each in pairs) >= _MAX_VALUES:
        return True
    return any(name in source and _holds(source, name, each) for name, each in pairs)


def _holds(source: str, name: str, pairs: Sequence[tuple[str, str]]) -> bool:
    if not pairs:
        return "{}" in source or f"{name}></" in source
    return all(any(form.format(*pair) in source for form in (_WRITTEN if pair[0] else ("{1}",))) for pair in pairs)


def _texts(message: Message) -> list[str]:
    return [each.text for each in message.responses] if isinstance(message, ToolResponseMessage) else [message.text]


def _pairs(arguments: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The single values within arguments, each with its key."""
    values: list[tuple[str, Any]] = [("", arguments)]
    for key, value in values:  # which grow meanwhile
        if isinstance(value, dict):
            values += value.items()
        elif isinstance(value, list):
            values += [("", each) for each in value]
        else:
            yield _flat(key), _flat(value if isinstance(value, str) else json.dumps(value))


def _flat(text: str) -> str:
    """A text without blanks and escapes, so that JSON reads the same as within a string of JSON."""
    plain = _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)
    whole = plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return re.sub(r'"(?:string="\w+")?>', ">", re.sub(r"\\+[nrt]?|\s", "", whole))


class _Reader:
    """Holds an answer's text back while it may still become calls, and reads it at the end."""

    def __init__(self, prompt: Prompt, emit: EmitModelEvent) -> None:
        self._prompt, self._emit = prompt, emit
        self._held: list[str] = []
        self._size = self._next_look = 0
        self._is_shown = False

    def emit(self, event: ModelEvent) -> Coroutine[Any, Any, None]:
        if isinstance(event, TextDelta) and (not self._is_shown or _THOUGHT in event.text):
            return self._hold(event.text)
        return self._emit(event)

    async def finish(self, response: ChatResponse) -> ChatResponse:
        read = _with_calls(response, "".join(self._held), self._prompt)
        if self._held and read is response:
            await self._show()
        return read

    async def _hold(self, text: str) -> None:
        if self._is_shown:  # reasoning ends, whose beginning nothing had marked: calls may stand behind it
            before, mark, text = text.rpartition(_THOUGHT)
            await self._emit(TextDelta(before + mark))
            self._is_shown, self._size, self._next_look = False, 0, 0
            if not text:
                return
        self._held.append(text)
        self._size += len(text)
        if self._size < self._next_look or self._may_become_calls():
            await self._emit(Progress())
        else:
            await self._show()

    async def _show(self) -> None:
        text = "".join(self._held)
        self._held.clear()
        self._is_shown = True
        await self._emit(TextDelta(text))

    def _may_become_calls(self) -> bool:
        text = "".join(self._held)
        if not _may_begin(text):
            return False
        state = _state(text, _names(self._prompt.tools))
        # Looked at less and less often from here on, so that all looks together stay linear in time.
        self._next_look = self._size + self._size // 4 if state == "call" else 0
        return state == "call" or (state == "open" and self._size <= _MAX_UNCERTAIN)


def _may_begin(text: str) -> bool:
    return text.lstrip()[:1] in _STARTS


def _state(text: str, names: Collection[str]) -> Literal["call", "text", "open"]:
    """What the beginning of an answer is, if it shows that already."""
    found, start = _parse(text)
    rest = text[start:]
    if any(name not in names for name, _ in found):
        return "text"
    fence = text.rfind("```")
    halves = rest, text[fence:] if fence >= 0 else rest
    if "functools".startswith(rest) or any(map(_half_a_mark.fullmatch, halves)):
        return "call" if found else "open"
    if rest[0] in "[{":
        key = _first_key.match(rest)
        if key is None or (key[2] and key[1] not in _KEYS):
            return "text"
        named = None if key[1] in _ARGUMENT_KEYS else _named.search(rest)
        return "open" if named is None else "call" if named[1] in names else "text"
    head = _head.match(rest) if start or rest[0] == "<" else None
    if head is None:
        return "open" if start and _half_a_head.fullmatch(rest) else "text"
    name = next(filter(None, head.groups()))
    if head.end() == len(rest) and any(each.startswith(name) for each in names):
        return "open"
    return "call" if name in names else "text"
