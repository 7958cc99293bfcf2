"""Sources of functions that go to another process: `cloudpickle` sends code without the file it is from.

A compiled function that is pickled takes the text of its file along. Where it arrives, its code and that
of functions which it reaches get that file's name again, or, where there is no such file, a name by
which `linecache` knows the text: autograph reads it there, and messages show its lines.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import PurePath
from types import CodeType, FunctionType, MethodType
from typing import Any

Source = tuple[str, str]  # the file's name, its text
_NOWHERE = "<dynamic-code>"  # what cloudpickle calls the file of all code


def source_of(function: Any) -> Source | None:
    """The file in which a function is defined, and its text; None where there is none."""
    function = getattr(function, "__wrapped__", function)
    if isinstance(function, MethodType):
        function = function.__func__
    if not isinstance(function, FunctionType):
        return None
    file = function.__code__.co_filename
    lines = linecache.getlines(file, function.__globals__)
    return (file, "".join(lines)) if lines else None


def sends_main() -> bool:
    """Whether who pickles now sends what `__main__` defines by value, as cloudpickle does, to processes
    that have another `__main__`."""
    caller = sys._getframe(1).f_back  # of `__reduce__`, past picklers in C
    return caller is not None and "cloudpickle" in caller.f_globals.get("__name__", "")


def arrived(function: Any, source: Source | None) -> None:
    """Tell the code of `function`, and of what it reaches, which file it is from."""
    if source is None:
        return
    file, text = source
    lines = text.splitlines(keepends=True)
    if "".join(linecache.getlines(file)) != text:
        file = f"<{PurePath(file).name} {sha256(text.encode()).hexdigest()[:12]}>"
        linecache.cache[file] = (len(text), None, lines, file)
    for reached in _reached(function):
        code = reached.__code__
        if code.co_filename == _NOWHERE and _fits(code, lines):
            reached.__code__ = _renamed(code, file)


def _fits(code: CodeType, lines: list[str]) -> bool:
    """Whether code may be from a text: its first line defines something of its name."""
    first = code.co_firstlineno
    if not 0 < first <= len(lines):
        return False
    word = "lambda" if code.co_name == "<lambda>" else code.co_name
    return any(word in line for line in lines[first - 1 : first + 19])  # below its decorators


def _renamed(code: CodeType, file: str) -> CodeType:
    inner = (_renamed(c, file) if isinstance(c, CodeType) else c for c in code.co_consts)
    return code.replace(co_filename=file, co_consts=tuple(inner))


def _reached(function: Any) -> Iterator[FunctionType]:
    """A function, and those in its closure, its globals, and in functions around which others are."""
    pending, seen = [function], set[int]()
    while pending:
        value = pending.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, MethodType):
            value = value.__func__
        wrapped = getattr(value, "__wrapped__", None)
        if callable(wrapped):
            pending.append(wrapped)
        if not isinstance(value, FunctionType):
            continue
        yield value
        for cell in value.__closure__ or ():
            try:
                pending.append(cell.cell_contents)
            except ValueError:  # nothing is in it yet
                continue
        names = {n for code in _nested(value.__code__) for n in code.co_names}
        pending += [value.__globals__[n] for n in names if n in value.__globals__]


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)
