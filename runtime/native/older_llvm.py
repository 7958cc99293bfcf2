"""Modules in the spelling of LLVM 20: llvmlite 0.45 to 0.47, which Numba 0.62 to 0.65 want.

Code generation writes what LLVM 22 reads. To LLVM 20 the alignment of a masked access is a number among
the arguments, and the end of a coroutine has a value (https://releases.llvm.org/20.1.0/docs/LangRef.html):

    call <8 x double> @llvm.masked.load.v8f64.p0(ptr align 8 %p, <8 x i1> %m, <8 x double> %r)
    call <8 x double> @llvm.masked.load.v8f64.p0(ptr %p, i32 8, <8 x i1> %m, <8 x double> %r)

What is in LLVM 20's words already, as LLVM prints it, stays as it is.
"""

from __future__ import annotations

import re

_OTHER = re.compile(r"@llvm\.(?:masked\.(?:load|store|gather|scatter)\.|coro\.end\()")
_GIVEN = re.compile(r"\b(ptr>?) align (\d+) ([^\s,]+)")
_DECLARED = re.compile(r"(?<=[(\s])(ptr|<\d+ x ptr>)(?=[,)])(?!, i32)")


def in_older_words(text: str) -> str:
    """The module `text`, as LLVM 20 wants it."""
    if not _OTHER.search(text):
        return text
    return "\n".join(_line(line) if _OTHER.search(line) else line for line in text.split("\n"))


def _line(line: str) -> str:
    if "@llvm.coro." in line:
        line = line.replace("call void", "%ended = call i1")
        return line.replace("declare void", "declare i1")
    if line.startswith("declare "):
        return _DECLARED.sub(r"\1, i32", line, count=1)
    return _GIVEN.sub(r"\1 \3, i32 \2", line, count=1)
