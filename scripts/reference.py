"""The page ``docs/reference.md``, made from the docstrings. Run as a script, it writes the page."""

import ast
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from textwrap import dedent
from typing import Any

from docstring_parser import Docstring, parse

from scripts.env_example import settings_classes
from tests.architecture import ROOT
from toolchat.chat.advisors.base import Advisor, BaseAdvisor
from toolchat.models.base import ChatOptions, ChatResponse
from toolchat.service import exports
from toolchat.tool_calling.callback import (
    ClientToolCallback,
    DelegatingToolCallbackResolver,
    StaticToolCallbackProvider,
    StaticToolCallbackResolver,
    ToolCallback,
    ToolCallbackProvider,
    ToolCallbackResolver,
)
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.definition import ToolDefinition, ToolMetadata, ToolOptions
from toolchat.tool_calling.errors import ToolArgumentsError, ToolDefinitionError, ToolExecutionError
from toolchat.tool_calling.events import ToolCallFinished
from toolchat.tool_calling.exception_processor import ToolExecutionExceptionProcessor
from toolchat.tool_calling.function_callback import FunctionToolCallback, MethodToolCallback, MethodToolCallbackProvider
from toolchat.tool_calling.limits import ToolCallLimits
from toolchat.tool_calling.manager import ToolCallingManager
from toolchat.tool_calling.results import ToolAnswer, convert_result, quoted_result

__all__ = ["PAGE", "advisors", "written"]

PAGE = ROOT / "docs" / "reference.md"
_BEGIN, _END = "<!-- from the docstrings: make docs -->", "<!-- end -->"

CHAPTERS: dict[str, list[Any]] = {
    "What the engine knows of a tool": [ToolDefinition, ToolMetadata],
    "Limits of a chat request": [ToolCallLimits, ToolCallingManager],
    "Callbacks, providers and resolvers": [
        *(ToolCallback, FunctionToolCallback, MethodToolCallback, ClientToolCallback),
        *(ToolCallbackProvider, StaticToolCallbackProvider, MethodToolCallbackProvider),
        *(ToolCallbackResolver, StaticToolCallbackResolver, DelegatingToolCallbackResolver),
    ],
    "The context of a call": [ToolContext],
    "Errors and the exception processor": [
        *(ToolExecutionError, ToolArgumentsError, ToolDefinitionError, ToolExecutionExceptionProcessor),
    ],
    "Results and their conversion": [convert_result, quoted_result, ToolAnswer, ToolCallFinished],
    "Options of a model call, and its response": [ChatOptions, ChatResponse],
}


