"""Calls of NumPy's loops, as kernels whose units are the items of a batch.

    void loop(char **arguments, npy_intp *sizes, npy_intp *steps, void *data)

`sizes` begins with the number of items. A loop that failed leaves the flag "invalid" set. A flag that is
set when it begins stays so, and is cleared before.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..llvm.instructions import SCALAR_TYPES, number
from ..schedule.tiled import LibraryCall
from ..target import Target

_INVALID = 1  # FE_INVALID of <fenv.h>, on x86 and on AArch64


def library_call(step: LibraryCall) -> tuple[str, set[str], set[str]]:
    """The function's text from its parameter list on, declarations, and symbols of the runtime."""
    loop = step.loop
    name = f"{loop.module}:{loop.name}:{loop.types}"
    function, data = f"{Target.LOOP}:{name}", f"{Target.LOOP_DATA}:{name}"
    operands, constants = len(step.operands), len(loop.constants)
    count = operands + constants + len(step.results)
    steps = step.steps
    lines = _words("arguments", count) + _words("sizes", 1 + len(loop.sizes))
    lines += _words("steps", len(steps))
    lines.append("  %items = sub i64 %hi, %lo")
    lines += _store("sizes", ["%items", *map(str, loop.sizes)]) + _store("steps", map(str, steps))
    for k, value in enumerate(loop.constants):
        dtype = np.dtype(loop.types[operands + k])
        kind = SCALAR_TYPES[dtype]
        lines.append(f"  %constant{k} = alloca {kind}, align 8")
        lines.append(f"  store {kind} {number(value, dtype)}, ptr %constant{k}, align 8")
    words = iter(range(operands + len(step.results)))
    for k in range(count):
        place = f"%argument{k}"
        if operands <= k < operands + constants:
            lines.append(f"  {place} = getelementptr i8, ptr %constant{k - operands}, i64 0")
            continue
        lines += [
            f"  {place}_at = getelementptr ptr, ptr %ctx, i64 {next(words)}",
            f"  {place}_base = load ptr, ptr {place}_at, align 8",
            f"  {place}_offset = mul i64 %lo, {steps[k]}",
            f"  {place} = getelementptr i8, ptr {place}_base, i64 {place}_offset",
        ]
    lines += _store("arguments", [f"%argument{k}" for k in range(count)], "ptr")
    if step.site:
        lines.append(f"  call i32 @feclearexcept(i32 {_INVALID})")
    if step.alone:
        lines += _counted("in", 1, _ONE_THREAD)
    lines.append(
        f'  call void @"{function}"(ptr %arguments, ptr %sizes, ptr %steps, ptr @"{data}")'
    )
    if step.alone:
        lines += _counted("out", -1, _AS_BEFORE)
    declarations = {
        f'declare void @"{function}"(ptr, ptr, ptr, ptr)',
        f'@"{data}" = external global i8',
    }
    imports = {function, data}
    if step.alone:
        imports |= {_GET, _SET, _SHARED}
        declarations |= {
            f'declare i32 @"{_GET}"()',
            f'declare void @"{_SET}"(i32)',
            f'@"{_SHARED}" = external global [3 x i64]',
        }
    if step.site:
        lines += _report(operands + len(step.results), step.site)
        declarations |= {"declare i32 @fetestexcept(i32)", "declare i32 @feclearexcept(i32)"}
    body = "\n".join(lines)
    text = f"(ptr noalias %ctx, i64 %lo, i64 %hi) nounwind {{\nentry:\n{body}\n  ret void\n}}\n"
    return text, declarations, imports


# Threads that share a batch want one thread each of the BLAS: its own would wait for each other. The
# first one that comes sets it so, the last one that goes as it was.

_GET, _SET, _SHARED = (f"{Target.BLAS}:{kind}" for kind in ("get", "set", "words"))
_ONE_THREAD = [
    f'  %had = call i32 @"{_GET}"()',
    "  %had_word = sext i32 %had to i64",
    "  store i64 %had_word, ptr %saved_at_in, align 8",
    f'  call void @"{_SET}"(i32 1)',
]
_AS_BEFORE = [
    "  %saved = load i64, ptr %saved_at_out, align 8",
    "  %before = trunc i64 %saved to i32",
    f'  call void @"{_SET}"(i32 %before)',
]


def _counted(name: str, change: int, action: list[str]) -> list[str]:
    """Under the lock: count who is inside, and act if that was or becomes nobody."""
    nobody = "%count_in" if change > 0 else "%new_out"
    return [
        f"  br label %wait_{name}",
        f"wait_{name}:",
        f'  %taken_{name} = atomicrmw xchg ptr @"{_SHARED}", i64 1 acquire',
        f"  %free_{name} = icmp eq i64 %taken_{name}, 0",
        f"  br i1 %free_{name}, label %locked_{name}, label %wait_{name}",
        f"locked_{name}:",
        f'  %count_at_{name} = getelementptr i64, ptr @"{_SHARED}", i64 1',
        f'  %saved_at_{name} = getelementptr i64, ptr @"{_SHARED}", i64 2',
        f"  %count_{name} = load i64, ptr %count_at_{name}, align 8",
        f"  %new_{name} = add i64 %count_{name}, {change}",
        f"  store i64 %new_{name}, ptr %count_at_{name}, align 8",
        f"  %nobody_{name} = icmp eq i64 {nobody}, 0",
        f"  br i1 %nobody_{name}, label %act_{name}, label %unlock_{name}",
        f"act_{name}:",
        *action,
        f"  br label %unlock_{name}",
        f"unlock_{name}:",
        f'  store atomic i64 0, ptr @"{_SHARED}" release, align 8',
    ]


def _words(name: str, count: int) -> list[str]:
    return [f"  %{name} = alloca [{count} x i64], align 16"]


def _store(name: str, values: Iterable[str], kind: str = "i64") -> list[str]:
    lines = []
    for k, value in enumerate(values):
        lines.append(f"  %{name}{k}_to = getelementptr i64, ptr %{name}, i64 {k}")
        lines.append(f"  store {kind} {value}, ptr %{name}{k}_to, align 8")
    return lines


def _report(position: int, site: int) -> list[str]:
    """Leave the number of the error site in the status block, the last pointer of the context."""
    return [
        f"  %failed = call i32 @fetestexcept(i32 {_INVALID})",
        "  %fine = icmp eq i32 %failed, 0",
        "  br i1 %fine, label %done, label %bad",
        "bad:",
        f"  call i32 @feclearexcept(i32 {_INVALID})",
        f"  %status_at = getelementptr ptr, ptr %ctx, i64 {position}",
        "  %status = load ptr, ptr %status_at, align 8",
        "  %site_at = getelementptr i64, ptr %status, i64 7",
        f"  store i64 {site}, ptr %site_at, align 8",
        "  br label %done",
        "done:",
    ]
