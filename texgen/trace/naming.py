"""What the source calls an object: names, statements and functions from a file's syntax tree, by place.

A place is where a frame stands: a code object and the instruction in it. The DSL rewrites the functions that it traces,
but keeps file, line and column of what they call, so the tree of the file as written has the call.
"""

from __future__ import annotations

import ast
import linecache
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from types import CodeType
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Maybe:
    """An index into a tuple that the source may or may not take apart."""

    index: int


@dataclass(frozen=True)
class Field:
    """An attribute of an object that was given it by name."""

    name: str


Path: TypeAlias = "tuple[int | str | Maybe | Field, ...]"

DECORATORS = {"jit": "jit", "kernel": "kernel"}


@dataclass(frozen=True)
class Place:
    """A span of a file: line and column of its first character and of the one behind its last (0 where unknown)."""

    file: str
    line: int
    column: int = 0
    end_line: int = 0
    end_column: int = 0


def place_of(code: CodeType, lasti: int, line: int = 0) -> Place:
    """Where the instruction ``lasti`` of ``code`` stands; Python 3.10 knows its line alone."""
    positions = getattr(code, "co_positions", None)
    if positions is not None and lasti >= 0:
        at = next(islice(positions(), lasti // 2, None), None)
        if at is not None and at[0] is not None:
            return Place(code.co_filename, at[0], at[2] or 0, at[1] or 0, at[3] or 0)
    if not line:
        line = max((n for start, _, n in code.co_lines() if n and start <= lasti), default=code.co_firstlineno)
    return Place(code.co_filename, line)


@dataclass(frozen=True)
class Function:
    """A function as its source has it: ``kind`` is ``kernel``, ``jit`` or empty."""

    name: str
    kind: str
    line: int
    file: str = ""


@dataclass(frozen=True)
class Sighted:
    """What the source says about one call: its name, line, statement and function, and the callee's own name."""

    name: str
    file: str
    line: int
    code: str
    function: str
    discarded: bool = False
    """The statement is the call alone, so that nothing keeps what it gives."""
    outer: str = ""
    """What a helper's caller calls it, where the helper names it first and then returns it."""


class Source:
    """The syntax tree of one file, with every node's parent."""

    def __init__(self, file: str) -> None:
        self.file = file
        linecache.checkcache(file)
        lines = linecache.getlines(file)
        self.lines = [line.rstrip("\n") for line in lines]
        self.parents: dict[ast.AST, ast.AST] = {}
        self.calls: dict[tuple[int, int, int, int], ast.expr] = {}
        self.statements: list[ast.stmt] = []
        self.functions: list[ast.FunctionDef | ast.AsyncFunctionDef] = []
        self.returns: dict[ast.AST, list[ast.Return]] = {}
        try:
            self.tree: ast.Module | None = ast.parse("".join(lines)) if lines else None
        except (SyntaxError, ValueError, RecursionError):
            self.tree = None
        if self.tree is not None:
            self._index(self.tree)

    def _index(self, tree: ast.AST) -> None:
        todo = [tree]
        while todo:
            node = todo.pop()
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node
                todo.append(child)
            if isinstance(node, ast.stmt):
                self.statements.append(node)
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    self.functions.append(node)
                elif isinstance(node, ast.Return):
                    self.returns.setdefault(self._function_of(node), []).append(node)
            elif isinstance(node, ast.expr):
                span = (node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)
                if isinstance(node, ast.Call) or span not in self.calls:
                    self.calls[span] = node

    def _function_of(self, node: ast.AST) -> ast.AST:
        while not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)):
            node = self.parents[node]
        return node

    def node(self, place: Place) -> ast.AST | None:
        """The expression at a place, otherwise the innermost simple statement that covers its line."""
        found = self.calls.get((place.line, place.column, place.end_line, place.end_column))
        if found is not None:
            return found
        covering = [
            s for s in self.statements
            if s.lineno <= place.line <= (s.end_lineno or s.lineno) and not isinstance(s, _COMPOUND)
        ]  # fmt: skip
        return min(covering, key=lambda s: (s.end_lineno or 0) - s.lineno, default=None)

    def statement(self, node: ast.AST | None) -> ast.stmt | None:
        while node is not None and not isinstance(node, ast.stmt):
            node = self.parents.get(node)
        return node

    def text(self, node: ast.AST | None, line: int) -> str:
        """The source text of a statement without its indentation; of a compound one its first lines alone."""
        first, last = line, line
        if isinstance(node, ast.stmt):
            first, last = node.lineno, node.end_lineno or node.lineno
            if isinstance(node, _COMPOUND):
                body = getattr(node, "body", None)
                last = max(first, line, body[0].lineno - 1 if body else first)
        return textwrap.dedent("\n".join(self.lines[first - 1 : last])).strip()

    def enclosing(self, line: int) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The innermost function that covers a line."""
        covering = [f for f in self.functions if f.lineno <= line <= (f.end_lineno or f.lineno)]
        return max(covering, key=lambda f: f.lineno, default=None)

    def function(self, line: int) -> Function | None:
        """The same as its source has it; methods are ``Class.method``."""
        found = self.enclosing(line)
        if found is None:
            return None
        owner = self.parents.get(found)
        name = f"{owner.name}.{found.name}" if isinstance(owner, ast.ClassDef) else found.name
        kinds = [DECORATORS.get(_last_name(d), "") for d in found.decorator_list]
        return Function(name, next((k for k in kinds if k), ""), found.lineno, self.file)


_COMPOUND = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.If, ast.For, ast.AsyncFor, ast.While, ast.With,
    ast.AsyncWith, ast.Try, ast.Match,
)  # fmt: skip


def _last_name(node: ast.AST) -> str:
    """``jit`` of ``@jit``, ``@cute.jit`` and ``@cute.jit(...)``."""
    if isinstance(node, ast.Call):
        return _last_name(node.func)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


@cache
def source_of(file: str) -> Source:
    """The (kept) tree of a file."""
    return Source(file)


def sighted(places: Sequence[Place], index: int | None = None) -> Sighted:
    """What the source says about the call at ``places[0]``; the others are its callers, innermost first.

    ``index`` is the object's position in the tuple that the call gives, where it gives one. Where the call stands in
    a ``return``, the caller's target is the name.
    """
    first = places[0]
    source = source_of(first.file)
    node = source.node(first)
    statement = source.statement(node)
    discarded = isinstance(statement, ast.Expr) and statement.value is node
    path: Path = () if index is None else (Maybe(index),)
    name = _name(places, path)
    return Sighted(
        name=name,
        file=first.file,
        line=first.line,
        code=source.text(statement, first.line),
        function=function_of(places).name,
        discarded=discarded,
        outer=_outer(places, name),
    )


def function_of(places: Sequence[Place]) -> Function:
    """The kernel or jit function that a call happens in, otherwise the innermost function."""
    innermost: Function | None = None
    for place in places:
        found = source_of(place.file).function(place.line)
        if found is not None and found.kind:
            return found
        innermost = innermost or found
    return innermost or Function("", "", 0, places[0].file if places else "")


def _name(places: Sequence[Place], path: Path) -> str:
    for place in places:
        source = source_of(place.file)
        node = source.node(place)
        if node is None:
            return ""
        answer, path = _target(source, node, path)
        if answer is not None:
            return answer
    return ""


def _outer(places: Sequence[Place], name: str) -> str:
    """The caller's name of what ``name = make(...)`` and then ``return name`` (or ``return name, other``) gives it."""
    if len(places) < 2 or not name.isidentifier():
        return ""
    source = source_of(places[0].file)
    inside = source.enclosing(places[0].line)
    if inside is None:
        return ""
    for node in source.returns.get(inside, ()):
        if node.value is not None:
            values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            for i, value in enumerate(values):
                if isinstance(value, ast.Name) and value.id == name:
                    path: Path = (i,) if isinstance(node.value, ast.Tuple) else ()
                    caller = _name(places[1:], path)
                    return _outer(places[1:], caller) or caller
    return ""


