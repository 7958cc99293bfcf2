"""Random graphs for hypothesis: 5 to 40 ops of mixed dtypes and shapes, zero-size ones included.

    @given(random_graphs())
    def test_...(case): graph, arrays = case

`random_graphs()` draws from all families of ops, with control flow, tokens and index arrays, and
constants that the simplifier's rules look for. `smooth_graphs()` draws float64 graphs whose
derivative is defined and tame at the drawn inputs, for tests of derivatives. Both give (graph,
arrays): the arguments to run it with.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from jitney.ir.build import Builder
from jitney.ir.graph import Graph, SourceLine, Value
from jitney.ir.types import BASIC, BOOL, I32, I64, TensorType, dtype_kind, is_float, is_small

Case = tuple[Graph, list[np.ndarray]]

SHAPES = [(), (1,), (3,), (4,), (2, 3), (3, 1), (1, 4), (2, 1, 3), (0,), (2, 0), (4, 4)]
# Complex: test_complex_graphs; small floats: test_small_float_programs.
DTYPES = [d for d in BASIC.values() if d.kind != "c" and not is_small(d)]
SCOPES = ["", "encoder/h", "a b]", "x:3 in y", 'of "\n', "a/b, grad of sin"]
FLOAT_VALUES = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 3.0, 4.0, 0.1, -2.5, 1e30, math.inf, math.nan]
INT_VALUES = [0, 1, -1, 2, 3, 4, 7, 8, 100]
EXACT_UNARY = "neg abs sign floor ceil trunc rint sqrt isnan isfinite signbit invert".split()
EXACT_BINARY = (
    "add sub mul div floor_divide remainder fmod maximum minimum fmax fmin copysign bitwise_and "
    "bitwise_or bitwise_xor left_shift right_shift eq ne lt le gt ge gcd add_fits sub_fits mul_fits"
).split()
LIBRARY_UNARY = "exp sin cos tanh arctan log1p cbrt erf".split()


def _rounded(numbers: list[Any], type: TensorType) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.array(numbers, type.dtype)


class Draw:
    """One graph being drawn. `values` are the tensors that later ops may read."""

    def __init__(
        self, draw: Callable[..., Any], dtypes: list[np.dtype[Any]], exact: bool = False
    ) -> None:
        self.draw = draw
        self.dtypes = dtypes
        self.exact = exact
        self.floats = FLOAT_VALUES
        self.graph = Graph("random")
        self.b = Builder(self.graph)
        self.values: list[Value] = []
        self.depth = 0

    def pick(self, choices: Any) -> Any:
        return self.draw(st.sampled_from(list(choices)))

    def param(self, type: TensorType) -> Value:
        names = ["", "x", "y", "y", "w_0"]
        value = self.graph.add_param(type, names[len(self.graph.params) % len(names)])
        self.values.append(value)
        return value

    def value(self, kinds: str = "biuf") -> Value:
        """A value of one of these kinds, made if there is none. Recent ones come first."""
        fitting = [v for v in reversed(self.values) if dtype_kind(v.dtype) in kinds]
        if fitting and self.draw(st.integers(0, 9)):
            return self.pick(fitting[:8])
        wanted = [d for d in self.dtypes if dtype_kind(d) in kinds] or [
            d for d in DTYPES if dtype_kind(d) in kinds
        ]
        return self.constant(TensorType(self.pick(SHAPES), self.pick(wanted)))

    def like(self, x: Value) -> Value:
        """A value of x's type: another value, x itself, or a constant that rules know."""
        fitting = [v for v in self.values if v.type == x.type]
        if fitting and self.draw(st.booleans()):
            return self.pick(fitting)
        return self.constant(x.tensor)

    def constant(self, type: TensorType) -> Value:
        if is_float(type.dtype):
            numbers = self.floats
        else:
            info = None if type.dtype == BOOL else np.iinfo(type.dtype)
            numbers = [n for n in INT_VALUES if info is None or info.min <= n <= info.max]
        if self.draw(st.booleans()):
            return self.b.full(type.shape, self.pick(numbers), type.dtype)
        picked = [self.pick(numbers) for _ in range(min(type.size, 4))]
        return self.b.const(np.resize(_rounded(picked, type), type.shape))


def _unary(d: Draw) -> Value:
    name = d.pick(EXACT_UNARY)
    if name == "signbit" and d.exact:
        name = "isinf"
    kinds = {"neg": "iuf", "abs": "iuf", "sign": "iuf", "invert": "biu"}.get(name, "f")
    return d.b.op(name, d.value(kinds))


