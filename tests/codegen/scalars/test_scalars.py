"""Every scalar primitive in every dtype it accepts, as scalars and as vectors, against NumPy models;
and what the emitter adds: uniform values, numbering, loops, targets."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from native import avx2_target, has_avx2, native
from scalar_models import (
    ALL,
    ARITHMETIC,
    CASES,
    COMPARISONS,
    FITS,
    FLOATS,
    I8,
    INTS,
    NUMBERS,
    U8,
    U32,
    U64,
    quiet,
    same,
    samples,
    signed_exactly,
    to_integer_model,
    widths,
)

from jitney.codegen.scalar import (
    PRIMITIVES,
    Expr,
    binary,
    bitcast,
    compare,
    const,
    convert,
    convert_fitting,
    eq,
    ne,
    scale2,
    select,
    table,
    var,
)
from jitney.ir.opdef import OPS
from jitney.ir.types import BOOL, F32, F64, I32, I64
from jitney.runtime.native.host import host_target


@pytest.mark.parametrize(("op", "dtype"), CASES, ids=lambda v: str(v))
def test_arithmetic(op, dtype):
    _, model, legal = ARITHMETIC[op]
    arity = PRIMITIVES[op][0]
    arrays = [samples(dtype, seed) for seed in range(arity)]
    if legal:
        arrays = list(legal(*arrays))
    want = quiet(model)(*arrays)
    for width in widths(dtype):
        f = native(lambda *xs: Expr(op, xs, dtype), [dtype] * arity, width)
        same(f(*arrays), want)


def test_float_division():
    for dtype in FLOATS:
        a, b = samples(dtype, 1), samples(dtype, 2)
        for width in widths(dtype):
            same(native(lambda x, y: x / y, [dtype] * 2, width)(a, b), quiet(np.divide)(a, b))


def test_division_by_constants():
    for dtype, n in itertools.product(INTS, [1, 7, 64]):
        a = samples(dtype)
        for op in ("div", "rem"):
            want = signed_exactly(op)(a, np.full_like(a, n))
            for width in widths(dtype)[:2]:
                same(native(lambda x, op=op, n=n: binary(op, x, n), [dtype], width)(a), want)


@pytest.mark.parametrize("op", FITS)
@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_what_does_not_wrap(op, dtype):
    a, b = samples(dtype, 1), samples(dtype, 2)
    ends = np.iinfo(dtype)
    exact = [FITS[op](int(x), int(y)) for x, y in zip(a, b, strict=True)]
    want = np.array([ends.min <= z <= ends.max for z in exact])
    assert want.any() and not want.all()
    np.testing.assert_array_equal(OPS[op].reference(a, b), want)
    for width in widths(dtype):
        found = native(lambda x, y: compare(op, x, y), [dtype, dtype], width)(a, b)
        np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("dtype", ALL, ids=str)
@pytest.mark.parametrize("op", COMPARISONS)
def test_comparison_and_select(op, dtype):
    a, b = samples(dtype, 3), samples(dtype, 4)
    b[::5] = a[::5]
    want = COMPARISONS[op](a, b)
    for width in widths(dtype):
        same(native(lambda x, y: compare(op, x, y), [dtype] * 2, width)(a, b), want)
        f = native(lambda x, y: select(compare(op, x, y), y, x), [dtype] * 2, width)
        same(f(a, b), np.where(want, b, a))


@pytest.mark.parametrize(("source", "dtype"), list(itertools.product(ALL, ALL)), ids=str)
def test_convert(source, dtype):
    a = samples(source, 5)
    with np.errstate(all="ignore"):
        want = a.astype(dtype)
    if source.kind == "f" and dtype.kind in "iu":
        want = to_integer_model(a, dtype)
    for width in sorted({*widths(source)[:2], *widths(dtype)[:2]}):
        same(native(lambda x: convert(x, dtype), [source], width)(a), want)


def test_float_to_integer_is_what_numpy_does_here():
    if "x86_64" not in host_target().triple:
        pytest.skip("the rule is NumPy's on x86-64")
    for source, dtype in itertools.product(FLOATS, INTS):
        a = samples(source, 6)
        with np.errstate(all="ignore"):
            same(to_integer_model(a, dtype), a.astype(dtype))


def test_fitting_conversion():
    for source, dtype in itertools.product(FLOATS, INTS):
        info = np.iinfo(dtype)
        a = np.random.default_rng(0).uniform(max(info.min, -1e15), min(info.max, 1e15), 64)
        a = np.clip(a.astype(source), -(2.0**50) if info.min else 0, None)
        a = a[np.abs(a.astype(np.float64)) < info.max]
        for width in widths(source)[:2]:
            same(
                native(lambda x, d=dtype: convert_fitting(x, d), [source], width)(a),
                a.astype(dtype),
            )


@pytest.mark.parametrize(("a", "b"), [(F32, I32), (F32, U32), (F64, I64), (F64, U64), (I8, U8)])
def test_bitcast(a, b):
    for source, dtype in ((a, b), (b, a)):
        x = samples(source, 7)
        x = x[x == x]
        for width in widths(source)[:2]:
            same(native(lambda v, d=dtype: bitcast(v, d), [source], width)(x), x.view(dtype))


def scaling_samples(dtype):
    rng = np.random.default_rng(8)
    a = samples(dtype, 8, 2000)
    n = rng.integers(-2200, 2201, a.size)
    top = 300 if dtype == F32 else 2200
    close = rng.integers(-top, top + 1, a.size)
    _, e = np.frexp(np.where(np.isfinite(a), a, 1))
    edge = -e + rng.integers(-60, 30, a.size) + (-126 if dtype == F32 else -1022)
    return np.tile(a, 3), np.concatenate([n, close, edge]).astype(np.int32)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_scale2(dtype):
    a, n = scaling_samples(dtype)
    want = quiet(np.ldexp)(a, n)
    targets = [None, avx2_target()] if has_avx2() else [None]
    for target, width in itertools.product(targets, widths(dtype)[:2]):
        if target is not None:
            width = min(width, target.lanes(dtype.itemsize))
        same(native(scale2, [dtype, I32], width, target)(a, n), want)
    top = 250 if dtype == F32 else 2000
    a = np.random.default_rng(9).uniform(0.25, 4, 4096).astype(dtype)
    n = np.random.default_rng(9).integers(-top, top + 1, a.size).astype(np.int32)
    want = quiet(np.ldexp)(a, n)
    for target, width in itertools.product(targets, widths(dtype)[:2]):
        if target is not None:
            width = min(width, target.lanes(dtype.itemsize))
        f = native(lambda x, k: scale2(x, k, near_one=True), [dtype, I32], width, target)
        same(f(a, n), want)


@pytest.mark.parametrize("dtype", [d for d in ALL if d != BOOL], ids=str)
def test_table(dtype):
    values = samples(dtype, 9)[:100]
    index = np.random.default_rng(0).integers(0, 100, 256)
    for kind, width in itertools.product((I32, I64), widths(dtype)[:2]):
        f = native(lambda i: table(values.tolist(), dtype, i), [kind], width)
        same(f(index), values[index])


def test_constants_keep_their_bits():
    for value in (0.0, -0.0, np.nan, np.inf, -np.inf, 5e-324, 1e-40, 0.1, 1e308):
        for dtype in FLOATS:
            with np.errstate(over="ignore"):
                want = np.full(16, value).astype(dtype)
            for width in (1, 8):
                c = const(value, dtype)
                f = native(lambda x, c=c: select(ne(x, x) | eq(x, x), c, x), [dtype], width)
                same(f(np.ones(16)), want)
    for dtype in INTS:
        info = np.iinfo(dtype)
        smallest = const(info.min, dtype)
        f = native(lambda x, c=smallest: x * 0 + c, [dtype], 16)
        same(f(np.ones(16, dtype)), np.full(16, info.min, dtype))
    assert const(300, U8).attr == 44 and const(-1, U8).attr == 255 and const(200, I8).attr == -56


# Random expressions, vectors against scalars against NumPy.

UNARY = ["neg", "abs", "floor", "sqrt", "not", "ctpop", "ctlz"]
BINARY = ["add", "sub", "mul", "min", "max", "and", "or", "xor", "div"]
MODELS = {op: quiet(m) for op, (_, m, _) in ARITHMETIC.items()}
MODELS["div"] = quiet(np.divide)


def allowed(op, dtype):
    if op == "div":
        return dtype.kind == "f"
    return dtype in ARITHMETIC[op][0]


@given(st.data())
@settings(max_examples=20)
def test_random_expressions(data):
    dtype = data.draw(st.sampled_from(NUMBERS), label="dtype")
    xs = [var(f"x{k}", dtype) for k in range(2)]
    arrays = [samples(dtype, 11), samples(dtype, 12)]
    pool = list(zip(xs, arrays, strict=True))
    for _ in range(data.draw(st.integers(1, 12), label="nodes")):
        pick = st.integers(0, len(pool) - 1)
        op = data.draw(
            st.sampled_from([o for o in UNARY + BINARY if allowed(o, dtype)] + ["select"])
        )
        a, va = pool[data.draw(pick)]
        b, vb = pool[data.draw(pick)]
        if op == "select":
            pool.append((select(a < b, b, a), np.where(va < vb, vb, va)))
        elif op in UNARY:
            pool.append((Expr(op, (a,), dtype), MODELS[op](va)))
        else:
            pool.append((binary(op, a, b), MODELS[op](va, vb)))
    result, want = pool[-1]
    for width in widths(dtype)[:2]:
        f = native(
            lambda *params: replaced(result, dict(zip(xs, params, strict=True))), [dtype] * 2, width
        )
        got = f(*arrays)
        np.testing.assert_array_equal(got, want)


def replaced(root, table):
    """`root` with other leaves."""
    memo = dict(table)

    def go(node):
        if node not in memo:
            memo[node] = Expr(node.op, tuple(go(a) for a in node.args), node.dtype, node.attr)
        return memo[node]

    return go(root)
