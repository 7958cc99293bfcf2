"""Python's integers have no largest one; a traced one has 64 bits: what would pass them raises.

    n * n           OverflowError at run time where the product needs more than 64 bits

Where the operands' reach shows that the result fits, as that of positions and counters, nothing is
checked. NumPy's integers wrap, as they do in NumPy: `np.int64(n) * n`.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import Any

import numpy as np

from ...ir.graph import Graph, Op, Value
from ...ir.integers.intervals import Interval, remembered
from ...ir.types import DTYPE_NAMES, F64, I64
from ..core.effects import check
from ..core.trace import Trace, require_trace
from ..core.tracers import Tracer, as_value, weak_kind, wrap
from .late_checks import Late, check_later
from .python_errors import in_ours

U64 = DTYPE_NAMES["u64"]
LEAST, MOST = -(1 << 63), (1 << 63) - 1
STEP = 1 << 31  # what no loop adds so often that it matters
TRIPS = 1 << 47  # more than any loop makes
DEPTH = 8  # operations that are looked through
# The largest float that a product of 64 bits is rounded to, and more.
_NEARLY = 2.0**63 * (1 + 2.0**-40)
_SYMBOLS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "power": "**",
    "left_shift": "<<",
    "square": "** 2",
    "negative": "-",
    "absolute": "abs",
}


def check_fits(name: str, operands: tuple[Any, ...], result: Value) -> None:
    """Have the compiled function raise where `result`, of Python's integers, is not what Python's
    operation `name` gives."""
    if name in _SYMBOLS and not in_ours(sys._getframe(1)):
        require_fits(name, operands, result)


def require_fits(name: str, operands: tuple[Any, ...], result: Value) -> None:
    """As `check_fits`, for an operation of the user's that a function of ours does: `sum`."""
    trace = require_trace()
    if trace.eager or trace.wraps or not trace.options.python_errors:
        return
    x, *others = (as_value(v, I64) for v in operands)
    y = others[0] if others else x
    if surely_fits(trace, name, x, y):
        return
    a, b, r = (wrap(v, None) for v in (x, y, result))
    fits = {
        "add": lambda: _fits("add_fits", x, y),
        "subtract": lambda: _fits("sub_fits", x, y),
        "multiply": lambda: _product_fits(x, y, a, b, r),
        "square": lambda: _fits("mul_fits", x, x),
        "power": lambda: _is_near(np.power(_float(a), _float(b)), r),
        "left_shift": lambda: (a == 0) | ((b < 64) & ((r >> (b & 63)) == a)),
        "negative": lambda: a != LEAST,
        "absolute": lambda: a != LEAST,
    }[name]()
    symbol = _SYMBOLS[name]
    how = f"{{0}} {symbol} {{1}}" if others else f"{symbol}({{0}})"
    text = (
        f"{how} of Python integers needs more than 64 bits, and compiled code has no larger ones. "
        "Make one of them np.int64(...), which wraps as NumPy's integers do, or a float"
    )
    check(fits, text, *(wrap(v, None) for v in (x, *others)), error="OverflowError")


def check_stored(value: Any, dtype: np.dtype[Any]) -> None:
    """Have the compiled function raise, as NumPy does, where a number is assigned to integers of
    `dtype` that cannot hold it: a Python integer, or a scalar of NumPy's to signed integers, which
    NumPy makes a Python integer before."""
    trace = require_trace()
    if not isinstance(value, Tracer) or not value.scalar or trace.eager:
        return
    if dtype.kind != "i" and not (dtype.kind == "u" and value.weak in ("i", "f")):
        return
    info, inner = np.iinfo(dtype), as_value(value)  # it may come from around a region
    number = wrap(inner, None)
    if value.dtype.kind == "f":
        return _check_float_stored(number, info)
    if value.dtype.kind not in "iu":
        return
    least, most = remembered(inner, trace.reaches)
    if least < info.min or most > info.max:
        fits = number <= min(int(info.max), MOST)
        if least < info.min:
            fits &= number >= int(info.min)
        text = f"Python integer {{0}} out of bounds for {dtype.name}"
        check(fits, text, number, error="OverflowError")


def _check_float_stored(number: Tracer, info: np.iinfo[Any]) -> None:
    x = _float(number)
    low = x >= float(info.min) if info.min == LEAST else x > float(info.min) - 1
    text = f"float infinity, or a number out of bounds for {info.dtype.name}, assigned to it"
    checks = [
        Late(lambda: np.isnan(x), "cannot convert float NaN to integer", "ValueError"),
        Late(lambda: ~(low & (x < float(info.max) + 1)), text, "OverflowError"),
    ]
    check_later(checks, number)


def as_python_integer(x: Tracer) -> Value:
    """An integer as Python's, which have 64 bits and a sign; OverflowError at run time for more."""
    if x.dtype == np.dtype(np.uint64) and not require_trace().eager:
        number = wrap(as_value(x), None)
        text = (
            "{0} as a Python integer needs more than 64 bits, and compiled code has no larger ones"
        )
        check(number <= np.uint64(MOST), text, number, error="OverflowError")
    return as_value(x, I64)