def _library(d: Draw) -> Value:
    return d.b.op(d.pick(LIBRARY_UNARY), d.value("f"))


def _binary(d: Draw) -> Value:
    name = d.pick(EXACT_BINARY)
    if name == "copysign" and d.exact:
        name = "add"
    kinds = "iuf"
    if name.startswith("bitwise"):
        kinds = "biu"
    elif name in ("left_shift", "right_shift", "gcd") or name.endswith("_fits"):
        kinds = "iu"
    elif name in ("div", "copysign"):
        kinds = "f"
    elif name in ("eq", "ne", "lt", "le", "gt", "ge"):
        kinds = "biuf"
    x = d.value(kinds)
    operands = (x, d.like(x)) if d.draw(st.integers(0, 3)) else (d.like(x), x)
    return d.b.op(name, *operands)


def _power(d: Draw) -> Value:
    x = d.value("iu" if d.exact else "iuf")
    return d.b.pow(x, d.b.full_like(x, d.pick([0, 1, 2, 3])))


def _select(d: Draw) -> Value:
    x = d.value()
    mask = d.b.broadcast_to(d.like(d.b.const(True)), x.shape)
    masks = [v for v in d.values if v.type == TensorType(x.shape, BOOL)]
    return d.b.select(d.pick([mask, *masks]), x, d.like(x))


def _convert(d: Draw) -> Value:
    x = d.value()
    # Floats only become floats or bools: what NumPy makes of 1e30 as an int is the machine's.
    targets = d.dtypes if not is_float(x.dtype) else [t for t in d.dtypes if dtype_kind(t) in "fb"]
    return d.b.convert(x, dtype=d.pick(targets or [x.dtype]))


def _reshape(d: Draw) -> Value:
    x = d.value()
    size = x.tensor.size
    shapes = [s for s in SHAPES if math.prod(s) == size] + [(size,), (1, *x.shape), x.shape]
    return d.b.reshape(x, shape=d.pick(shapes))


def _transpose(d: Draw) -> Value:
    x = d.value()
    return d.b.transpose(x, perm=tuple(d.draw(st.permutations(range(len(x.shape))))))


def _broadcast(d: Draw) -> Value:
    x = d.value()
    front, back = d.pick([(), (), (1,), (2,), (0,)]), d.pick([(), (1,), (3,)])
    dims = tuple(range(len(front), len(front) + len(x.shape)))
    return d.b.broadcast(x, shape=front + x.shape + back, dims=dims)


def _slice(d: Draw) -> Value:
    x = d.value()
    start = tuple(d.draw(st.integers(0, n)) for n in x.shape)
    stop = tuple(d.draw(st.integers(a, n)) for a, n in zip(start, x.shape, strict=True))
    step = tuple(d.pick([1, 1, 2, 3]) for _ in x.shape)
    return d.b.slice(x, start=start, stop=stop, step=step)


def _flip(d: Draw) -> Value:
    x = d.value()
    axes = tuple(i for i in range(len(x.shape)) if d.draw(st.booleans()))
    return d.b.flip(x, axes=axes)


def _pad(d: Draw) -> Value:
    x = d.value()
    fill = d.constant(TensorType((), x.dtype))
    fill = fill if fill.shape == () else d.b.const(0, x.dtype)
    low, high, gap = (tuple(d.pick([0, 0, 1, 2]) for _ in x.shape) for _ in range(3))
    return d.b.pad(x, fill, low=low, high=high, interior=gap)


def _concat(d: Draw) -> Value:
    x = d.value()
    if not x.shape:
        x = d.b.reshape(x, shape=(1,))
    return d.b.concat(x, *(d.like(x) for _ in range(d.pick([0, 1, 2]))), axis=0)


def _update_slice(d: Draw) -> Value:
    x = d.value()
    start = tuple(d.draw(st.integers(0, n)) for n in x.shape)
    sizes = tuple(d.draw(st.integers(0, n - a)) for a, n in zip(start, x.shape, strict=True))
    step = tuple(d.pick([1, 2]) if k <= 1 else 1 for k in sizes)
    u = d.like(d.b.full(sizes, 0, x.dtype))
    updated = d.b.update_slice(x, u, start=start, step=step)
    if d.draw(st.booleans()):
        return updated
    stop = tuple(a + k for a, k in zip(start, sizes, strict=True))
    return d.b.slice(updated, start=start, stop=stop, step=(1,) * len(stop))


