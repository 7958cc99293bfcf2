"""Making syntax nodes that stand at the line of the user's; walking over them and copying them.

A first call walks over the same nodes many times: `ast.walk` and `copy.deepcopy` took a fifth of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, TypeVar

Node = TypeVar("Node", bound=ast.AST)

HELPERS = "_jt_"  # the name under which transformed code finds `runtime`
ORIGINAL = "_jt_original"  # the user's function, as its twin knows it
THUNK = "_jt_thunk"  # a parameter of the lambdas that hold operands


_LEAVES = frozenset((ast.Name, ast.Constant))
_NO_PLACES = frozenset(
    "ctx op ops attr level module conversion is_async simple type_comment".split()
)
_fields: dict[
    type[ast.AST], tuple[str, ...]
] = {}  # of each kind of node, where nodes with parts may be


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes in a node, but for operators, and what says whether a name is read or assigned to."""
    kind = node.__class__
    fields = _fields.get(kind)
    if fields is None:
        own = () if kind in _LEAVES else kind._fields
        fields = _fields[kind] = tuple(field for field in own if field not in _NO_PLACES)
    found: list[ast.AST] = []
    parts = node.__dict__
    for field in fields:
        part = parts.get(field)
        if part.__class__ is list:
            found += [child for child in part if isinstance(child, ast.AST)]
        elif isinstance(part, ast.AST):
            found.append(part)
    return found


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all nodes in it, each after the one that it is in."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += children(node)


def copied(node: Any) -> Any:
    """A copy of a node with all that is in it. Nodes without parts, such as operators, are shared."""
    if isinstance(node, list):
        return [copied(part) for part in node]
    if not isinstance(node, ast.AST) or not node._fields:
        return node
    new = node.__class__.__new__(node.__class__)
    new.__dict__.update({name: copied(part) for name, part in node.__dict__.items()})
    return new


_POSITION = ("lineno", "col_offset", "end_lineno", "end_col_offset")


def placed(new: Node, at: ast.AST) -> Node:
    """Give a node the position of another one; `ast.copy_location` takes four times as long."""
    old, own = at.__dict__, new.__dict__
    for name in _POSITION:
        if name in old:
            own[name] = old[name]
    return new


def assign(name: str, value: ast.expr, at: ast.AST) -> ast.stmt:
    target = placed(ast.Name(name, ast.Store()), at)
    return placed(ast.Assign([target], value), at)


def constant(value: Any, at: ast.AST) -> ast.expr:
    return placed(ast.Constant(value), at)


def located(node: Any, at: ast.AST) -> Any:
    """Give `node`, and what is new in it, the position of `at`. Parts that have one are whole."""
    waiting = [node]
    while waiting:
        new = waiting.pop()
        if "lineno" in new._attributes:
            if "lineno" not in new.__dict__:
                placed(new, at)
            elif new is not node:
                continue
        waiting += children(new)
    return node


def load(name: str, at: ast.AST) -> ast.expr:
    return placed(ast.Name(name, ast.Load()), at)


def helper(name: str, arguments: list[ast.expr], at: ast.AST) -> ast.expr:
    function = ast.Attribute(ast.Name(HELPERS, ast.Load()), name, ast.Load())
    return located(placed(ast.Call(function, arguments, []), at), at)


def thunk(body: ast.expr) -> ast.expr:
    args = ast.arguments([], [], ast.arg(THUNK), [], [], None, [])
    return located(ast.Lambda(args, body), body)


def taking(name: str, body: ast.expr) -> ast.expr:
    """A function of one parameter."""
    args = ast.arguments([], [ast.arg(name)], ast.arg(THUNK), [], [], None, [])
    return located(ast.Lambda(args, body), body)


def expression(value: ast.expr) -> ast.stmt:
    return placed(ast.Expr(value), value)


def iterated(node: ast.expr) -> ast.expr:
    """What a loop runs over: a set of constants is a frozen one, as in Python, with its own order."""
    if isinstance(node, ast.Set) and all(map(is_literal, node.elts)):
        frozen: Any = frozenset(ast.literal_eval(node))
        return placed(ast.Constant(frozen), node)
    return node


def is_literal(node: ast.expr) -> bool:
    """Whether it is a constant once it is compiled: a number, a text, a tuple of such."""
    if isinstance(node, ast.Tuple):
        return all(map(is_literal, node.elts))
    if isinstance(node, ast.UnaryOp):
        return is_literal(node.operand)
    return isinstance(node, ast.Constant)
