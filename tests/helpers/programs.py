"""Programs that a test compiles, as functions of a Builder: patterns that users write, in any shape.

    graph = build(softmax, x)                   # parameters typed like the arrays
    got = run(graph, [x]); same(got, evaluate(graph, [x]))

`PATTERNS` take one float array of any shape. Shapes in `SHAPES` are such that whole vectors, tails,
split reductions, shared loops and row buffers all occur.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from jitney.codegen.program.compile import compile_graph
from jitney.codegen.target import Target
from jitney.ir.build import Builder
from jitney.ir.graph import Graph, Value
from jitney.ir.interpreter import evaluate
from jitney.ir.types import I64, Type, type_of
from jitney.runtime.executable import Executable
from jitney.runtime.native.host import current_target

SHAPES = [
    (), (1,), (7,), (33,), (64,), (1000,), (4097,), (200_003,), (0,), (3, 0), (0, 5), (1, 1),
    (3, 5000), (5000, 3), (257, 129), (2, 1, 65), (40, 33, 17), (1, 70_000), (70_000, 1),
]  # fmt: skip

Pattern = Callable[..., Any]


def build(f: Pattern, *arrays: Any, types: Sequence[Type] | None = None) -> Graph:
    """A graph with a parameter per array (or type) and the outputs that `f(builder, *params)` gives."""
    graph = Graph(getattr(f, "__name__", "program"))
    given = [type_of(np.asarray(a)) for a in arrays] if types is None else types
    params = [graph.add_param(t) for t in given]
    outputs = f(Builder(graph), *params)
    graph.outputs = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
    return graph


def each(f: Pattern) -> Pattern:
    """What `f` gives of each of several parameters: one program, which is compiled once."""

    def program(b: Builder, *params: Value) -> list[Value]:
        found = [f(b, p) for p in params]
        return [v for some in found for v in (some if isinstance(some, (tuple, list)) else [some])]

    return program


def region(f: Pattern, *types: Type) -> Graph:
    return build(f, types=types)


def loop(b: Builder, trips: int, body: Pattern, *carry: Value, consts: Sequence[Value] = ()) -> Any:
    """`carry = body(b, i, *consts, *carry)` for i in 0..trips-1; returns the last carry."""
    types = [v.type for v in (*consts, b.const(0, I64), *carry)]
    k = len(consts)
    test = region(lambda b, *v: b.lt(v[k], b.const(trips, I64)), *types)

    def step(b: Builder, *v: Value) -> list[Value]:
        new = body(b, v[k], *v[:k], *v[k + 1 :])
        return [b.add(v[k], b.const(1, I64)), *(new if isinstance(new, (tuple, list)) else [new])]

    operands = (*consts, b.const(0, I64), *carry)
    _, *last = b.op("while", *operands, regions=(test, region(step, *types)), consts=k)
    return last if len(last) > 1 else last[0]


def compiled(
    graph: Graph, arrays: Sequence[np.ndarray] | None = None, target: Target | None = None
) -> Executable:
    """Native code; for the layouts of `arrays` if they are given."""
    strides = None
    if arrays is not None:
        strides = [tuple(s // a.itemsize for s in a.strides) for a in arrays]
    target = target or current_target()
    return Executable(compile_graph(graph, target, strides), target)


def expected(graph: Graph, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [w for w in evaluate(graph, arrays) if w is not None]


def same(got: Sequence[np.ndarray], want: Sequence[np.ndarray], ulps: int = 512) -> None:
    """Equal shapes and dtypes; floats equal within `ulps` roundings of the largest element."""
    for g, w in zip(got, want, strict=True):
        assert g.shape == w.shape and g.dtype == w.dtype
        if w.dtype.kind != "f":
            np.testing.assert_array_equal(g, w)
            continue
        eps = np.finfo(w.dtype).eps * ulps
        scale = np.max(np.abs(w), where=np.isfinite(w), initial=0.0)
        np.testing.assert_allclose(g, w, rtol=eps, atol=eps * scale)


# Pieces.


def rows_of(b: Builder, x: Value, r: Value) -> Value:
    """`r` has a value per row of `x` (its last axis reduced): repeated along the row."""
    return b.broadcast(r, shape=x.shape, dims=tuple(range(len(x.shape) - 1)))


def reduce_rows(b: Builder, name: str, x: Value) -> Value:
    return b.op(name, x, axes=(len(x.shape) - 1,))


def scaled(b: Builder, x: Value, k: float) -> Value:
    return b.mul(x, b.full_like(x, k))


# Patterns over one float array.


def chain(b: Builder, x: Value) -> Value:
    """Thirty elementwise ops."""
    for k in range(15):
        x = b.add(scaled(b, x, 0.9), b.full_like(x, 0.1 * k))
    return x


def softmax(b: Builder, x: Value) -> Value:
    e = b.exp(b.sub(x, rows_of(b, x, reduce_rows(b, "max", x))))
    return b.div(e, rows_of(b, x, reduce_rows(b, "sum", e)))


def logsumexp(b: Builder, x: Value) -> Value:
    top = reduce_rows(b, "max", x)
    e = b.exp(b.sub(x, rows_of(b, x, top)))
    return b.add(b.log(reduce_rows(b, "sum", e)), top)


def layernorm(b: Builder, x: Value) -> Value:
    n = x.shape[-1]
    mean = reduce_rows(b, "sum", x)
    mean = b.div(mean, b.full_like(mean, n))
    d = b.sub(x, rows_of(b, x, mean))
    var = reduce_rows(b, "sum", b.mul(d, d))
    std = b.sqrt(b.add(b.div(var, b.full_like(var, n)), b.full_like(var, 1e-5)))
    return b.div(d, rows_of(b, x, std))


def cross_entropy(b: Builder, x: Value) -> Value:
    """The mean over rows of logsumexp minus the element of one class."""
    label = b.slice(
        x,
        start=(0,) * len(x.shape),
        stop=(*x.shape[:-1], 1),
        step=(1,) * len(x.shape),
    )
    losses = b.sub(logsumexp(b, x), b.reshape(label, shape=x.shape[:-1]))
    return b.op("sum", losses, axes=tuple(range(len(losses.shape))))


def moments(b: Builder, x: Value) -> tuple[Value, Value]:
    return reduce_rows(b, "sum", x), reduce_rows(b, "sum", b.mul(x, x))


def standardise(b: Builder, x: Value) -> Value:
    """x minus its mean, over its standard deviation, of all elements."""
    axes, n = tuple(range(len(x.shape))), x.tensor.size
    mean = b.op("sum", x, axes=axes)
    mean = b.div(mean, b.full_like(mean, max(n, 1)))
    d = b.sub(x, b.broadcast(mean, shape=x.shape, dims=()))
    var = b.op("sum", b.mul(d, d), axes=axes)
    std = b.sqrt(b.add(b.div(var, b.full_like(var, max(n, 1))), b.full_like(var, 1e-6)))
    return b.div(d, b.broadcast(std, shape=x.shape, dims=()))


def column_sums(b: Builder, x: Value) -> Value:
    return b.op("sum", b.exp(x), axes=(0,))


def centre_columns(b: Builder, x: Value) -> Value:
    s = b.op("sum", x, axes=(0,))
    s = b.div(s, b.full_like(s, max(x.shape[0], 1)))
    return b.sub(x, b.broadcast(s, shape=x.shape, dims=tuple(range(1, len(x.shape)))))


def every_sum(b: Builder, x: Value) -> list[Value]:
    """A sum over each set of axes."""
    d = len(x.shape)
    sets = [tuple(a for a in range(d) if k >> a & 1) for k in range(1 << d)]
    return [b.op("sum", x, axes=axes) for axes in sets]


def extremes(b: Builder, x: Value) -> list[Value]:
    """argmax, argmin, max and min along each axis, of values with many ties."""
    tied = b.rint(x)
    axes = [a for a, n in enumerate(x.shape) if n]
    if 0 in x.shape:
        axes = []
    out = [b.op(name, tied, axis=a) for a in axes for name in ("argmax", "argmin")]
    out += [b.op(name, x, axes=(a,)) for a in axes for name in ("max", "min")]
    return out or [tied]


def scans(b: Builder, x: Value) -> list[Value]:
    flat = scaled(b, x, 0.01)
    return [
        b.op(name, flat, axis=a, reverse=back)
        for a in range(len(x.shape))
        for name, back in (("cumsum", False), ("cumsum", True), ("cummax", False), ("cummin", True))
    ] or [flat]


def any_all(b: Builder, x: Value) -> list[Value]:
    positive = b.op("gt", x, b.full_like(x, 0.0))
    return [
        b.op(name, m, axes=(a,))
        for a in range(len(x.shape))
        for name in ("any", "all")
        for m in (positive, b.op("gt", x, b.full_like(x, -3.0)))
    ] or [positive]


def narrow(b: Builder, x: Value) -> list[Value]:
    """Bool, int8 and uint64 beside floats in one kernel."""
    small = b.convert(b.rint(scaled(b, x, 10.0)), dtype=np.dtype(np.int8))
    flag = b.op("lt", small, b.full_like(small, 3))
    wide = b.convert(b.convert(small, dtype=I64), dtype=np.dtype(np.uint64))
    return [b.select(flag, wide, b.full_like(wide, 7)), b.select(flag, small, b.neg(small)), flag]


def shifted(b: Builder, x: Value) -> Value:
    """Neighbours along each axis, added up: pads of slices."""
    total = x
    for a, n in enumerate(x.shape):
        if n < 2:
            continue
        start = tuple(int(d == a) for d in range(len(x.shape)))
        tail = b.slice(x, start=start, stop=x.shape, step=(1,) * len(x.shape))
        zero = (0,) * len(x.shape)
        total = b.add(total, b.pad(tail, b.const(0, x.dtype), low=zero, high=start, interior=zero))
    return total


def joined(b: Builder, x: Value) -> Value:
    """A concat of parts that are computed, flipped, and strided, along each axis."""
    for a, n in enumerate(x.shape):
        every = (1,) * len(x.shape)
        half = tuple(n // 2 if d == a else m for d, m in enumerate(x.shape))
        head = b.slice(x, start=(0,) * len(x.shape), stop=half, step=every)
        skip = tuple(2 if d == a else 1 for d in range(len(x.shape)))
        odd = b.slice(x, start=(0,) * len(x.shape), stop=x.shape, step=skip)
        x = b.concat(b.neg(head), b.flip(x, axes=(a,)), odd, axis=a)
        if x.tensor.size > 400_000:
            break
    return x


def turned(b: Builder, x: Value) -> list[Value]:
    """A transpose used with its source, and a reshape of the transpose."""
    perm = tuple(reversed(range(len(x.shape))))
    t = b.transpose(b.exp(scaled(b, x, 0.1)), perm=perm)
    return [t, b.neg(b.reshape(t, shape=(x.tensor.size,)))]


def sorted_columns(b: Builder, x: Value) -> list[Value]:
    if not x.shape:
        return [x]
    s = b.sort(x, axis=0, stable=True)
    return [b.add(s, x), b.argsort(b.rint(x), axis=len(x.shape) - 1, stable=True)]


def stencil(b: Builder, x: Value) -> Value:
    """In-place smoothing of the interior, eight times over."""
    if not x.shape or min(x.shape) < 3:
        return x
    one = (1,) * len(x.shape)
    inner = tuple(n - 1 for n in x.shape)
    for _ in range(8):
        total = b.slice(x, start=one, stop=inner, step=one)
        for a in range(len(x.shape)):
            for k in (0, 2):
                start = tuple(k if d == a else 1 for d in range(len(x.shape)))
                stop = tuple(n - 2 + s for n, s in zip(x.shape, start, strict=True))
                total = b.add(total, b.slice(x, start=start, stop=stop, step=one))
        x = b.update_slice(x, scaled(b, total, 1 / (2 * len(x.shape) + 1)), start=one, step=one)
    return x


ROW_PATTERNS: list[Pattern] = [softmax, logsumexp, layernorm, cross_entropy, moments]
PATTERNS: list[Pattern] = [
    chain, *ROW_PATTERNS, standardise, column_sums, centre_columns, every_sum, extremes, scans,
    any_all, narrow, shifted, joined, turned, sorted_columns, stencil,
]  # fmt: skip


def fits(pattern: Pattern, shape: tuple[int, ...]) -> bool:
    """Whether a pattern makes sense for a shape."""
    if pattern in ROW_PATTERNS:
        return len(shape) > 0 and shape[-1] > 0
    return pattern not in (column_sums, centre_columns) or len(shape) > 0


def sample(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng([seed, *shape])
    return np.asarray(rng.standard_normal(shape)).astype(dtype)


def laid_out(array: np.ndarray, layout: str) -> np.ndarray:
    """The same values in other memory."""
    if array.ndim == 0 or layout == "contiguous":
        return np.asarray(array, order="C")
    if layout == "transposed":
        return np.asfortranarray(array)
    step = -1 if layout == "reversed" else 2
    room = np.zeros([2 * n for n in array.shape], array.dtype)
    view = room[(slice(None, None, step),) * array.ndim][tuple(slice(n) for n in array.shape)]
    view[...] = array
    return view


LAYOUTS = ["contiguous", "transposed", "reversed", "strided"]


def check(graph: Graph, arrays: list[np.ndarray], exact: bool = False, target=None) -> None:
    """Native results are the interpreter's; so are its errors."""
    try:
        want = expected(graph, arrays)
    except (IndexError, AssertionError) as error:
        with pytest.raises(type(error)):
            compiled(graph, arrays, target).run(arrays)
        return
    got = compiled(graph, arrays, target).run(arrays)
    if exact:
        for g, w in zip(got, want, strict=True):
            assert g.dtype == w.dtype
            np.testing.assert_array_equal(g, w)
    else:
        same(got, want)
