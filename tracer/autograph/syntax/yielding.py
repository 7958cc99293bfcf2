"""A generator function as a plain one, which calls its consumer with each item.

    def positive(x):                def positive(_jt_each, x):
        for v in x:                     for v in x:
            if v > 0:          ->           if v > 0:
                yield v                         if _jt_each(v): return

`_jt_each` is the body of the loop that runs over the items, and says whether that has ended. So the
loops of the generator are loops around it, whose conditions may be traced.
"""

from __future__ import annotations

import ast
from typing import Any

from .names import SCOPES, own_nodes
from .nodes import HELPERS, helper, load, located

EACH = "_jt_each"


def yielding(node: ast.FunctionDef) -> ast.FunctionDef | None:
    """The plain function, made of a copy of the user's; None where a `yield` gives a value, or stands
    where something is done when the generator is left."""
    rewritten = _Yielding()
    new: Any = rewritten.visit(node)
    if rewritten.refused or any(
        isinstance(n, (ast.Yield, ast.YieldFrom, ast.Await)) for n in own_nodes(new.body)
    ):
        return None
    (new.args.posonlyargs or new.args.args).insert(0, located(ast.arg(EACH), node))
    return new


def with_consumer(node: Any) -> Any:
    """The transformed function, whose branches and loops change what the consumer does, too."""
    return _WithConsumer().visit(node)


class _Yielding(ast.NodeTransformer):
    def __init__(self) -> None:
        self.refused = False
        self.is_inside = False  # of the function

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, SCOPES):
            if self.is_inside:
                return node
            self.is_inside = True
        if isinstance(node, (ast.Try, ast.With)) and any(
            isinstance(n, (ast.Yield, ast.YieldFrom)) for n in ast.walk(node)
        ):
            self.refused = True
        return super().visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        if isinstance(node.value, ast.Yield):
            return self._given(node.value.value or ast.Constant(None), node)
        if isinstance(node.value, ast.YieldFrom):
            name = "_jt_given"
            body = [self._given(ast.Name(name, ast.Load()), node)]
            target = ast.Name(name, ast.Store())
            return located(ast.For(target, node.value.value, body, []), node)
        return node

    def visit_Return(self, node: ast.Return) -> ast.Return:
        return located(ast.Return(None), node) if node.value is None else self._refuse(node)

    def _refuse(self, node: Any) -> Any:
        self.refused = True
        return node

    @staticmethod
    def _given(value: ast.expr, at: ast.stmt) -> ast.stmt:
        test = ast.Call(load(EACH, at), [value], [])
        return located(ast.If(test, [ast.Return(None)], []), at)


class _WithConsumer(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        of = node.func
        if not isinstance(of, ast.Attribute) or of.attr != "State":
            return node
        if not isinstance(of.value, ast.Name) or of.value.id != HELPERS:
            return node
        return located(helper("joint", [load(EACH, node), node], node), node)
