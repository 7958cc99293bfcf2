"""A function that C calls, as LLVM text around the entry of a module.

    double f(double x, double y)        values on the stack, the entry called with pointers to them

Memory that the entry needs beside its arguments is on the stack, or comes from malloc if it is much.
What belongs to a process with Python in it is replaced: kernels run on the caller's thread, with the
same bits since these do not depend on how many share them, and nobody looks for signals.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...codegen.module import STATUS_WORDS, NativeModule
from ...codegen.target import Target
from ...ir.record import record
from .layouts import laid_out

STACK = 32 << 10  # bytes of the caller's stack that a call may take
NO_MEMORY = -4  # what a call gives where malloc does

_STUBS = {
    Target.PARALLEL_FOR: "void", Target.WATCHED_FOR: "void", "PyGILState_Ensure": "i32",
    "PyGILState_Release": "void", "PyErr_CheckSignals": "i32", "PyGILState_GetThisThreadState": "ptr",
}  # fmt: skip


@record
class Parameter:
    """A pointer to an input is the parameter of this number, and so many bytes."""

    number: int
    offset: int = 0


@record
class ByValue:
    """An input is the value of the parameter of this number, which has this type of LLVM's."""

    number: int
    type: str


@record
class Constant:
    """An input is in the code: its first element is so many bytes behind where the content begins."""

    content: bytes
    offset: int = 0

    @classmethod
    def of(cls, array: np.ndarray[Any, Any], strides: Sequence[int]) -> Constant:
        """An array whose elements lie so many elements apart."""
        memory, start, _ = laid_out(array, strides)
        return cls(memory.tobytes(), start)


@record
class Slot:
    """An output is for this call only: `copied_to` the parameter of a number afterwards, if not None."""

    nbytes: int
    copied_to: int | None = None


Place = Parameter | ByValue | Constant | Slot


@record
class Returned:
    """What the function gives of its outcome: 0, or the number of the error site; or

    value     the result, of this `type`, which is where the place of this number is: NaN after an error
    told      1, and 0 after an error

    `counts` are parameters that have to have a value, with their types; others are an error.
    """

    type: str = "i32"
    value: int | None = None
    told: bool = False
    counts: tuple[tuple[int, str, int], ...] = ()

    @property
    def failed(self) -> str:
        """What is returned after an error."""
        if self.value is None:
            return "0" if self.told else str(NO_MEMORY)
        return "0x7FF8000000000000" if self.type in ("double", "float") else "0"