def _dynamic(d: Draw) -> Value:
    x = d.value()
    sizes = tuple(d.draw(st.integers(0, n)) for n in x.shape)
    indices = [v for v in d.values if v.type == TensorType((), I64)]
    starts = [d.pick([d.b.const(d.draw(st.integers(-2, 5)), I64), *indices]) for _ in x.shape]
    if d.draw(st.booleans()):
        return d.b.dynamic_slice(x, *starts, sizes=sizes)
    return d.b.dynamic_update_slice(x, d.like(d.b.full(sizes, 0, x.dtype)), *starts)


def _gather(d: Draw) -> Value:
    x = d.value()
    if not x.shape or 0 in x.shape:
        return x
    axis = d.draw(st.integers(0, len(x.shape) - 1))
    n = x.shape[axis]
    index = d.b.const(d.draw(st.lists(st.integers(-n, n - 1), max_size=4)), I64)
    return d.b.gather(x, index, axes=(axis,), mode=d.pick(["check", "clip"]))


def _scatter(d: Draw) -> Value:
    x = d.value("iuf")
    if not x.shape or 0 in x.shape:
        return x
    n = x.shape[0]
    index = d.b.const(d.draw(st.lists(st.integers(-n, n - 1), max_size=3)), I64)
    u = d.like(d.b.full((*index.shape, *x.shape[1:]), 0, x.dtype))
    combine = d.pick(["set", "add", "max"])
    return d.b.scatter(x, u, index, axes=(0,), mode="check", combine=combine)


def _reduce(d: Draw) -> Value:
    x = d.value()
    axes = tuple(i for i in range(len(x.shape)) if d.draw(st.booleans()))
    names = ["any", "all"] if x.dtype == BOOL else ["sum", "max", "min", "prod"]
    name = d.pick(names)
    if name in ("max", "min") and 0 in x.shape:
        name = "sum"
    if d.exact and is_float(x.dtype) and name in ("sum", "prod"):
        return x
    return d.b.op(name, x, axes=axes)


def _along(d: Draw) -> Value:
    x = d.value("iuf")
    if not x.shape or 0 in x.shape:
        return x
    axis = d.draw(st.integers(0, len(x.shape) - 1))
    name = d.pick("cumsum cummax sort argsort argmax argmin".split())
    if name.startswith("cum"):
        return d.b.op(name, x, axis=axis, reverse=d.draw(st.booleans()))
    if "sort" in name:
        return d.b.op(name, x, axis=axis, stable=True)
    return d.b.op(name, x, axis=axis)


def _dot(d: Draw) -> Value:
    x = d.value("iu" if d.exact else "iuf")
    y = d.b.transpose(d.like(x), perm=tuple(d.draw(st.permutations(range(len(x.shape))))))
    pairs = [
        (i, j) for i, n in enumerate(x.shape) for j, m in enumerate(y.shape) if n == m and n < 5
    ]
    if not pairs or len(x.shape) > 2:
        return x
    i, j = d.pick(pairs)
    return d.b.dot(x, y, contract=((i,), (j,)), batch=((), ()))


def _iota(d: Draw) -> Value:
    shape = d.pick([s for s in SHAPES if s])
    dtype = d.pick([t for t in d.dtypes if t != BOOL] or [I64])
    return d.b.iota(shape=shape, dtype=dtype, axis=d.draw(st.integers(0, len(shape) - 1)))


def _region(d: Draw, types: list[TensorType], ops: int) -> Draw:
    inner = Draw(d.draw, d.dtypes, d.exact)
    inner.depth = d.depth + 1
    for type in types:
        inner.param(type)
    for _ in range(ops):
        value = d.pick(STEPS)(inner)
        if value.tensor.size <= 256:
            inner.values.append(value)
    return inner


def _cond(d: Draw) -> Value:
    if d.depth > 1:
        return _unary(d)
    x, y = d.value(), d.value()
    index = d.pick([d.b.const(d.pick([-1, 0, 1, 5]), I32), d.b.convert(d.value("biu"), dtype=I32)])
    if index.shape != ():
        index = d.b.const(0, I32)
    branches = []
    for name in ("no", "yes"):
        inner = _region(d, [x.tensor, y.tensor], d.pick([0, 1, 3]))
        inner.graph.name = name
        out = [v for v in inner.values if v.type == x.type]
        inner.graph.outputs = [d.pick(out), inner.graph.params[1]]
        branches.append(inner.graph)
    first, second = d.b.op("cond", index, x, y, regions=branches)
    d.values.append(second)
    return first


