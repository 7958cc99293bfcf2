"""Sorting rows of unsigned keys, as LLVM functions for each kind of element.

What is sorted has been encoded: larger keys sort later, and NaN has the largest (see `lower_sorting`).
Numbers of 4 and 8 bytes go by `quicksort` where the CPU compresses vectors. Otherwise short rows are
sorted by a stable merge sort: runs of `RUN` elements by insertion, then merged bottom-up between the
target and the keys; long rows go by `radix`. Rows are shared among threads.
"""

from __future__ import annotations

from ...limits import limits
from ...llvm.builder import Value, bits_of
from ...llvm.modules import Function
from ...loop_ir.steps import Sort
from ...schedule.sort_blocks import count_words
from ...target import Target
from .cpu_network import registers_for
from .cpu_payload import argsort_functions
from .cpu_quicksort import quicksort
from .cpu_radix import LoadKey, radix_functions
from .cpu_row_parts import Fields, part, run_parts, sort_row
from .cpu_selection import window_functions

RUN = 24


def sort_functions(step: Sort, target: Target) -> tuple[Function, ...]:
    """The function that sorts the rows of a step, last: `void @name(ptr keys, ptr target, ptr scratch,
    ptr counts, i64 rows)`. The others are what it calls."""
    n = step.keys.shape[step.axis]
    key_bits = step.key_bits
    size = {"packed": 8, "pairs": 16}.get(step.kind, step.keys.dtype.itemsize)
    element = f"i{8 * size}"
    long = n > limits().short_row
    quick = n > 1 and size >= 4 and step.kind in ("value", "float", "indices") and target.compresses
    if step.kind == "packed" and target.compresses and n > 1 and (key_bits == 32 or not long):
        quick, key_bits = True, 64  # indices differ: no element equals another
    name = f"sort_{step.kind}{key_bits}_{'quick' if quick else 'long' if long else 'short'}"
    zeros = step.kind == "float"
    functions: tuple[Function, ...]
    if quick:
        registers = registers_for(n, 512 // key_bits)
        name = f"{name}{registers}"
        merge = _merge_functions(f"{name}_merge", element, zeros)
        sort = quicksort(name, merge[-1], key_bits, registers, zeros, target.compresses_to_memory)
        functions = (*merge, *sort.functions)
        if step.kind == "indices":
            name = f"{name}_{n}_indices"
            functions += argsort_functions(name, sort, n)
    elif long:
        functions = radix_functions(name, element, key_bits, _key_loader(step.kind, size, key_bits))
    else:
        functions = _merge_functions(name, element, zeros)
    if long and step.window is not None:
        name = f"{name}_{step.window[0]}_{step.window[1]}"
        functions += window_functions(name, functions[-1], size, n, *step.window, zeros)
    return (*functions, *_rows(f"{name}_{n}", functions[-1], size, n))


def _merge_functions(name: str, element: str, zeros: bool) -> tuple[Function, Function, Function]:
    """`void @name_row(ptr keys, ptr target, ptr scratch, ptr counts, i64 n)`, last; see the module."""
    insertion, merge = _insertion(name, element, zeros), _merge(name, element, zeros)
    return insertion, merge, _short_row(name, element, insertion, merge)


def _key_loader(kind: str, size: int, key_bits: int) -> LoadKey:
    offset = {"packed": 4, "pairs": 8}.get(kind, 0)

    def load(f: Function, row: Value, i: Value) -> Value:
        byte = i * size
        key = f.load(f"i{key_bits}", f.offset(row, offset), byte)
        return _without_zeros(key) if kind == "float" else key

    return load


def _without_zeros(key: Value) -> Value:
    """Encoded floats below the middle move up by one, so that -0.0 equals 0.0."""
    return key + (key >> bits_of(key.type) - 1 ^ 1)


def _less(x: Value, y: Value, zeros: bool) -> Value:
    """Whether element x sorts strictly before element y. `zeros`: encoded zeros are equal."""
    if not zeros:
        return x.ult(y)
    first = _without_zeros(x)
    return first.ult(_without_zeros(y))


def _insertion(name: str, element: str, zeros: bool) -> Function:
    """Sort a[lo..hi) by insertion."""
    f = Function("void", f"{name}_insertion", internal=True, a="ptr", lo="i64", hi="i64")
    with f.loop(i=f.lo + 1) as loop:
        loop.going(loop.i < f.hi)
        value = f.load(element, f.a, loop.i, element)
        with f.loop(j=loop.i) as shift:
            shift.going(shift.j > f.lo)
            before = shift.j + -1
            other = f.load(element, f.a, before, element)
            shift.going(_less(value, other, zeros))
            f.store(other, f.a, shift.j, element)
            shift.next(before)
        f.store(value, f.a, shift.j, element)
        loop.next(loop.i + 1)
    f.ret()
    return f


def _merge(name: str, element: str, zeros: bool) -> Function:
    """Merge a[lo..mid) and a[mid..hi) into b[lo..hi)."""
    bounds = dict.fromkeys(("lo", "mid", "hi"), "i64")
    f = Function("void", f"{name}_merge", internal=True, a="ptr", b="ptr", **bounds)
    with f.loop(i=f.lo, j=f.mid, k=f.lo) as loop:
        left = loop.i < f.mid
        loop.going(left & (loop.j < f.hi))
        x, y = (f.load(element, f.a, at, element) for at in (loop.i, loop.j))
        second = _less(y, x, zeros)
        f.store(f.select(second, y, x), f.b, loop.k, element)
        step = second.zext("i64")
        loop.next(loop.i + (step ^ 1), loop.j + step, loop.k + 1)
    first, other, to = (
        f.offset(p, k, element) for p, k in zip((f.a, f.a, f.b), loop.values, strict=True)
    )
    in_first, in_other = f.mid - loop.i, f.hi - loop.j
    start, count = f.select(left, first, other), f.select(left, in_first, in_other)
    f.copy(to, start, count * (bits_of(element) // 8))
    f.ret()
    return f


def _short_row(name: str, element: str, insertion: Function, merge: Function) -> Function:
    f = sort_row(name)
    n = f.n
    nbytes = n * (bits_of(element) // 8)
    f.copy(f.target, f.keys, nbytes)
    with f.loop(lo=0) as runs:
        runs.going(runs.lo < n)
        hi = runs.lo + RUN
        f.run(insertion, f.target, runs.lo, f.least(hi, n))
        runs.next(hi)
    with f.loop(width=RUN, a=f.target, b=f.keys) as passes:
        passes.going(passes.width < n)
        with f.loop(lo=0) as pairs:
            pairs.going(pairs.lo < n)
            middle = pairs.lo + passes.width
            cut = f.least(middle, n)
            hi = middle + passes.width
            f.run(merge, passes.a, passes.b, pairs.lo, cut, f.least(hi, n))
            pairs.next(hi)
        passes.next(passes.width * 2, passes.b, passes.a)
    with f.when(passes.a.ne(f.target)):
        f.copy(f.target, passes.a, nbytes)
    f.ret()
    return f


_ROWS = Fields(keys="ptr", target="ptr", scratch="ptr", counts="ptr")


def _rows(name: str, row: Function, size: int, n: int) -> tuple[Function, Function]:
    """The function that sorts rows lo..hi, and the one that shares rows among threads."""
    some = part(f"{name}_rows")
    memory = _ROWS.load(some)
    with some.each(some.hi, some.lo) as r:
        at = r * (n * size)
        pointers = [some.offset(p, at) for p in (memory.keys, memory.target, memory.scratch)]
        some.run(row, *pointers, some.offset(memory.counts, r * count_words(n), "i32"), n)
    some.ret()
    every = Function("void", name, internal=True, **_ROWS.types, rows="i64")
    context = _ROWS.allocate(every)
    context.store(**dict(zip(_ROWS.types, every.args, strict=False)))
    run_parts(every, some, context, every.rows, max(1, limits().sorted_at_once // max(n, 1)))
    every.ret()
    return some, every
