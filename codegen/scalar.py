"""Scalar expressions: what a kernel computes at one point of its index space.

An `Expr` is a node of a DAG over the closed list of primitives in `PRIMITIVES`. Every dtype-generic
elementwise op of the graph (exp, floor_divide, gcd, ...) is expanded into primitives by
`codegen.math`; a target implements the primitives and nothing else. Expressions know nothing of
vectors: an emitter evaluates a DAG at one point or at a vector of points alike.

Python operators build nodes; a Python number takes the dtype of the other operand:

    y = select(x < 0, -x, x) * 2.0

Values of dtype bool are one bit. Integers wrap. Floats are IEEE 754, no node is inexact beyond its
own rounding, and no emitter may reassociate or contract what stands here: write `fma` where one is
wanted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..ir.types import BOOL

DType = np.dtype[Any]

# name -> (arity, what it does). `T` is the operand dtype; results have dtype T unless it says else.
PRIMITIVES: dict[str, tuple[int, str]] = {
    "const": (0, "attr: a Python int, float or bool"),
    "add": (2, "integer or float"),
    "sub": (2, "integer or float"),
    "mul": (2, "integer or float"),
    "div": (2, "float division; integer division truncates, and its divisor is never 0"),
    "rem": (2, "integer remainder with the dividend's sign; divisor never 0"),
    "mulhi": (2, "upper half of the double-width product, unsigned integers"),
    "neg": (1, "float only: flips the sign bit"),
    "fma": (3, "float: a * b + c with one rounding"),
    "sqrt": (1, "float, correctly rounded"),
    "abs": (1, "float: clears the sign bit; signed integer: wraps at the minimum"),
    "floor": (1, "float"),
    "ceil": (1, "float"),
    "trunc": (1, "float"),
    "rint": (1, "float, ties to even"),
    "copysign": (2, "float: magnitude of the first, sign of the second"),
    "min": (2, "integer; float: `b if b < a else a`, so a NaN in `a` stays, one in `b` is dropped"),
    "max": (2, "integer; float: `b if b > a else a`, so a NaN in `a` stays, one in `b` is dropped"),
    "scale2": (
        2,
        "float a, int32 n: a * 2**n with one rounding, for any n in -2200..2200. attr True: "
        "0.25 <= |a| <= 4 and |n| <= 1100, or the result does not matter",
    ),
    "and": (2, "bool or integer"),
    "or": (2, "bool or integer"),
    "xor": (2, "bool or integer"),
    "not": (1, "bool or integer"),
    "shl": (2, "integer; the amount is in 0..bits-1"),
    "lshr": (2, "integer; the amount is in 0..bits-1"),
    "ashr": (2, "integer; the amount is in 0..bits-1"),
    "ctlz": (1, "integer: leading zeros; of 0: the width"),
    "cttz": (1, "integer: trailing zeros; of 0: the width"),
    "ctpop": (1, "integer: bits set"),
    "eq": (2, "-> bool; float: ordered"),
    "ne": (2, "-> bool; float: unordered, so NaN != NaN"),
    "lt": (2, "-> bool; float: ordered; signedness by dtype"),
    "le": (2, "-> bool"),
    "gt": (2, "-> bool"),
    "ge": (2, "-> bool"),
    "add_fits": (2, "integer -> bool: whether `add` does not wrap"),
    "sub_fits": (2, "integer -> bool: whether `sub` does not wrap"),
    "mul_fits": (2, "integer -> bool: whether `mul` does not wrap"),
    "select": (3, "bool c, T a, T b -> a where c else b"),
    "convert": (
        1,
        "C's conversion. Float to integer of a value that does not fit, and of NaN, gives "
        "what NumPy gives for arrays on x86-64; attr True: the value is known to fit",
    ),
    "half_to_float": (1, "uint16 bits of a half -> float32, exact"),
    "float_to_half": (1, "float32 -> uint16 bits of the nearest half"),
    "bitcast": (1, "the same bits as another dtype of the same size"),
    "table": (1, "attr: tuple of numbers; integer operand indexes it, in range"),
    "var": (0, "attr: a name. A parameter of `loop`, or a value that the kernel emitter binds"),
    "load": (0, "attr: a memory access of the kernel IR; emitted by the kernel emitter"),
    "index": (
        0,
        "attr: an index expression of the kernel IR, int64; emitted by the kernel emitter",
    ),
    "call": (-1, "attr: a Function (`codegen.math.functions`): an elementwise op as one node"),
    "loop": (-1, "attr: a LoopBody; operands are the initial values, values are read by `result`"),
    "result": (1, "attr: position. One of the values of a `loop`"),
}


_F32_OVERFLOW = 2.0**128 - 2.0**103  # from here on rounding to float32 gives infinity
NOTHING: frozenset[Any] = frozenset()
FREE = frozenset(("const", "load", "var", "index", "result"))  # nodes that are no work


class Expr:
    """One node. Immutable; compared by identity (emitters number equal nodes as one value).

    `free` holds the names of the loop variables that the value depends on: what has none of a loop's
    is invariant in that loop.
    """

    __slots__ = ("op", "args", "dtype", "attr", "free")
    free: frozenset[Any]
    __array_ufunc__ = None  # NumPy scalars on the left defer to our reflected operators

    def __init__(
        self,
        op: str,
        args: tuple[Expr, ...],
        dtype: DType,
        attr: Any = None,
        free: frozenset[Any] = NOTHING,
    ) -> None:
        for a in args:
            if a.free is not free:
                free = free | a.free if free else a.free
        self.op = op
        self.args = args
        self.dtype = dtype
        self.attr = attr
        self.free = free

    def __repr__(self) -> str:
        inner = ", ".join(map(repr, self.args)) if self.args else repr(self.attr)
        return f"{self.op}({inner})"

    def __add__(self, other: Any) -> Expr:
        return binary("add", self, other)

    def __radd__(self, other: Any) -> Expr:
        return binary("add", other, self)

    def __sub__(self, other: Any) -> Expr:
        return binary("sub", self, other)

    def __rsub__(self, other: Any) -> Expr:
        return binary("sub", other, self)

    def __mul__(self, other: Any) -> Expr:
        return binary("mul", self, other)

    def __rmul__(self, other: Any) -> Expr:
        return binary("mul", other, self)

    def __truediv__(self, other: Any) -> Expr:
        return binary("div", self, other)

    def __rtruediv__(self, other: Any) -> Expr:
        return binary("div", other, self)

    def __and__(self, other: Any) -> Expr:
        return binary("and", self, other)

    def __or__(self, other: Any) -> Expr:
        return binary("or", self, other)

    def __xor__(self, other: Any) -> Expr:
        return binary("xor", self, other)

    def __invert__(self) -> Expr:
        return Expr("not", (self,), self.dtype)

    def __neg__(self) -> Expr:
        if self.dtype.kind == "f":
            return Expr("neg", (self,), self.dtype)
        return binary("sub", 0, self)

    def __abs__(self) -> Expr:
        return Expr("abs", (self,), self.dtype)

    def __lt__(self, other: Any) -> Expr:
        return compare("lt", self, other)

    def __le__(self, other: Any) -> Expr:
        return compare("le", self, other)

    def __gt__(self, other: Any) -> Expr:
        return compare("gt", self, other)

    def __ge__(self, other: Any) -> Expr:
        return compare("ge", self, other)

    def __lshift__(self, other: Any) -> Expr:
        return binary("shl", self, other)

    def __bool__(self) -> bool:
        raise TypeError("a scalar expression has no value while code is generated; use select()")


def nodes_of(*roots: Expr) -> list[Expr]:
    """All that expressions are computed from, each node once; bodies of loops and computed indices
    apart."""
    nodes: dict[Expr, None] = {}
    pending = [*roots]
    while pending:
        node = pending.pop()
        if node not in nodes:
            nodes[node] = None
            pending += node.args
    return list(nodes)


def const(value: Any, dtype: DType) -> Expr:
    """A constant of `dtype`; `value` is a Python or NumPy number."""
    return Expr("const", (), dtype, _rounded(value, dtype))


def _rounded(value: Any, dtype: DType) -> Any:
    """A number as the Python number that a constant of `dtype` holds."""
    if dtype.kind != "f":
        return bool(value) if dtype.kind == "b" else wrap(int(value), dtype)
    number = float(value)
    if dtype.itemsize == 8:
        return number
    if abs(number) >= _F32_OVERFLOW:
        return math.copysign(math.inf, number)
    return float(np.float32(number))


def wrap(value: int, dtype: DType) -> int:
    """A Python int wrapped to the width of an integer dtype."""
    bits = dtype.itemsize * 8
    value &= (1 << bits) - 1
    return value - (1 << bits) if dtype.kind == "i" and value >> (bits - 1) else value


def _coerce(a: Any, b: Any) -> tuple[Expr, Expr]:
    if not isinstance(a, Expr):
        a = const(a, b.dtype)
    if not isinstance(b, Expr):
        b = const(b, a.dtype)
    if a.dtype != b.dtype:
        raise TypeError(f"operands of dtype {a.dtype} and {b.dtype}; convert one of them")
    return a, b


def binary(op: str, a: Any, b: Any) -> Expr:
    """A primitive of two operands of one dtype; a Python number takes the other's."""
    a, b = _coerce(a, b)
    return Expr(op, (a, b), a.dtype)


