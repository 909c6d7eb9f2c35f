"""Other packages are used through their public interfaces only: no inside of theirs is read, replaced or imitated."""

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from inspect import getsource
from textwrap import dedent

import pytest

from tests.architecture import FILES, ROOT

EXCEPTIONS = {
    "toolchat/models/dashscope/aiohttp_adapter.py: ClientSession has the name of a class of aiohttp": (
        "DashScope's SDK accepts connections of others by this name only; docs/decisions/dashscope-sdk.md has the cost "
        "of the other ways"
    ),
    "toolchat/service/tool_modules/discovery.py: sets sys.modules[name]": (
        "the recipe of importlib's documentation for importing a file; a package that fails is removed again"
    ),
}
"""What is found in which file, and why there is no other way."""

FRAMES = {"f_back", "f_globals", "f_locals", "tb_frame", "cr_frame", "gi_frame", "ag_frame"}
FOREIGN = {
    *("currentframe", "stack", "trace", "getouterframes", "getinnerframes", "walk_stack"),
    *("meta_path", "path_hooks", "path_importer_cache"),
    *("get_objects", "get_referrers", "get_referents"),
}
"""What ``inspect``, ``traceback``, ``sys`` and ``gc`` have to reach into running code, imports and objects."""
NAMES = {"__name__", "__qualname__", "__module__"}
PUBLIC = {"_replace", "_asdict", "_fields", "_make", "_exit"}
"""Documented in spite of their underscore: methods of named tuples, and ``os._exit``."""


def is_hidden(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__") and name not in PUBLIC


def defined(tree: ast.AST) -> set[str]:
    """The names that a source gives to something of its own: functions, classes, variables, its objects' attributes."""
    found = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
                found.add(name)
    return found


def used(node: ast.ClassDef) -> set[str]:
    """The hidden attributes of itself that a class uses."""
    attributes = (each for each in ast.walk(node) if isinstance(each, ast.Attribute) and is_self(each.value))
    return {each.attr for each in attributes if is_hidden(each.attr)}


def is_self(of: ast.expr) -> bool:
    return isinstance(of, ast.Name) and of.id in ("self", "cls")


def is_changed(node: ast.Attribute | ast.Subscript) -> bool:
    return not isinstance(node.ctx, ast.Load)


def holds_names(of: ast.expr) -> bool:
    """Whether something is ``sys.modules`` or the ``__dict__`` of an object."""
    return isinstance(of, ast.Attribute) and (of.attr == "__dict__" or ast.unparse(of) == "sys.modules")


@cache
def packages() -> frozenset[str]:
    """The packages that are installed, by the names that they are imported by."""
    return frozenset(packages_distributions())


class Finder(ast.NodeVisitor):
    """Finds what a file does to the insides of other packages; their names are those that it imports."""

    def __init__(self, file: str, tree: ast.Module) -> None:
        self.found: list[str] = []
        self._module = file.removesuffix(".py").replace("/", ".")
        self._own = defined(tree)
        self._paths: dict[str, str] = {}

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._import(alias.name, alias.asname)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            self._import(f"{node.module}.{alias.name}", alias.asname or alias.name)

    def _import(self, path: str, name: str | None) -> None:
        first, *rest = path.split(".")
        self._paths[name or first] = path if name else first
        if self._is_another(first) and any(map(is_hidden, [first, *rest])):
            self.found.append(f"imports {path}")

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        inherited = {each for base in filter(None, map(self._class_of, node.bases)) for each in base.__mro__}
        theirs = {name for each in inherited if self._is_another(each.__module__) for name in vars(each)}
        own = defined(node)
        self.found += [f"{node.name} replaces {name}" for name in sorted(theirs & own) if is_hidden(name)]
        ours = (each for each in inherited if not self._is_another(each.__module__))
        own = own.union(*(defined(ast.parse(dedent(getsource(each)))) for each in ours))
        self.found += [f"{node.name} uses self.{name}" for name in sorted(used(node) - own)]
        for package in set(self._module.split(".")[-1].split("_")[:-1]) & packages():
            if hasattr(importlib.import_module(package), node.name):
                self.found.append(f"{node.name} has the name of a class of {package}")
        self.generic_visit(node)

    def _class_of(self, base: ast.expr) -> type | None:
        """The class that a base names."""
        name, *rest = ast.unparse(base.value if isinstance(base, ast.Subscript) else base).split(".")
        try:
            found = pkgutil.resolve_name(".".join([self._paths.get(name, f"{self._module}.{name}"), *rest]))
        except (ImportError, AttributeError, ValueError):
            return None
        return found if isinstance(found, type) else None

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store) and node.id in NAMES:
            self._found("sets", node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        inside = is_hidden(node.attr) and node.attr not in self._own and not is_self(node.value)
        if inside or node.attr in FRAMES or (node.attr in FOREIGN and self._is_foreign(node)):
            self._found("uses", node)
        elif is_changed(node) and (self._is_foreign(node) or node.attr in NAMES | {"__class__"}):
            self._found("sets", node)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if is_changed(node) and holds_names(node.value):
            self._found("sets", node)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        match node:
            case ast.Call(func=ast.Name(id="getattr" | "hasattr"), args=[_, ast.Constant(value=str(name)), *_]):
                if is_hidden(name) and name not in self._own:
                    self._found("uses", node)
            case ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[of, *_]) if self._is_foreign(of):
                self._found("sets", node)
            case ast.Call(func=ast.Attribute(value=of, attr="startswith" | "endswith" | "split" | "partition")):
                self._depends_on(of)
            case ast.Call(func=ast.Attribute(value=of, attr="pop" | "setdefault" | "update")) if holds_names(of):
                self._found("sets", of)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        self._depends_on(node.left, *node.comparators)
        self.generic_visit(node)

    def visit_Match(self, node: ast.Match) -> None:
        self._depends_on(node.subject)
        self.generic_visit(node)

    def _depends_on(self, *expressions: ast.expr) -> None:
        for each in expressions:
            if isinstance(each, ast.Attribute) and each.attr in NAMES:
                self._found("depends on", each)

    def _found(self, what: str, node: ast.AST) -> None:
        self.found.append(f"{what} {ast.unparse(node)}")

    def _is_foreign(self, of: ast.expr) -> bool:
        """Whether something is part of another package's module or class, such as ``json.decoder.JSONDecoder.x``."""
        while isinstance(of, ast.Attribute):
            of = of.value
        return isinstance(of, ast.Name) and of.id in self._paths and self._is_another(self._paths[of.id])

    def _is_another(self, path: str) -> bool:
        return path.split(".")[0] != self._module.split(".")[0]