def written() -> str:
    """The page as it should be: what is between the marks comes from the docstrings, the rest stays."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(_BEGIN)
    return f"{before}{_BEGIN}\n\n" + "\n".join(_generated()) + f"{_END}{rest.partition(_END)[2]}"


def _generated() -> Iterator[str]:
    yield from ("## The options of `@tool`", "", "| option | default | meaning |", "| --- | --- | --- |")
    defaults = {name: default for name, default, _ in _attributes(ToolMetadata)}
    for name, _, meaning in _attributes(ToolOptions):
        yield f"| `{name}` | `{defaults.get(name, 'None')}` | {_line(meaning)} |"
    finish_reasons = {name: text for name, _, text in _attributes(ChatResponse)}["finish_reason"]
    yield from ("", "## Finish reasons", "", _markdown(finish_reasons))
    for title, subjects in CHAPTERS.items():
        yield from ("", f"## {title}")
        for subject in subjects:
            yield from ("", f"### `{subject.__name__}`", "", *_described(subject))
    yield from ("", "## Advisors and their orders", "", "| order | advisor | what it does |", "| --- | --- | --- |")
    for advisor in advisors():
        yield f"| {advisor.order} | `{advisor.__name__}` | {_summary(_parsed(advisor))} |"
    yield from ("", "## Names of `toolchat.service`", "", "| name | what it is |", "| --- | --- |")
    for name, text in sorted(_service_names(), key=lambda each: each[0].lower()):
        yield f"| `{name}` | {_line(text)} |"
    yield "\n"


def _service_names() -> Iterator[tuple[str, str]]:
    """The public names of the service, each with the first paragraph of its text, which a value has below it."""
    for node in ast.parse(inspect.getsource(exports)).body:
        if isinstance(node, ast.ImportFrom):
            body = ast.parse(inspect.getsource(import_module(f"{node.module}"))).body
            texts = dict(_texts(body))
            yield from ((each.name, texts[each.name].split("\n\n", 1)[0]) for each in node.names)


def _texts(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for node, below in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, ast.get_docstring(node) or ""
        elif isinstance(node, ast.Assign) and isinstance(below, ast.Expr):
            yield ast.unparse(node.targets[0]), inspect.cleandoc(str(ast.literal_eval(below.value)))


def advisors() -> list[type[Advisor]]:
    """Every advisor of both packages, outermost first."""
    settings_classes()  # which imports the whole application
    found, new = set[type[Advisor]](), {Advisor}
    while new:
        new = {each for kind in new for each in kind.__subclasses__()}
        found |= new
    own = [each for each in found if re.match(r"(app|toolchat)\.", each.__module__) and each is not BaseAdvisor]
    return sorted(own, key=lambda each: (each.order, each.__name__))


def _described(subject: Any) -> Iterator[str]:
    """The whole text about a class or a function, then its parameters or members."""
    parsed = _parsed(subject)
    yield _markdown(parsed.description or "")
    members = [] if not isinstance(subject, type) else [*_attribute_lines(subject), *_method_lines(subject)]
    lines = [*_details(parsed, "- "), *members]
    yield from ("", *lines) if lines else ()


def _details(parsed: Docstring, mark: str) -> Iterator[str]:
    yield from (f"{mark}`{each.arg_name}`: {_line(each.description)}" for each in parsed.params)
    yield from (f"{mark}returns {_line(each.description)}" for each in parsed.many_returns)
    yield from (f"{mark}raises `{each.type_name}`: {_line(each.description)}" for each in parsed.raises)


def _attribute_lines(kind: type) -> Iterator[str]:
    for name, default, text in _attributes(kind):
        text = "see [above](#finish-reasons)" if name == "finish_reason" else _line(text)
        yield f"- `{name}`" + (f" = `{default}`" if default else "") + (f": {text}" if text else "")


def _method_lines(kind: type) -> Iterator[str]:
    for name, member in vars(kind).items():
        each: Any = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        is_function = getattr(each, "__name__", None) == name
        if is_function and not name.startswith("_") and not re.match("None|See ", f"{each.__doc__}"):
            parsed = _parsed(each)
            parameters = [each for each in inspect.signature(each).parameters if each not in ("self", "cls")]
            shown = name if isinstance(member, property) else f"{name}({', '.join(parameters)})"
            yield f"- `{shown}`: {_summary(parsed)}"
            yield from _details(parsed, "  - ")


def _attributes(kind: type) -> Iterator[tuple[str, str, str]]:
    """The name, the default and the text of each attribute that a class declares; the text is a string below it."""
    body = ast.parse(dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    for node, below in zip(body.body, [*body.body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and not (name := ast.unparse(node.target)).startswith("_"):
            default = "" if node.value is None or isinstance(node.value, ast.Call) else ast.unparse(node.value)
            text = ast.literal_eval(below.value) if isinstance(below, ast.Expr) else ""
            yield name, default if not default.startswith("_") else "", inspect.cleandoc(text)


def _parsed(subject: Any) -> Docstring:
    # The parser would take a line that starts with such a mark for a parameter's.
    return parse(re.sub(r":\w+:(?=`)", "", inspect.getdoc(subject) or ""))


def _summary(parsed: Docstring) -> str:
    return _line((parsed.description or "").split("\n\n", 1)[0])


def _line(text: str | None) -> str:
    return " ".join(_markdown(text or "").split()).replace("|", "\\|")


def _markdown(text: str) -> str:
    """Sphinx's marks as Markdown's."""
    return re.sub(r":\w+:(?=`)", "", text).replace("``", "`").replace("::\n", ":\n")


if __name__ == "__main__":
    Path(PAGE).write_text(written(), encoding="utf-8")