def compare(op: str, a: Any, b: Any) -> Expr:
    """op is one of eq, ne, lt, le, gt, ge, add_fits, sub_fits, mul_fits."""
    return Expr(op, _coerce(a, b), BOOL)


def eq(a: Any, b: Any) -> Expr:
    """a == b, as a bool."""
    return compare("eq", a, b)


def ne(a: Any, b: Any) -> Expr:
    """a != b, as a bool."""
    return compare("ne", a, b)


def select(condition: Expr, a: Any, b: Any) -> Expr:
    """`a` where the condition holds, else `b`; both are computed."""
    a, b = _coerce(a, b)
    return Expr("select", (condition, a, b), a.dtype)


def fma(a: Any, b: Any, c: Any) -> Expr:
    """a * b + c with one rounding; at least one of the three is an Expr."""
    dtype = next(x.dtype for x in (a, b, c) if isinstance(x, Expr))
    args = tuple(x if isinstance(x, Expr) else const(x, dtype) for x in (a, b, c))
    return Expr("fma", args, dtype)


def unary(op: str, a: Expr) -> Expr:
    """op is a unary primitive that keeps the dtype: sqrt, floor, ceil, trunc, rint, ctlz, ..."""
    return Expr(op, (a,), a.dtype)


def convert(a: Expr, dtype: DType) -> Expr:
    """The value in another dtype; itself where it has that one already."""
    return a if a.dtype == dtype else Expr("convert", (a,), dtype)


