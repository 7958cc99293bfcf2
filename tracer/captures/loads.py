"""Where code loads names, and what it does with them: one load and the attributes that follow."""

from __future__ import annotations

import dis
import functools
import sys
from collections.abc import Iterator, Sequence
from types import CodeType

# Whether the empty place of a call lies before what is called, or after it.
_NULL_FIRST = sys.version_info < (3, 13)


@functools.lru_cache(256)
def instructions_of(code: CodeType) -> tuple[dis.Instruction, ...]:
    """The instructions of code, without those of code inside. Tracing asks several times in a row."""
    return tuple(dis.get_instructions(code))


def loads(instructions: Sequence[dis.Instruction]) -> Iterator[tuple[int, str, bool]]:
    """(position, name, is it global) of each load of a name; of a pair of loads both."""
    for i, op in enumerate(instructions):
        if op.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield i, op.argval, True
        elif op.opname in ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"):
            yield i, op.argval, False
        elif op.opname == "STORE_FAST_LOAD_FAST":
            yield i, op.argval[1], False
        elif op.opname.startswith("LOAD_FAST"):
            if isinstance(op.argval, tuple):
                yield -1, op.argval[0], False
                yield i, op.argval[1], False
            else:
                yield i, op.argval, False


def attributes(ops: Sequence[dis.Instruction], position: int) -> tuple[list[str], bool, bool]:
    """The attributes read from the name loaded at `position`; is it called; is it only stored to."""
    if position < 0:
        return [], False, False
    op = ops[position]
    called = op.opname == "LOAD_GLOBAL" and bool((op.arg or 0) & 1)
    if _NULL_FIRST and position and ops[position - 1].opname == "PUSH_NULL":
        called = True
    attrs: list[str] = []
    i = position + 1
    while i < len(ops):
        op = ops[i]
        if op.opname == "LOAD_METHOD":
            attrs.append(op.argval)
            return attrs, True, False
        if op.opname == "LOAD_ATTR":
            attrs.append(op.argval)
            if sys.version_info >= (3, 12) and (op.arg or 0) & 1:
                return attrs, True, False
        elif op.opname in ("STORE_ATTR", "DELETE_ATTR") and not attrs:
            return attrs, False, True
        elif op.opname == "PUSH_NULL":
            return attrs, True, False
        elif op.opname != "COPY":
            break
        i += 1
    return attrs, called, False
