"""The syntax tree of a function, found in its file by the place that its code object remembers.

Of a `def` only its own lines are read, of a lambda the whole file. Every node stands at the line and
column of the user's own text. Notebook cells work as files do: `linecache` knows them.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import pairwise
from types import CodeType, FunctionType

from ....ir.record import record

_TRIES = 5

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@record
class Origin:
    """Where a function is defined: its node (shared, not to be changed) and the class around it."""

    node: Definition
    class_name: str | None  # whose private names (`__x`) are mangled


def has_source(function: FunctionType) -> bool:
    """Whether there is a file, or a notebook's cell, in which the function may be found."""
    return bool(_lines(function))


def _lines(function: FunctionType) -> Sequence[str]:
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    # Python 3.14 keeps what was typed at its prompt, or follows `-c`, by the code that was made of it.
    return lines or getattr(linecache, "_getlines_from_code", lambda code: [])(code)


class Unreadable(Exception):
    """The source of a function cannot be found, or is not that of the function: why, and a remedy."""


def find_origin(function: FunctionType) -> Origin:
    """Raises Unreadable when the source cannot be found, or is not that of the function."""
    code = function.__code__
    lines = _lines(function)
    if not lines:
        raise Unreadable(
            f"its source is not available ({code.co_filename}): define it in a file or a notebook "
            "cell (of code from standard input or exec Python keeps no source, nor before 3.13 of "
            "what follows -c or is typed at the prompt)"
        )
    nodes = _own_lines(code, lines) or _found("".join(lines), code)
    if not nodes:
        raise Unreadable(
            f"{code.co_filename}:{code.co_firstlineno} does not define it: the file has changed "
            "since it was imported; import it anew"
        )
    return Origin(nodes[0], _class_name(code.co_qualname))


def _own_lines(code: CodeType, lines: Sequence[str]) -> list[Definition]:
    """The `def` in its own lines: all that are indented further, as far as its code reaches at least.
    None is found where that guess is wrong (a text that ends it at the margin)."""
    first = code.co_firstlineno
    if code.co_name == "<lambda>" or not 0 < first <= len(lines):
        return []
    margin = _indentation(lines[first - 1])
    last = min(max(first, _last_line(code)), len(lines))
    while last < len(lines) and _belongs(lines[last], margin):
        last += 1
    block = "".join(lines[first - 1 : last])
    if margin:
        block = "\n" * (first - 2) + "if 1:\n" + block
    else:
        block = "\n" * (first - 1) + block
    return _found(block, code)


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def _belongs(line: str, margin: int) -> bool:
    text = line.strip()
    return not text or text.startswith("#") or _indentation(line) > margin


def _last_line(code: CodeType) -> int:
    """The last line of the code's instructions, and of the functions inside."""
    inner = (_last_line(c) for c in code.co_consts if isinstance(c, CodeType))
    return max((*(p[1] or 0 for p in code.co_positions()), *inner), default=0)


def _class_name(qualname: str) -> str | None:
    """The class in which private names (`__x`) of the function are mangled: the innermost around it."""
    *around, _ = qualname.split(".")
    functions = {n for n, after in pairwise(around) if after == "<locals>"}
    classes = [n for n in around if n not in functions and n != "<locals>"]
    return classes[-1] if classes else None


def _found(text: str, code: CodeType) -> list[Definition]:
    """The definitions that `code` may come from."""
    try:
        nodes = _definitions(text).get(code.co_firstlineno, [])
    except SyntaxError:
        return []
    nodes = [node for node in nodes if _fits(node, code)]
    if len(nodes) > 1:  # lambdas on one line: the smallest that holds all of the code
        nodes = [node for node in nodes if _holds(node, code)]
        nodes.sort(key=_extent)
    return nodes


def _parsed(text: str) -> ast.Module:
    """`ast.parse`. Python counts how deep it is for all threads at once: while others parse, it may say
    SystemError of a tree that is all right."""
    for _ in range(_TRIES):
        with suppress(SystemError):
            return ast.parse(text)
    return ast.parse(text)


@lru_cache(maxsize=64)
def _definitions(text: str) -> dict[int, list[Definition]]:
    """The functions of a text by their first lines, as code objects count them."""
    by_line: dict[int, list[Definition]] = {}
    for node in ast.walk(_parsed(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            by_line.setdefault(first, []).append(node)
        elif isinstance(node, ast.Lambda):
            by_line.setdefault(node.lineno, []).append(node)
    return by_line


def _fits(node: Definition, code: CodeType) -> bool:
    name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
    args = node.args
    names = [a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    names += [a.arg for a in (args.vararg, args.kwarg) if a is not None]
    variables = code.co_varnames[: len(names)]
    if name != code.co_name or len(variables) != len(names):
        return False
    return all(k == n or k.endswith(n) for k, n in zip(variables, names, strict=True))


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