def convert_fitting(a: Expr, dtype: DType) -> Expr:
    """Conversion of a float that is known to fit the integer dtype: cheaper than `convert`."""
    return Expr("convert", (a,), dtype, True)


def bitcast(a: Expr, dtype: DType) -> Expr:
    """The bits as another dtype of that width."""
    return a if a.dtype == dtype else Expr("bitcast", (a,), dtype)


def scale2(a: Expr, n: Expr, *, near_one: bool = False) -> Expr:
    """a * 2**n, n an int32 expression. `near_one` promises 0.25 <= |a| <= 4 and |n| <= 1100."""
    return Expr("scale2", (a, n), a.dtype, True if near_one else None)


def table(values: Sequence[Any], dtype: DType, index: Expr) -> Expr:
    """values[index]: a lookup in a constant table; the index must be in range."""
    return Expr("table", (index,), dtype, tuple(values))


def var(name: Any, dtype: DType) -> Expr:
    """A free variable, bound by `loop` or by the emitter. Equal names are the same variable."""
    return Expr("var", (), dtype, name, frozenset((name,)) if isinstance(name, Unique) else NOTHING)


class Unique:
    """A name that equals only itself, for loop variables."""

    __slots__ = ("hint",)

    def __init__(self, hint: str) -> None:
        self.hint = hint

    def __repr__(self) -> str:
        return self.hint


class LoopBody(NamedTuple):
    """What a `loop` node repeats: `params` are the variables that `test` and `new` read."""

    params: tuple[Expr, ...]
    test: Expr
    new: tuple[Expr, ...]
    rare: bool


def loop(
    init: Sequence[Expr],
    condition: Callable[..., Expr],
    body: Callable[..., Sequence[Expr]],
    *,
    rare: bool = False,
) -> list[Expr]:
    """`while condition(*values): values = body(*values)`, each point with its own trip count.

    A vector emitter runs the body while any lane's condition holds, and keeps the values of lanes that
    have finished. So a loop that runs at most once is a branch that is skipped when no lane needs it.
    `condition` and `body` may read enclosing expressions. `rare` says that the body is a slow path: it
    is kept out of the way, and nothing of it is computed ahead of the loop.
    """
    params = tuple(var(Unique(f"carry{i}"), e.dtype) for i, e in enumerate(init))
    test = condition(*params)
    new = tuple(body(*params))
    if len(new) != len(params) or any(a.dtype != b.dtype for a, b in zip(new, params, strict=True)):
        raise TypeError("the loop's body must give back one value per carry, of the same dtypes")
    inside = test.free.union(*(e.free for e in new)) - {p.attr for p in params}
    node = Expr("loop", tuple(init), BOOL, LoopBody(params, test, new, rare), inside)
    return [Expr("result", (node,), p.dtype, i) for i, p in enumerate(params)]