def _target(source: Source, node: ast.AST, path: Path) -> tuple[str | None, Path]:
    """(the name that a node's value gets, or None where its function returns it; the path inside that value)."""
    while True:
        parent = source.parents.get(node)
        if isinstance(node, ast.stmt):
            return _of_statement(node, path)
        if isinstance(parent, ast.NamedExpr) and parent.value is node:
            return _spelt(parent.target), path
        if isinstance(parent, ast.Lambda):
            return None, path
        if isinstance(parent, ast.keyword) and isinstance(node, ast.expr):
            call = source.parents.get(parent)
            statement = source.statement(call)
            if parent.arg and isinstance(statement, ast.Expr):
                return parent.arg, ()
            made = _last_name(call.func) if isinstance(call, ast.Call) else ""
            if parent.arg and call is not None and (made == "dict" or made[:1].isupper()):
                path = (parent.arg if made == "dict" else Field(parent.arg), *path)
                node = call
                continue
        if isinstance(parent, (ast.Tuple, ast.List)) and node in parent.elts:
            path = (parent.elts.index(node), *path)  # type: ignore[arg-type]
        elif isinstance(parent, ast.Dict) and node in parent.values:
            key = parent.keys[parent.values.index(node)]  # type: ignore[arg-type]
            path = (key.value if isinstance(key, ast.Constant) and isinstance(key.value, (str, int)) else "", *path)
        elif isinstance(parent, ast.Call) and node is not parent.func:
            path = ()  # an argument: the whole call's target covers it
        elif isinstance(parent, ast.Subscript) and parent.value is node and isinstance(parent.slice, ast.Constant):
            first = path[0].index if path and isinstance(path[0], Maybe) else path[0] if path else None
            path = path[1:] if first == parent.slice.value else path
        if parent is None:
            return "", path
        node = parent


