"""Generators and coroutines are left as they are, but for a check of their conditions."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from .names import own_nodes
from .nodes import constant, copied, helper


class Lazy(ast.NodeTransformer):
    """Generators and coroutines run later, piece by piece: their conditions must be ordinary."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    @staticmethod
    def root(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Any:
        """A generator or coroutine itself, with conditions that are checked."""
        kind = "a coroutine" if isinstance(node, ast.AsyncFunctionDef) else "a generator"
        node = bare(copied(node))
        Lazy(kind).body(node)
        return node

    def body(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        node.body = [self.visit(s) for s in node.body]

    def condition(self, node: Any) -> ast.AST:
        self.generic_visit(node)
        node.test = helper("refuse", [node.test, constant(self.kind, node.test)], node.test)
        return node

    visit_If = visit_While = visit_IfExp = visit_Assert = condition

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node


def bare(node: Any) -> Any:
    """A function without decorators, defaults and annotations."""
    node.args.defaults = []
    node.args.kw_defaults = [None for _ in node.args.kwonlyargs]
    for arg in ast.walk(node.args):
        if isinstance(arg, ast.arg):
            arg.annotation = None
    if not isinstance(node, ast.Lambda):
        node.decorator_list, node.returns = [], None
    return node


def is_lazy(body: Sequence[ast.AST]) -> bool:
    return any(
        isinstance(n, (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith))
        for n in own_nodes(body)
    )
