"""Making syntax nodes that stand at the line of the user's."""

from __future__ import annotations

import ast
from typing import Any

HELPERS = "_jt_"  # the name under which transformed code finds `runtime`
ORIGINAL = "_jt_original"  # the user's function, as its twin knows it
THUNK = "_jt_thunk"  # a parameter of the lambdas that hold operands


def assign(name: str, value: ast.expr, at: ast.AST) -> ast.stmt:
    target = ast.copy_location(ast.Name(name, ast.Store()), at)
    return ast.copy_location(ast.Assign([target], value), at)


def constant(value: Any, at: ast.AST) -> ast.expr:
    return ast.copy_location(ast.Constant(value), at)


def located(node: Any, at: ast.AST) -> Any:
    """Give `node`, and what is new in it, the position of `at`."""
    for child in ast.walk(node):
        if "lineno" in child._attributes and not hasattr(child, "lineno"):
            ast.copy_location(child, at)
    return node


def load(name: str, at: ast.AST) -> ast.expr:
    return ast.copy_location(ast.Name(name, ast.Load()), at)


def helper(name: str, arguments: list[ast.expr], at: ast.AST) -> ast.expr:
    function = ast.Attribute(ast.Name(HELPERS, ast.Load()), name, ast.Load())
    return located(ast.copy_location(ast.Call(function, arguments, []), at), at)


def thunk(body: ast.expr) -> ast.expr:
    args = ast.arguments([], [], ast.arg(THUNK), [], [], None, [])
    return located(ast.Lambda(args, body), body)


def taking(name: str, body: ast.expr) -> ast.expr:
    """A function of one parameter."""
    args = ast.arguments([], [ast.arg(name)], ast.arg(THUNK), [], [], None, [])
    return located(ast.Lambda(args, body), body)


def expression(value: ast.expr) -> ast.stmt:
    return ast.copy_location(ast.Expr(value), value)