def found_in(file: str, source: str) -> list[str]:
    tree = ast.parse(source)
    finder = Finder(file, tree)
    finder.visit(tree)
    return finder.found


def everything() -> Iterator[str]:
    for path in FILES:
        file = path.relative_to(ROOT).as_posix()
        yield from (f"{file}: {each}" for each in found_in(file, path.read_text(encoding="utf-8")))


def test_no_file_touches_the_inside_of_another_package() -> None:
    assert set(everything()) == EXCEPTIONS.keys()


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from json import _x", "imports json._x"),
        ("import json._x", "imports json._x"),
        ("from json._x import y", "imports json._x.y"),
        ("from toolchat.chat import _x", "imports toolchat.chat._x"),
        ("import json\njson.dumps = 1", "sets json.dumps"),
        ("import json\njson.JSONDecoder.decode = 1", "sets json.JSONDecoder.decode"),
        ("from json import JSONDecoder\ndel JSONDecoder.decode", "sets JSONDecoder.decode"),
        ("import json as j\nsetattr(j, 'dumps', 1)", "sets setattr(j, 'dumps', 1)"),
        ("from json import JSONDecoder as D\nsetattr(D, 'x', 1)", "sets setattr(D, 'x', 1)"),
        ("from toolchat.chat import client\nclient.x = 1", "sets client.x"),
        ("import json\nvalue = json.x()._y", "uses json.x()._y"),
        ("value = given._y", "uses given._y"),
        ("given._y = 1", "uses given._y"),
        ("value = getattr(given, '_y', None)", "uses getattr(given, '_y', None)"),
        ("given.__dict__['y'] = 1", "sets given.__dict__['y']"),
        ("from json import JSONDecoder\nclass A(JSONDecoder):\n x = lambda self: self._y", "A uses self._y"),
        (
            "from asyncio import Queue\nclass A(Queue[int]):\n def _wakeup_next(self): ...",
            "A replaces _wakeup_next",
        ),
        ("import sys\nsys._getframe()", "uses sys._getframe"),
        ("import inspect\ninspect.currentframe()", "uses inspect.currentframe"),
        ("import inspect\ninspect.stack()", "uses inspect.stack"),
        ("value = error.__traceback__.tb_frame", "uses error.__traceback__.tb_frame"),
        ("import sys\nsys.meta_path.append(1)", "uses sys.meta_path"),
        ("import sys\nsys.modules['x'] = 1", "sets sys.modules['x']"),
        ("import sys\nsys.modules.pop('x')", "sets sys.modules"),
        ("import gc\ngc.get_referrers(1)", "uses gc.get_referrers"),
        ("value = given.__class__.__name__ == 'X'", "depends on given.__class__.__name__"),
        ("value = type(given).__module__.startswith('x')", "depends on type(given).__module__"),
        ("value = 'x' in type(given).__qualname__", "depends on type(given).__qualname__"),
        ("match type(given).__name__:\n case 'X': ...", "depends on type(given).__name__"),
        ("class A:\n __module__ = 'aiohttp'", "sets __module__"),
        ("A.__qualname__ = 'B'", "sets A.__qualname__"),
        ("given.__class__ = A", "sets given.__class__"),
        ("class ClientSession: ...", "ClientSession has the name of a class of aiohttp"),
    ],
)
def test_uses_of_private_names_are_found(source: str, found: str) -> None:
    assert found_in("app/aiohttp_adapter.py", source) == [found]


@pytest.mark.parametrize(
    "source",
    [
        "class A:\n _x = 1\nvalue = A._x",
        "class A:\n def __init__(self): self._x = 1\ndef x(a): return a._x",
        "from toolchat.service.api import _x",
        "import sys\nvalue = sys.modules.get('x')",
        "import os\nos._exit(1)\nos.environ['X'] = '1'",
        "import gc\ngc.freeze()",
        "text = type(given).__name__",
        "if __name__ == '__main__': ...",
        "from toolchat.service.access.keys import KeyRegistry\nclass A(KeyRegistry):\n"
        " x = lambda self: self._principals",
    ],
)
def test_own_and_public_names_are_accepted(source: str) -> None:
    assert found_in("app/x.py", source) == []