def check_kept(x: Any, dtype: np.dtype[Any], or_else: Any = False) -> None:
    """Have the compiled function raise where a Python integer that is kept as a float is not that float,
    or else something holds."""
    if dtype.kind != "f" or weak_kind(x) != "i" or require_trace().eager:
        return
    value = as_value(x, I64)
    exact = 1 << np.finfo(dtype).nmant + 1
    least, most = remembered(value, require_trace().reaches)
    if least < -exact or most > exact:
        number = wrap(value, None)
        text = (
            f"Python integer {{0}} among floats, of which {dtype.name} keeps no more than {exact}"
        )
        fits = (number <= exact) & (number >= -exact) | or_else
        check(fits, text, number, error="OverflowError")


def note_reach(value: Value, reach: Interval) -> None:
    """Remember between which numbers a value of the current trace lies."""
    require_trace().reaches[value] = reach


def note_step(value: Value) -> None:
    """Remember that a number of the current trace is handed on from iteration to iteration."""
    require_trace().steps.add(value)


def note_exact(value: Value) -> None:
    """Remember that a Python integer is what Python's would be, whatever it was computed of."""
    require_trace().exact.add(value)


def surely_fits(trace: Trace, name: str, x: Value, y: Value) -> bool:
    """Whether the operation gives no more than 64 bits, as is known of these numbers."""
    a, b = (remembered(v, trace.reaches) for v in (x, y))
    if name in ("add", "subtract"):
        if _is_small(b) and _is_step(x, trace.steps, trace.reaches):
            return True
        if name == "add" and _is_small(a) and _is_step(y, trace.steps, trace.reaches):
            return True
        ends = [a[0] + b[0], a[1] + b[1]] if name == "add" else [a[0] - b[1], a[1] - b[0]]
    elif name in ("multiply", "square"):
        ends = [p * q for p in a for q in b]
    elif name == "left_shift":
        if b[0] < 0 or b[1] > 63:
            return False
        ends = [p << q for p in a for q in b]
    elif name == "power":
        if b[0] < 0 or b[1] > 63:
            return False
        ends = [-(max(map(abs, a)) ** b[1]), max(map(abs, a)) ** b[1]]
    else:
        ends = [-p for p in a]
    return min(ends) >= LEAST and max(ends) <= MOST


def _is_small(reach: Interval) -> bool:
    return reach[0] >= -STEP and reach[1] <= STEP


def _is_step(
    value: Value, steps: Collection[Value], known: dict[Value, Interval], depth: int = DEPTH
) -> bool:
    """Whether a number is one that a loop hands on, `steps`, and a little more or less. `known` takes up
    between which numbers others lie: loops would be looked through anew for each sum after them."""
    op = value.op
    if value in steps:
        return True
    if op is None or not depth:
        return False
    if op.name in ("add", "sub"):
        x, y = op.operands
        pairs = ((x, y), (y, x)) if op.name == "add" else ((x, y),)
        return any(
            _is_small(remembered(w, known)) and _is_step(v, steps, known, depth - 1)
            for v, w in pairs
        )
    return op.name == "cond" and all(
        _ends_as_step(op, value, r, steps, known, depth) for r in op.regions
    )


def _ends_as_step(
    op: Op,
    value: Value,
    region: Graph,
    steps: Collection[Value],
    known: dict[Value, Interval],
    depth: int,
) -> bool:
    """Whether a branch gives a number near those of `steps`, or none that is large."""
    out, inside = region.outputs[value.index], dict[Value, Interval]()
    least, most = remembered(out, inside)
    if least >= -(1 << 62) and most <= 1 << 62:
        return True
    pairs = zip(region.params, op.operands[1:], strict=True)
    own = [p for p, v in pairs if v.type == out.type and _is_step(v, steps, known, depth - 1)]
    return _is_step(out, own, inside, depth - 1)


def _float(x: Tracer) -> Any:
    return wrap(as_value(x, F64), None)


def _in_reach(factor: Value, other: Tracer) -> Any:
    """Whether a number times a constant fits, and a step more; None if the factor is none, or 0, 1 or
    less."""
    if factor.op is None or factor.op.name != "constant":
        return None
    number = int(factor.op.attrs["value"])
    if number <= 1:
        return None
    most = (MOST - STEP) // number
    b = require_trace().builder
    above = b.bitcast(
        b.add(as_value(other), b.const(most, I64)), dtype=U64
    )  # -most, counted from 0
    return wrap(b.le(above, b.const(2 * most, U64)), None)


def _product_fits(x: Value, y: Value, a: Tracer, b: Tracer, r: Tracer) -> Any:
    for factor, other in ((x, b), (y, a)):
        fits = _in_reach(factor, other)
        if fits is not None:
            note_reach(as_value(r), (STEP - MOST, MOST - STEP))
            return fits
    return _fits("mul_fits", x, y)


def _fits(name: str, x: Value, y: Value) -> Any:
    return wrap(require_trace().builder.op(name, x, y), None)


def _is_near(about: Any, r: Tracer) -> Any:
    """Whether `r`, the last 64 bits of a number that is `about` rounded, is all of it: near the largest
    number it changes its sign where it is not."""
    return (abs(about) <= _NEARLY) & ((r < 0) == (about < 0))
