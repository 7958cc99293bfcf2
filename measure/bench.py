"""`jt.bench`: how long functions take, beside each other and beside what the machine can do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import jitney as jt

from .clock import Call, in_turns
from .results import difference
from .table import Benchmark, Row, Work, rows, shown

Function = Callable[..., Any]
_ROUGHLY = 0.3  # seconds for each function at each size


def bench(
    functions: Function | Sequence[Function] | Mapping[str, Function],
    *args: Any,
    sizes: Iterable[Any] | None = None,
    seconds: float = _ROUGHLY,
    check: bool = True,
    tolerance: float | None = None,
) -> Benchmark:
    """How long calls of one or several functions take, at one or several sizes.

    >>> def plain(x):
    ...     return np.exp(-x * x).sum()
    >>> table = bench({"numpy": plain, "jitney": jt.jit(plain)}, np.ones(1000), seconds=0.01)
    >>> [row.name for row in table.rows]
    ['numpy', 'jitney']

    functions   one, several, or several by name
    args        what each is called with. With `sizes`: one function that makes an argument, or a tuple
                of them, of a size; without it arguments are arrays of so many random float64
    sizes       sizes to measure at
    seconds     that each function is measured for, at each size
    check       refuse to compare functions whose results differ
    tolerance   by which results may differ, relative to the largest element. None: by rounding

    Functions run in turns, warmed up; of the rounds the median is told, with the quartiles. The first
    call, in which `jit` traces and compiles, is apart. Bytes and flops are those of the first jitted
    function (`jt.cost`), for all rows of a size; the limits are those of this machine. Functions that
    change their arguments get new copies each time, whose making does not count.

    Raises ValueError if results differ, and what the functions raise.
    """
    named = _named(functions)
    if sizes is None:
        return shown(_at_size("", named, args, seconds, check, tolerance))
    if len(args) > 1 or (args and not callable(args[0])):
        raise TypeError("with sizes=, give one function that makes the arguments of a size")
    make = args[0] if args else _random
    found: list[Row] = []
    for size in sizes:
        made = make(size)
        given = made if isinstance(made, tuple) else (made,)
        found += _at_size(size, named, given, seconds, check, tolerance)
    if not found:
        raise ValueError("sizes= has no size")
    return shown(found)


def _named(functions: Any) -> dict[str, Function]:
    if isinstance(functions, Mapping):
        named = {str(name): function for name, function in functions.items()}
    else:
        several = [functions] if callable(functions) else list(functions)
        named = {}
        for function in several:
            name = getattr(function, "__name__", type(function).__name__)
            named[name if name not in named else f"{name} ({len(named) + 1})"] = function
    for name, function in named.items():
        if not callable(function):
            raise TypeError(f"{name} is no function: {function!r}")
    if not named:
        raise ValueError("there is no function to measure")
    return named


def _random(size: int) -> Any:
    return np.random.default_rng(0).random(size)


def _at_size(
    size: Any,
    named: dict[str, Function],
    args: Sequence[Any],
    seconds: float,
    check: bool,
    tolerance: float | None,
) -> list[Row]:
    calls = {name: Call(function, args) for name, function in named.items()}
    if check:
        _refuse_differences(size, calls, tolerance)
    for call in calls.values():
        call.result = None  # memory that calls may use again
    in_turns(list(calls.values()), seconds)
    timings = [(name, call.timing()) for name, call in calls.items()]
    own = [time for name, time in timings if hasattr(named[name], "cache_info")]
    fastest = min((time.median for time in own), default=1.0)
    return rows(size, timings, _work(named.values(), args, max(fastest, 1e-12)))


def _refuse_differences(size: Any, calls: dict[str, Call], tolerance: float | None) -> None:
    (first, one), *others = calls.items()
    for name, other in others:
        words = difference(one.result, other.result, tolerance)
        if words:
            at = f" at size {size}" if size != "" else ""
            raise ValueError(
                f"{first} and {name} do not compute the same{at}: {words}. Find out where with "
                f"jt.compare, allow more with tolerance=, or leave it unchecked with check=False."
            )


def _work(functions: Iterable[Function], args: Sequence[Any], fastest: float) -> Work | None:
    """What the first jitted function does; None if there is none, or nobody can count it. `fastest`: the
    seconds of the fastest one, which limits that were measured under load may be below."""
    compiled = next((f for f in functions if hasattr(f, "cache_info")), None)
    if compiled is None:
        return None
    try:
        cost = jt.cost(compiled, *args)
    except Exception:  # an estimate beside the times: they are there without it
        return None
    if cost.loops:
        return None
    moved, flops = float(cost.bytes), float(cost.flops)
    arrays = [a for a in jt.tree.leaves(list(args)) if isinstance(a, np.ndarray)]
    footprint = int(sum(a.nbytes for a in arrays) + cost.peak_memory)
    itemsize = max((a.itemsize for a in arrays if a.dtype.kind == "f"), default=8)
    limits = jt.machine_limits(
        moved={footprint: moved / fastest}, flops={itemsize: flops / fastest}
    )
    return Work(moved, flops, limits.bandwidth(footprint), limits.peak_flops(itemsize))
