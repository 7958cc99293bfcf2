"""A loop of a user's function as Python that works on the variables of the function's twin.

    for i in range(n):              def _jt_plain(_jt_items):
        if i * i > n:                   nonlocal i, k, _jt_break_1
            break              ->       for i in _jt_items:
        k += 1                              if i * i > n: _jt_break_1 = True
                                            else: k += 1
                                            if _jt_break_1: break

Jumps are the flags that they are in the twin (`jumps`), so that it can go on from either.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from .jumps import For, Guard, While, lower
from .lazy import bare
from .matching import Matching
from .names import SCOPES, bound
from .nodes import copied, load, located, placed
from .raises import Raises

PLAIN = "_jt_plain"
_ITEMS = "_jt_items"


def plain_loop(
    definition: ast.FunctionDef, line: int, variables: Collection[str]
) -> ast.FunctionDef | None:
    """The loop whose condition, or what it runs over, begins at a line, as a function of its own.
    `variables` are those of its function's, and of functions around, that it may see."""
    root = Raises().visit(Matching().visit(bare(copied(definition))))
    loop = _loop([root], line)
    if loop is None or _has_private_names(loop):
        return None
    if any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in ast.walk(loop)):
        return None
    names = bound([loop])
    plain = _Plain().visit(loop)
    own, shared = sorted(names & set(variables)), sorted(names - set(variables))
    body: list[ast.stmt] = []
    if own:
        body.append(ast.Nonlocal(own))
    if shared:
        body.append(ast.Global(shared))
    args = ast.arguments([], [], None, [], [], None, [])
    if isinstance(loop, ast.For):
        args.args = [ast.arg(_ITEMS)]
        plain.iter = load(_ITEMS, plain.iter)
    made = ast.FunctionDef(PLAIN, args, [*body, plain], [])
    located(made, loop)
    return made


def _loop(nodes: Sequence[ast.AST], line: int) -> For | While | None:
    """The loop among the statements of functions, innermost functions included."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            inner = [n for n in _functions(node.body) if _spans(n, line)]
            if inner:
                return _loop(inner, line)
            found = [n for s in lower(node.body)[0] for n in ast.walk(s)]
            for loop in found:
                if isinstance(loop, (For, While)) and _start(loop).lineno == line:
                    return loop
    return None


def _functions(body: Sequence[ast.AST]) -> Iterator[ast.FunctionDef]:
    for node in body:
        if isinstance(node, ast.FunctionDef):
            yield node
        elif not isinstance(node, SCOPES):
            yield from _functions(list(ast.iter_child_nodes(node)))


def _spans(node: ast.FunctionDef, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _start(loop: For | While) -> ast.expr:
    return loop.iter if isinstance(loop, For) else loop.test


def _has_private_names(loop: ast.AST) -> bool:
    """Names that the class around would change, and `super()`, which asks the function around."""
    names = [getattr(n, "id", getattr(n, "attr", "")) for n in ast.walk(loop)]
    return any(n == "super" or (n.startswith("__") and not n.endswith("__")) for n in names)


class _Plain(ast.NodeTransformer):
    """Lowered loops as Python's."""

    def visit_For(self, node: ast.For) -> Any:
        assert isinstance(node, For)
        self.generic_visit(node)
        new = ast.For(node.target, node.iter, [*node.body, *self._leave(node.flags)], [])
        return placed(new, node)

    def visit_While(self, node: ast.While) -> Any:
        assert isinstance(node, While)
        self.generic_visit(node)
        test = node.test
        if node.flags:
            test = ast.BoolOp(ast.And(), [_none(node.flags), test])
        return placed(ast.While(test, node.body, []), node)

    def visit_Guard(self, node: Guard) -> Any:
        self.generic_visit(node)
        return placed(ast.If(_none(node.flags), node.body, node.orelse), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        return node

    @staticmethod
    def _leave(flags: Sequence[str]) -> list[ast.stmt]:
        return [ast.If(_any(flags), [ast.Break()], [])] if flags else []


def _any(flags: Sequence[str]) -> ast.expr:
    names: list[ast.expr] = [ast.Name(flag, ast.Load()) for flag in flags]
    return names[0] if len(names) == 1 else ast.BoolOp(ast.Or(), names)


def _none(flags: Sequence[str]) -> ast.expr:
    return ast.UnaryOp(ast.Not(), _any(flags))
