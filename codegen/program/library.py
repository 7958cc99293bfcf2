"""Calls of NumPy's loops, as kernels whose units are the items of a batch.

    void loop(char **arguments, npy_intp *sizes, npy_intp *steps, void *data)

`sizes` begins with the number of items. A loop that failed leaves the flag "invalid" set. A flag that is
set when it begins stays so, and is cleared before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from ..llvm.builder import Value, constant, symbol
from ..llvm.instructions import SCALAR_TYPES
from ..llvm.instructions import constant as number
from ..llvm.modules import Function
from ..schedule.tiled import LibraryCall
from ..target import Target

INVALID = constant("i32", 1)  # FE_INVALID of <fenv.h>, on x86 and on AArch64


def library_call(step: LibraryCall) -> tuple[str, set[str], set[str]]:
    """The function's text from its parameter list on, declarations, and symbols of the runtime."""
    call = _Call(step)
    return call.f.unnamed(noalias=("ctx",)), call.declarations, call.imports


# Threads that share a batch want one thread each of the BLAS: its own would wait for each other. The
# first one that comes sets it so, the last one that goes as it was.
_GET, _SET, _SHARED = (f"{Target.BLAS}:{kind}" for kind in ("get", "set", "words"))


class _Call:
    """What does a step's units, while it is written."""

    def __init__(self, step: LibraryCall) -> None:
        f = self.f = Function("void", "call", ctx="ptr", lo="i64", hi="i64")
        self.step = step
        loop = step.loop
        name = f"{loop.module}:{loop.name}:{loop.types}"
        function, data = f"{Target.LOOP}:{name}", f"{Target.LOOP_DATA}:{name}"
        self.imports = {function, data}
        count = len(step.operands) + len(step.results)
        arguments = f.alloca(f"[{count + len(loop.constants)} x i64]")
        sizes = f.alloca(f"[{1 + len(loop.sizes)} x i64]")
        steps = f.alloca(f"[{len(step.steps)} x i64]")
        _store(f, sizes, [f.hi - f.lo, *(constant("i64", n) for n in loop.sizes)])
        _store(f, steps, [constant("i64", n) for n in step.steps])
        _store(f, arguments, self._arguments())
        if step.site:
            f.call("i32", "feclearexcept", INVALID)
        if step.alone:
            self.imports |= {_GET, _SET, _SHARED}
            self._counted(1, self._one_thread)
        f.call("void", function, arguments, sizes, steps, symbol(data))
        if step.alone:
            self._counted(-1, self._as_before)
        if step.site:
            self._report(count)
        f.ret()
        self.declarations = {*f.callees.values(), f"{symbol(data).text} = external global i8"}
        if step.alone:
            self.declarations.add(f"{symbol(_SHARED).text} = external global [3 x i64]")

    def _arguments(self) -> list[Value]:
        """Where the first item of each argument is; that of a constant is on the stack."""
        f, step = self.f, self.step
        operands, end = len(step.operands), len(step.operands) + len(step.loop.constants)
        addresses = []
        for k, value in enumerate(step.loop.constants, operands):
            dtype = np.dtype(step.loop.types[k])
            address = f.alloca(SCALAR_TYPES[dtype], align=8)
            f.store(number(value, dtype, 1), address, align=8)
            addresses.append(address)
        count = end + len(step.results)
        moving = [k for k in range(count) if not operands <= k < end]
        for word, k in enumerate(moving):
            base = f.load("ptr", f.ctx, word, "ptr", align=8)
            addresses.insert(k, f.offset(base, f.lo * step.steps[k]))
        return addresses

    def _counted(self, change: int, act: Callable[[Value], None]) -> None:
        """Under the lock: count who is inside, and act if that was or becomes nobody."""
        f, lock = self.f, symbol(_SHARED)
        wait, locked, first, unlock = (f.later(n) for n in ("wait", "locked", "act", "unlock"))
        f.jump(wait)
        f.at(wait)
        taken = f.update_atomic("xchg", lock, constant("i64", 1), "acquire")
        f.branch(taken.eq(0), locked, wait)
        f.at(locked)
        count_at, saved = f.offset(lock, 1, "i64"), f.offset(lock, 2, "i64")
        count = f.load("i64", count_at, align=8)
        new = count + change
        f.store(new, count_at, align=8)
        f.branch((count if change > 0 else new).eq(0), first, unlock)
        f.at(first)
        act(saved)
        f.jump(unlock)
        f.at(unlock)
        f.store_atomic(constant("i64", 0), lock, "release")

    def _one_thread(self, saved: Value) -> None:
        had = self.f.call("i32", _GET)
        self.f.store(had.sext("i64"), saved, align=8)
        self.f.call("void", _SET, constant("i32", 1))

    def _as_before(self, saved: Value) -> None:
        before = self.f.load("i64", saved, align=8).trunc("i32")
        self.f.call("void", _SET, before)

    def _report(self, position: int) -> None:
        """Leave the number of the error site in the status block, the last pointer of the context."""
        f = self.f
        failed = f.call("i32", "fetestexcept", INVALID)
        bad, done = f.later("bad"), f.later("done")
        f.branch(failed.eq(0), done, bad)
        f.at(bad)
        f.call("i32", "feclearexcept", INVALID)
        status = f.load("ptr", f.ctx, position, "ptr", align=8)
        f.store(constant("i64", self.step.site), f.offset(status, 7, "i64"), align=8)
        f.jump(done)
        f.at(done)


def _store(f: Function, block: Value, words: Iterable[Value]) -> None:
    """Words side by side, from where a block begins."""
    for k, word in enumerate(words):
        f.store(word, block, k, "i64", align=8)