def _while(d: Draw) -> Value:
    """At most three turns: the first carry counts."""
    if d.depth > 1:
        return _unary(d)
    fixed, x = d.value(), d.value()
    types = [fixed.tensor, TensorType((), I64), x.tensor]
    test = Graph("test")
    params = [test.add_param(t) for t in types]
    b = Builder(test)
    test.outputs = [b.lt(params[1], b.const(d.pick([0, 1, 3]), I64))]
    inner = _region(d, types, d.pick([1, 2, 4]))
    count = inner.b.add(inner.graph.params[1], inner.b.const(1, I64))
    out = [v for v in inner.values if v.type == x.type]
    inner.graph.name, inner.graph.outputs = "body", [count, d.pick(out)]
    start = d.b.const(0, I64)
    _, last = d.b.op("while", fixed, start, x, regions=(test, inner.graph), consts=1)
    return last


def _scan(d: Draw) -> Value:
    """Over an axis of an array and beside it, with a y that is stacked."""
    if d.depth > 1:
        return _unary(d)
    fixed, x = d.value(), d.value()
    length = d.pick([0, 1, 2, 3])
    xs = d.like(d.b.full((length, *d.pick(SHAPES)), 0, d.pick(d.dtypes)))
    types = [fixed.tensor, x.tensor, xs.tensor.with_shape(xs.shape[1:])]
    inner = _region(d, types, d.pick([1, 2, 4]))
    out = [v for v in inner.values if v.type == x.type]
    inner.graph.name, inner.graph.outputs = "body", [d.pick(out), d.pick(inner.values)]
    attrs = {"consts": 1, "carries": 1, "length": length, "reverse": d.draw(st.booleans())}
    last, ys = d.b.op("scan", fixed, x, xs, regions=[inner.graph], **attrs)
    if ys.tensor.size <= 256:
        d.values.append(ys)
    return last


STEPS = [
    *[_unary, _unary, _unary, *[_binary] * 8, _power, _select, _select, _convert],
    *[_reshape, _transpose, _broadcast, _slice, _flip, _pad, _concat, _update_slice],
    *[_dynamic, _gather, _scatter, _reduce, _reduce, _along, _dot, _iota, _cond, _while],
    _scan,
]


@st.composite
def random_graphs(
    draw: Any,
    max_ops: int = 40,
    library: bool = False,
    effects: bool = True,
    exact: bool = False,
    pool: list[np.dtype[Any]] = DTYPES,
) -> Any:
    """(graph, arrays), of 5 to `max_ops` ops that are not constants, and about as many that are.

    With `library`, exp and its like occur, whose last bits vary. With `effects`, the last output may
    be a token. With `exact`, nothing occurs whose last bit depends on the order of evaluation, nor
    what tells one NaN from another. The dtypes are some of `pool`.
    """
    dtypes = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=3, unique=True))
    d = Draw(draw, dtypes, exact)
    for _ in range(draw(st.integers(1, 4))):
        d.param(TensorType(d.pick(SHAPES), d.pick(d.dtypes)))
    params = list(d.values)
    steps = [*STEPS, _library] if library else STEPS
    token = None
    for line in range(draw(st.integers(5, max_ops))):
        scope, role = SCOPES[line % len(SCOPES)], "" if line % 2 else "grad of grad of sin"
        function = "" if line % 3 else "step"
        where = SourceLine("model.py", line, function, scope, role, column=7 * (line % 4))
        d.b.loc = where if line % 5 else None
        value = d.pick(steps)(d)
        if value.tensor.size <= 256:  # so that broadcasts and concats do not grow without bound
            if not value.name and line % 4 == 0:
                value.name = d.pick(["a", "b", "total", "encoder/h"])
            d.values.append(value)
        if effects and draw(st.integers(0, 15)) == 0:
            token = d.b.op("create_token") if token is None else token
            token = d.b.op("assert", d.b.const(True), token, message="never")
    outputs = draw(st.lists(st.sampled_from(d.values), min_size=1, max_size=4))
    d.graph.outputs = [*outputs, d.values[-1], *([token] if token is not None else [])]
    return d.graph, [draw(arrays_of(p.tensor)) for p in params]


def arrays_of(type: TensorType) -> st.SearchStrategy[np.ndarray]:
    """Arrays with the values that make trouble."""
    if type.dtype == BOOL:
        elements: st.SearchStrategy[Any] = st.booleans()
    elif is_float(type.dtype):
        elements = st.sampled_from(FLOAT_VALUES) | st.floats(-4, 4, width=32)
    else:
        info = np.iinfo(type.dtype)
        small = st.integers(max(info.min, -5), 9)
        elements = small | st.sampled_from([int(info.min), int(info.max)])
    flat = st.lists(elements, min_size=type.size, max_size=type.size)
    return flat.map(lambda xs: _rounded(xs, type).reshape(type.shape))