def c_function(
    module: NativeModule,
    symbol: str,
    parameters: Sequence[str],
    inputs: Sequence[Place],
    outputs: Sequence[Place],
    returned: Returned,
) -> str:
    """The text of a module with a function `symbol` of parameters of these types of LLVM's."""
    places = [*inputs, *outputs]
    scratch, offsets = module.arena_bytes, {}
    for k, place in enumerate(places):
        if isinstance(place, Slot):
            scratch = -(-scratch // 64) * 64
            offsets[k] = scratch
            scratch += max(place.nbytes, 1)
    words = len(places) + 2
    lines = [
        f"define {returned.type} @{symbol}({', '.join(f'{t} %a{k}' for k, t in enumerate(parameters))}) "
        "nounwind {",
        f"  %args = alloca [{words} x ptr], align 16",
        f"  %status = alloca [{STATUS_WORDS} x i64], align 16",
    ]
    values = {k: p for k, p in enumerate(places) if isinstance(p, ByValue)}
    lines += [f"  %v{k} = alloca {p.type}, align 16" for k, p in values.items()]
    on_heap = scratch > STACK
    if scratch and not on_heap:
        lines.append(f"  %scratch = alloca [{scratch} x i8], align 64")
    lines += [f"  store {p.type} %a{p.number}, ptr %v{k}, align 8" for k, p in values.items()]
    for k in range(STATUS_WORDS):
        lines += _at("%status", f"s{k}", 8 * k) + [f"  store i64 0, ptr %s{k}, align 8"]
    lines += _counted(returned)
    if on_heap:
        lines += _allocated(scratch, returned)
    constants, pointers = [], []
    for k, place in enumerate(places):
        if isinstance(place, ByValue):
            pointer = f"%v{k}"
        elif isinstance(place, Parameter):
            lines += _at(f"%a{place.number}", f"i{k}", place.offset)
            pointer = f"%i{k}"
        elif isinstance(place, Constant):
            constants.append(_constant(f"@{symbol}_constant_{k}", place.content))
            lines += _at(f"@{symbol}_constant_{k}", f"i{k}", place.offset)
            pointer = f"%i{k}"
        else:
            lines += _at("%scratch", f"i{k}", offsets[k])
            pointer = f"%i{k}"
        pointers.append(pointer)
        lines += _at("%args", f"p{k}", 8 * k) + [f"  store ptr {pointer}, ptr %p{k}, align 8"]
    arena = "%scratch" if module.arena_bytes else "null"
    for k, pointer in ((words - 2, arena), (words - 1, "%status")):
        lines += _at("%args", f"p{k}", 8 * k) + [f"  store ptr {pointer}, ptr %p{k}, align 8"]
    lines += [f"  %code = call i32 @{module.entry}(ptr %args)", "  %fine = icmp eq i32 %code, 0"]
    lines += _copies(places, len(inputs))
    lines += _end(returned, pointers, on_heap)
    lines.append("}")
    more = ["declare ptr @malloc(i64)", "declare void @free(ptr)"] if on_heap else []
    if any(isinstance(p, Slot) and p.copied_to is not None for p in places):
        more.append("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
    text = _without_process(module.text)
    more = [line for line in more if not _declared(text, line)]
    return "\n".join([text, *constants, *more, *lines, ""])


def _at(base: str, name: str, offset: int) -> list[str]:
    return [f"  %{name} = getelementptr i8, ptr {base}, i64 {offset}"]


def _counted(returned: Returned) -> list[str]:
    lines = []
    for k, (number, type, wanted) in enumerate(returned.counts):
        lines += [
            f"  %same{k} = icmp eq {type} %a{number}, {wanted}",
            f"  br i1 %same{k}, label %counted{k}, label %other{k}",
            f"other{k}:",
            f"  ret {returned.type} {returned.failed}",
            f"counted{k}:",
        ]
    return lines


def _allocated(nbytes: int, returned: Returned) -> list[str]:
    return [
        f"  %whole = call ptr @malloc(i64 {nbytes + 64})",
        "  %none = icmp eq ptr %whole, null",
        "  br i1 %none, label %poor, label %rich",
        "poor:",
        f"  ret {returned.type} {returned.failed}",
        "rich:",
        "  %start = ptrtoint ptr %whole to i64",
        "  %above = add i64 %start, 63",
        "  %aligned = and i64 %above, -64",
        "  %scratch = inttoptr i64 %aligned to ptr",
    ]


def _constant(pointer: str, content: bytes) -> str:
    octets = content or b"\0"
    text = "".join(f"\\{byte:02x}" for byte in octets)
    return f'{pointer} = internal constant [{len(octets)} x i8] c"{text}", align 64'


def _copies(places: Sequence[Place], first: int) -> list[str]:
    """What the function assigned to its arguments, if it came to its end."""
    copied = [
        (k, p) for k, p in enumerate(places) if isinstance(p, Slot) and p.copied_to is not None
    ]
    if not copied:
        return []
    lines = ["  br i1 %fine, label %copy, label %end", "copy:"]
    for k, place in copied:
        lines.append(
            f"  call void @llvm.memcpy.p0.p0.i64(ptr %a{place.copied_to}, ptr %i{k}, "
            f"i64 {place.nbytes}, i1 false)"
        )
    return [*lines, "  br label %end", "end:"]


def _end(returned: Returned, pointers: Sequence[str], on_heap: bool) -> list[str]:
    lines = []
    if returned.value is not None:
        lines.append(f"  %result = load {returned.type}, ptr {pointers[returned.value]}, align 1")
    if on_heap:
        lines.append("  call void @free(ptr %whole)")
    if returned.told:
        return [*lines, "  %told = zext i1 %fine to i32", "  ret i32 %told"]
    if returned.value is None:
        return [*lines, "  ret i32 %code"]
    return [
        *lines,
        f"  %kept = select i1 %fine, {returned.type} %result, {returned.type} {returned.failed}",
        f"  ret {returned.type} %kept",
    ]


def _without_process(text: str) -> str:
    """The text of a module with functions of its own for what the runtime provides otherwise."""
    stubs = []
    for name, type in _STUBS.items():
        pattern = re.compile(rf"^declare [^\n]*@{name}\([^\n]*\n", re.M)
        if not pattern.search(text):
            continue
        text = pattern.sub("", text)
        if name in (Target.PARALLEL_FOR, Target.WATCHED_FOR):
            more = ", ptr %watch, ptr %what" if name == Target.WATCHED_FOR else ""
            stubs.append(
                f"define internal void @{name}(ptr %fn, ptr %ctx, i64 %n, i64 %grain{more}) {{\n"
                "  call void %fn(ptr %ctx, i64 0, i64 %n)\n  ret void\n}"
            )
            continue
        given = "i32 %state" if name == "PyGILState_Release" else ""
        value = {"void": "void", "i32": "i32 0", "ptr": "ptr null"}[type]
        stubs.append(f"define internal {type} @{name}({given}) nounwind {{\n  ret {value}\n}}")
    return "\n".join([text, *stubs])


def _declared(text: str, declaration: str) -> bool:
    name = declaration.partition("@")[2].partition("(")[0]
    return re.search(rf"^declare [^\n]*@{re.escape(name)}\(", text, re.M) is not None
