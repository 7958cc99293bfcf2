"""The syntax tree of a function, found in its file by the place that its code object remembers.

Whole files are parsed, so every node stands at the line and column of the user's own text. Notebook
cells work as files do: `linecache` knows them.
"""

from __future__ import annotations

import ast
import linecache
from functools import lru_cache
from types import CodeType, FunctionType

from ...ir.record import record
from ..messages import errors
from ..messages.errors import complain

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@record
class Origin:
    """Where a function is defined: its node (shared, not to be changed) and the class around it."""

    node: Definition
    class_name: str | None  # whose private names (`__x`) are mangled


def has_source(function: FunctionType) -> bool:
    """Whether there is a file, or a notebook's cell, in which the function may be found."""
    return bool(linecache.getlines(function.__code__.co_filename, function.__globals__))


def find_origin(function: FunctionType) -> Origin:
    """Raises TransformError when the source cannot be found, or is not that of the function."""
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if not lines:
        _refuse(
            function,
            f"its source is not available ({code.co_filename})",
            "define the function in a file or a notebook cell (exec and the interactive prompt keep "
            "no source), or write jt.cond and jt.while_loop by hand.",
        )
    try:
        origins = _definitions("".join(lines)).get(code.co_firstlineno, [])
    except SyntaxError:
        origins = []
    origins = [origin for origin in origins if _fits(origin.node, code)]
    if len(origins) > 1:  # lambdas on one line: the smallest that holds all of the code
        origins = [origin for origin in origins if _holds(origin.node, code)]
        origins.sort(key=lambda origin: _extent(origin.node))
    if not origins:
        _refuse(
            function,
            f"{code.co_filename}:{code.co_firstlineno} does not define it: the file has changed "
            "since it was imported",
            "import it anew.",
        )
    return origins[0]


def _refuse(function: FunctionType, what: str, remedy: str) -> None:
    complain(
        errors.TransformError,
        f"autograph cannot read {function.__qualname__}: {what}",
        remedy,
    )


@lru_cache(maxsize=64)
def _definitions(text: str) -> dict[int, list[Origin]]:
    """The functions of a file by their first lines, as code objects count them."""
    by_line: dict[int, list[Origin]] = {}

    def visit(node: ast.AST, class_name: str | None) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            by_line.setdefault(first, []).append(Origin(node, class_name))
        elif isinstance(node, ast.Lambda):
            by_line.setdefault(node.lineno, []).append(Origin(node, class_name))
        elif isinstance(node, ast.ClassDef):
            class_name = node.name
        for child in ast.iter_child_nodes(node):
            visit(child, class_name)

    visit(ast.parse(text), None)
    return by_line


def _fits(node: Definition, code: CodeType) -> bool:
    name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
    args = node.args
    names = [a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    names += [a.arg for a in (args.vararg, args.kwarg) if a is not None]
    variables = code.co_varnames[: len(names)]
    mangled = all(k == n or k.endswith(n) for k, n in zip(variables, names, strict=True))
    return name == code.co_name and len(variables) == len(names) and mangled


def _holds(node: Definition, code: CodeType) -> bool:
    """Whether all instructions of `code` come from the body of the lambda `node`."""
    body = node.body
    assert isinstance(body, ast.expr) and body.end_lineno is not None
    start, end = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
    for line, end_line, column, end_column in code.co_positions():
        if line is None or column is None or end_line is None or end_column is None:
            continue
        if (line, column, end_line, end_column)[1:] == (0, end_line, 0):
            continue  # the entry of the code object
        if (line, column) < start or (end_line, end_column) > end:
            return False
    return True


def _extent(node: Definition) -> tuple[int, int]:
    body = node.body
    assert isinstance(body, ast.expr) and body.end_lineno is not None
    return body.end_lineno - body.lineno, (body.end_col_offset or 0) - body.col_offset