# Smooth graphs.

_TAME_UNARY = "sin cos tanh arctan neg exp erf arcsinh".split()


@st.composite
def smooth_graphs(draw: Any, max_ops: int = 16) -> Any:
    """(graph, arrays): float64 parameters, one or two float64 outputs, values kept moderate."""
    f64 = np.dtype(np.float64)
    d = Draw(draw, [f64])
    d.floats = [0.0, 1.0, -0.5, 0.7]
    for _ in range(draw(st.integers(1, 3))):
        d.param(TensorType(d.pick([(), (3,), (2, 3), (1, 3)]), f64))
    params = list(d.values)
    movement = [_reshape, _transpose, _broadcast, _slice, _flip, _concat]
    target = draw(st.integers(3, max_ops))
    while len(d.graph.ops) < target:
        b = d.b
        b.loc = SourceLine("model.py", len(d.graph.ops))
        x = d.pick(list(reversed(d.values))[:6])
        same = [v for v in d.values if v.type == x.type]
        step = d.draw(st.integers(0, 7))
        if step <= 1:
            value = b.op(d.pick(_TAME_UNARY), b.tanh(x))
        elif step <= 3:
            value = b.op(
                d.pick(["add", "sub", "mul", "arctan2", "hypot"]), x, _away(b, d.pick(same))
            )
        elif step == 4:
            axes = tuple(i for i in range(len(x.shape)) if d.draw(st.booleans()))
            value = b.sum(b.tanh(x), axes=axes)
        elif step == 5:
            mask = b.const(np.resize([True, False, True], x.shape), BOOL)
            value = b.select(mask, b.sqrt(b.abs(_away(b, x))), d.pick(same))
        elif step == 6 and d.draw(st.booleans()):
            value = _smooth_loop(d, x, d.pick(same))
        elif step == 6 and len(x.shape) == 2:
            value = b.dot(x, d.pick(same), contract=((1,), (1,)), batch=((), ()))
        else:
            d.values.remove(x)
            d.values.append(x)  # movement reads the latest
            value = d.pick(movement)(d)
        if 0 < value.tensor.size <= 64 and value.dtype == f64:
            d.values.append(value)
    d.graph.outputs = d.values[-draw(st.integers(1, 2)) :]
    floats = st.floats(-1.5, 1.5, width=32)
    arrays = []
    for p in params:
        flat = draw(st.lists(floats, min_size=p.tensor.size, max_size=p.tensor.size))
        arrays.append(np.array(flat, f64).reshape(p.shape))
    return d.graph, arrays


def _smooth_loop(d: Draw, x: Value, y: Value) -> Value:
    """A scan or a while of up to three trips of x = sin(x) * y + tanh(x), with a scan inside, or not."""
    trips = d.pick([0, 1, 3])
    types = [y.tensor, x.tensor]

    def body(name: str, inside: int) -> Graph:
        graph = Graph(name)
        params = [graph.add_param(t) for t in types]
        b = Builder(graph)
        new = b.add(b.mul(b.sin(params[1]), params[0]), b.tanh(params[1]))
        if inside:
            attrs = {"consts": 1, "carries": 1, "length": 2, "reverse": False}
            new = b.op("scan", params[0], new, regions=[body("inner", inside - 1)], **attrs)
        graph.outputs = [new]
        return graph

    region = body("body", d.pick([0, 0, 1]))
    if d.draw(st.booleans()):
        attrs = {"consts": 1, "carries": 1, "length": trips, "reverse": False}
        return d.b.op("scan", y, x, regions=[region], **attrs)
    count = TensorType((), I64)
    test, trip = Graph("test"), Graph("trip")
    for graph in (test, trip):
        for t in (types[0], count, types[1]):
            graph.add_param(t)
    b = Builder(test)
    test.outputs = [b.lt(test.params[1], b.const(trips, I64))]
    b = Builder(trip)
    i = b.add(trip.params[1], b.const(1, I64))
    trip.outputs = [i, *b.inline(region, [trip.params[0], trip.params[2]])]
    checkpoint = d.pick(["all", "sqrt", 1, 2])
    start = d.b.const(0, I64)
    regions = (test, trip)
    _, last = d.b.op("while", y, start, x, regions=regions, consts=1, checkpoint=checkpoint)
    return last


def _away(b: Builder, x: Value) -> Value:
    """A value that is never near zero: 2 + tanh(x)."""
    return b.add(b.tanh(x), b.full_like(x, 2.0))