def _of_statement(statement: ast.stmt, path: Path) -> tuple[str | None, Path]:
    if isinstance(statement, ast.Return):
        return None, path
    if isinstance(statement, ast.Assign):
        return _reached(statement.targets[0], path), ()
    if isinstance(statement, (ast.AnnAssign, ast.AugAssign)):
        return _reached(statement.target, path), ()
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        named = [i.optional_vars for i in statement.items if i.optional_vars is not None]
        return (_spelt(named[0]) if named else ""), ()
    if isinstance(statement, (ast.For, ast.AsyncFor)):
        return _spelt(statement.target), ()
    if isinstance(statement, ast.Expr) and isinstance(call := statement.value, ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("append", "add", "insert", "extend"):
            return _spelt(call.func.value), ()
        if isinstance(call.func, ast.Name) and call.func.id == "setattr" and len(call.args) == 3:
            key = call.args[1]
            is_text = isinstance(key, ast.Constant) and isinstance(key.value, str)
            return (f"{_spelt(call.args[0])}.{key.value!s}" if is_text else ""), ()  # type: ignore[attr-defined]
    return "", ()


def _reached(target: ast.AST, path: Path) -> str:
    """The part of an assignment's target that a path leads to: ``b`` for ``a, b`` and (1,); ``x[0]`` for ``x``."""
    if isinstance(target, (ast.Tuple, ast.List)):
        at = path[0].index if path and isinstance(path[0], Maybe) else path[0] if path else None
        if isinstance(at, int) and at < len(target.elts) and not any(isinstance(e, ast.Starred) for e in target.elts[: at + 1]):
            return _reached(target.elts[at], path[1:])
        return ", ".join(_spelt(e) for e in target.elts)
    steps = (f".{step.name}" if isinstance(step, Field) else f"[{step!r}]" for step in path if step != "" and not isinstance(step, Maybe))
    return _spelt(target) + "".join(steps)


def _spelt(node: ast.AST) -> str:
    return ast.unparse(node)


def argument(place: Place, name: str) -> list[str]:
    """The source texts of a keyword argument of the call at a place: one an element of a list or tuple in the source.

    Empty where the call has none of that name.
    """
    for keyword in _keywords(source_of(place.file).node(place)):
        if keyword.arg == name:
            value = keyword.value
            parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value]
            return [ast.unparse(part) for part in parts]
    return []


def _keywords(node: ast.AST | None) -> list[ast.keyword]:
    if isinstance(node, ast.Call):
        return node.keywords
    return [k for n in ast.walk(node) if isinstance(n, ast.Call) for k in n.keywords] if node is not None else []


def layout_argument(place: Place) -> str:
    """The last part of what the call at a place is given that looks like a layout's name (``sA_layout``)."""
    node: Any = source_of(place.file).node(place)
    if not isinstance(node, ast.Call):
        node = next((n for n in ast.walk(node) if isinstance(n, ast.Call)), None) if node is not None else None
    if node is None:
        return ""
    for value in [*node.args, *(k.value for k in node.keywords)]:
        text = ast.unparse(value)
        if "layout" in text:
            return text
    return ""
