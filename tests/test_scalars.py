"""Every scalar primitive in every dtype it accepts, as scalars and as vectors, against NumPy models;
and what the emitter adds: uniform values, numbering, loops, targets."""

from __future__ import annotations

import itertools
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from native import array_function_text, avx2_target, has_avx2, native

from jitney.codegen.llvm.scalars import Operand, ScalarEmitter
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
    fma,
    loop,
    ne,
    scale2,
    select,
    table,
    unary,
    var,
)
from jitney.ir.types import BOOL, DTYPE_NAMES, F32, F64, I32, I64
from jitney.runtime.engine import host_target

I8, U8, U32, U64 = (DTYPE_NAMES[n] for n in ("i8", "u8", "u32", "u64"))
INTS = [d for d in DTYPE_NAMES.values() if d.kind in "iu"]
FLOATS = [F32, F64]
NUMBERS = INTS + FLOATS
ALL = [BOOL, *NUMBERS]


def samples(dtype, seed=0, count=200):
    """Edge values and random bit patterns, a multiple of 64 of them."""
    rng = np.random.default_rng(seed)
    if dtype == BOOL:
        return rng.integers(0, 2, 256).astype(bool)
    raw = rng.integers(0, 256, count * dtype.itemsize, dtype=np.uint8).view(dtype)
    if dtype.kind == "f":
        tiny = np.finfo(dtype).tiny
        edges = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.5,
            -0.5,
            1.5,
            2.5,
            -2.5,
            np.inf,
            -np.inf,
            np.nan,
            tiny,
            -tiny,
        ]
        edges += [
            tiny / 4,
            -tiny / 8,
            np.finfo(dtype).max,
            1e10,
            -1e10,
            255.9,
            -128.7,
            2.0**31,
            2.0**63,
        ]
        mixed = rng.normal(size=count) * 10.0 ** rng.uniform(-6, 12, count)
        values = np.concatenate([np.array(edges, dtype), raw, mixed.astype(dtype)])
    else:
        info = np.iinfo(dtype)
        edges = [0, 1, 2, 3, 7, info.max, info.max - 1, info.min, info.min + 1]
        small = rng.integers(max(info.min, -20), 20, count).astype(dtype)
        values = np.concatenate([np.array(edges, dtype), raw, small])
    size = -(-values.size // 64) * 64
    return np.resize(rng.permutation(values), size)


def same(got, want):
    """Equal bits, except that any NaN is as good as another."""
    assert got.dtype == want.dtype
    if got.dtype.kind == "f":
        np.testing.assert_array_equal(got, want)
        numbers = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(want[numbers]))
    else:
        np.testing.assert_array_equal(got, want)


def widths(dtype):
    target = host_target()
    return sorted({1, target.lanes(max(4, dtype.itemsize)), target.lanes(dtype.itemsize)})


def signed_exactly(op):
    """Integer division that truncates, in Python's integers."""

    def model(a, b):
        out = []
        for x, y in zip(a.tolist(), b.tolist(), strict=True):
            q = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
            out.append(q if op == "div" else x - q * y)
        return np.array(out, object).astype(a.dtype)

    return model


def nonzero(a, b):
    """Operands on which integer division is defined."""
    b = np.where(b == 0, 1, b).astype(b.dtype)
    if a.dtype.kind == "i":
        b = np.where((b == -1) & (a == np.iinfo(a.dtype).min), 1, b).astype(b.dtype)
    return a, b


def shift_amount(a, b):
    return a, (b & np.array(a.dtype.itemsize * 8 - 1).astype(b.dtype)).astype(b.dtype)


def as_unsigned(a):
    return a.view(f"u{a.dtype.itemsize}")


def logical_right(a, b):
    return (as_unsigned(a) >> as_unsigned(b)).view(a.dtype)


def arithmetic_right(a, b):
    return (a.view(f"i{a.dtype.itemsize}") >> b.view(f"i{b.dtype.itemsize}")).view(a.dtype)


def count_bits(which):
    def model(a):
        bits = a.dtype.itemsize * 8
        out = []
        for v in as_unsigned(a).tolist():
            text = f"{v:0{bits}b}"
            if which == "ctpop":
                out.append(text.count("1"))
            else:
                text = text if which == "ctlz" else text[::-1]
                out.append(text.index("1") if "1" in text else bits)
        return np.array(out).astype(a.dtype)

    return model


def high_product(a, b):
    bits = a.dtype.itemsize * 8
    return np.array([(int(x) * int(y)) >> bits for x, y in zip(a, b, strict=True)], a.dtype)


def fused(a, b, c):
    """a * b + c with one rounding, through exact rationals where all three are finite."""
    from fractions import Fraction

    out = []
    for x, y, z in zip(a.tolist(), b.tolist(), c.tolist(), strict=True):
        if not all(np.isfinite([x, y, z])):
            with np.errstate(all="ignore"):
                out.append(float(np.float64(x) * np.float64(y) + np.float64(z)))
            continue
        exact = Fraction(x) * Fraction(y) + Fraction(z)
        if exact == 0:
            out.append(np.float64(x) * np.float64(y) + np.float64(z) if x * y == 0 else 0.0)
        else:
            out.append(exact)
    return np.array([v if isinstance(v, float) else nearest(v, a.dtype) for v in out], a.dtype)


def nearest(value, dtype):
    """A rational rounded to `dtype`."""
    import mpmath

    bits, lowest, top = (24, -149, 128) if dtype == F32 else (53, -1074, 1024)
    with mpmath.workprec(400):
        x = mpmath.mpf(value.numerator) / value.denominator
        ulp = max(mpmath.floor(mpmath.log(abs(x), 2)) - bits + 1, lowest)
        rounded = mpmath.nint(mpmath.ldexp(x, -int(ulp)))  # ties to even
        result = mpmath.ldexp(rounded, int(ulp))
        if abs(result) >= mpmath.mpf(2) ** top:
            return float(np.copysign(np.inf, float(value > 0) - 0.5))
        return float(result)


def quiet(f):
    def call(*arrays):
        with np.errstate(all="ignore"):
            return np.asarray(f(*arrays)).astype(arrays[0].dtype)

    return call


# op -> (dtypes, model, a function that makes operands legal)
ARITHMETIC = {
    "add": (NUMBERS, np.add, None),
    "sub": (NUMBERS, np.subtract, None),
    "mul": (NUMBERS, np.multiply, None),
    "div": (INTS, signed_exactly("div"), nonzero),
    "rem": (INTS, signed_exactly("rem"), nonzero),
    "mulhi": ([d for d in INTS if d.kind == "u"], high_product, None),
    "neg": (FLOATS, np.negative, None),
    "fma": (FLOATS, fused, None),
    "sqrt": (FLOATS, np.sqrt, None),
    "abs": ([d for d in NUMBERS if d.kind != "u"], np.abs, None),
    "floor": (FLOATS, np.floor, None),
    "ceil": (FLOATS, np.ceil, None),
    "trunc": (FLOATS, np.trunc, None),
    "rint": (FLOATS, np.rint, None),
    "copysign": (FLOATS, np.copysign, None),
    "min": (NUMBERS, lambda a, b: np.where(b < a, b, a), None),
    "max": (NUMBERS, lambda a, b: np.where(b > a, b, a), None),
    "and": ([BOOL, *INTS], np.bitwise_and, None),
    "or": ([BOOL, *INTS], np.bitwise_or, None),
    "xor": ([BOOL, *INTS], np.bitwise_xor, None),
    "not": ([BOOL, *INTS], np.invert, None),
    "shl": (INTS, np.left_shift, shift_amount),
    "lshr": (INTS, logical_right, shift_amount),
    "ashr": (INTS, arithmetic_right, shift_amount),
    "ctlz": (INTS, count_bits("ctlz"), None),
    "cttz": (INTS, count_bits("cttz"), None),
    "ctpop": (INTS, count_bits("ctpop"), None),
}
COMPARISONS = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less,
    "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
CASES = [(op, d) for op, (dtypes, _, _) in ARITHMETIC.items() for d in dtypes]


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


def to_integer_model(a, dtype):
    """The documented rule for floats: the machine's conversion of 32 or 64 bits, then truncation."""
    bits = max(32, dtype.itemsize * 8)
    half, mask = 2 ** (bits - 1), 2**bits - 1
    out = []
    for v in a.astype(np.float64).tolist():
        flip = dtype.kind == "u" and dtype.itemsize >= 4 and v >= half
        if flip:
            v -= half
        fits = np.isfinite(v) and abs(v) < half
        n = (int(v) if fits else -half) & mask
        out.append((n ^ half if flip else n) & (2 ** (dtype.itemsize * 8) - 1))
    return np.array(out, np.uint64).astype(f"u{dtype.itemsize}").view(dtype)


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


# The emitter.


def emitted(width=8, **bound):
    lines: list[str] = []
    e = ScalarEmitter(host_target(), lines, width)
    for name, uniform in bound.items():
        e.bind(name, f"%{name}", uniform=uniform)
    return e, lines


def test_uniform_values_are_scalars():
    e, lines = emitted(x=False, s=True)
    x, s = var("x", F32), var("s", F32)
    e.emit((s * s + 1.0) * x)
    assert lines[0].endswith("fmul float %s, %s")
    assert lines[1].split("= ")[1].startswith("fadd float")
    assert "insertelement" in lines[2] and "shufflevector" in lines[3]
    assert lines[4].split("= ")[1].startswith("fmul <8 x float>")
    assert e.operand(s * s) == Operand("%v0", True)
    assert e.emit(const(2, I32)) == "splat (i32 2)"


def test_uniform_operands_give_the_same_answers():
    def f(x, y):
        return fma(x, y * y, select(y < 1.0, y, x)) + convert(convert(y, I32), F32)

    x, y = samples(F32, 1)[:64], np.full(64, 0.75, np.float32)
    plain, uniform = native(f, [F32, F32], 8), native(f, [F32, F32], 8, uniform=[1])
    same(uniform(x, y), plain(x, y))
    for instruction in ("fptosi", "fmul"):  # of y alone
        assert f"{instruction} <8 x" in plain.text and f"{instruction} <8 x" not in uniform.text


def test_equal_expressions_are_emitted_once():
    e, lines = emitted(x=False)
    e.emit((var("x", F32) + 1.0) * (var("x", F32) + 1.0))
    assert len(lines) == 2


def test_deep_and_shared_expressions():
    x = var("x", I32)
    chain = x
    for k in range(10_000):
        chain = binary("xor", chain + k, chain)
    e, lines = emitted(x=False)
    e.emit(chain)
    assert len(lines) == 20_000

    doubled = x
    for _ in range(200):  # 2**200 paths
        doubled = doubled + doubled
    same(native(lambda v: binary("xor", v, v) + 1, [I32], 8)(np.ones(8)), np.ones(8, np.int32))
    e, lines = emitted(x=False)
    e.emit(doubled)
    assert len(lines) == 200


def test_unbound_names_and_unknown_leaves_are_errors():
    e, _ = emitted()
    with pytest.raises(TypeError, match="has no value here"):
        e.emit(var("nobody", F32) + 1.0)
    with pytest.raises(TypeError, match="gives no value"):
        e.emit(Expr("load", (), F32, "somewhere"))


def collatz(n):
    """(steps to 1, largest value on the way)."""
    v, steps, top = loop(
        [n, const(0, I64), n],
        lambda v, steps, top: v > 1,
        lambda v, steps, top: [
            select(eq(v & 1, 0), binary("ashr", v, 1), v * 3 + 1),
            steps + 1,
            binary("max", top, v),
        ],
    )
    return steps * 1000 + binary("max", top, v)


def collatz_model(n):
    out = []
    for v in n.tolist():
        steps, top = 0, v
        while v > 1:
            top = max(top, v)
            v = v // 2 if v % 2 == 0 else 3 * v + 1
            steps += 1
        out.append(steps * 1000 + max(top, v))
    return np.array(out)


@pytest.mark.parametrize("width", [1, 2, 8])
def test_loops_diverge(width):
    n = np.arange(-3, 200)
    same(native(collatz, [I64], width)(n), collatz_model(n))


def powers(x, n, rare=False):
    """x**n by n multiplications; the count is a loop within a loop, doubled."""

    def body(i, acc):
        _, twice = loop(
            [const(0, I64), acc], lambda j, a: j < 2, lambda j, a: [j + 1, a * x + convert(i, F64)]
        )
        return [i + 1, twice]

    return loop([const(0, I64), x], lambda i, acc: i < n, body, rare=rare)[1]


def powers_model(x, n):
    out = x.copy()
    for k in range(x.size):
        for i in range(n[k]):
            for _ in range(2):
                out[k] = out[k] * x[k] + i
    return out


@pytest.mark.parametrize("rare", [False, True])
@pytest.mark.parametrize("width", [1, 4, 8])
def test_nested_loops(width, rare):
    x = np.linspace(-1.2, 1.2, 64)
    n = np.arange(64) % 7
    want = powers_model(x, n)
    same(native(lambda a, b: powers(a, b, rare), [F64, I64], width)(x, n), want)
    once = native(lambda a, b: powers(a, b, rare), [F64, I64], width, uniform=[1])
    same(once(x, np.full(64, 5)), powers_model(x, np.full(64, 5)))
    both = native(lambda a, b: powers(a, b, rare), [F64, I64], width, uniform=[0, 1])
    same(both(np.full(64, 0.9), np.full(64, 5)), powers_model(np.full(64, 0.9), np.full(64, 5)))


def test_uniform_loops_stay_scalar():
    f = native(lambda x, n: powers(x, n), [F64, I64], 8, uniform=[1])
    heads = [line for line in f.text.splitlines() if "phi i64" in line or "phi <8 x i64>" in line]
    assert len(heads) == 3 and not any("<8 x" in line for line in heads)
    assert "select <8 x i1>" not in f.text  # no lane waits for another


def test_values_of_a_loop_body_are_not_used_after_it():
    def f(x):
        def body(i, a):
            return [i + 1, a + x * x]  # x * x is invariant, i * i is not

        i, a = loop([const(0.0, F64), x], lambda i, a: i < a * 0.0 + 3.0, body)
        return a + x * x + (i + 1) * (i + 1)

    x = np.linspace(0, 1, 16)
    for width in (1, 8):
        same(native(f, [F64], width)(x), x + x * x + x * x + x * x + x * x + 16)


@pytest.mark.parametrize("rare", [False, True])
def test_a_shared_loop_is_emitted_where_it_is_needed(rare):
    """The same loop node inside another loop's body and after that loop."""

    def f(n):
        inner = loop(
            [n, const(0, I64)], lambda v, c: v > 0, lambda v, c: [v - 3, c + 1], rare=rare
        )[1]
        outer = loop([n, const(0, I64)], lambda v, c: v > 0, lambda v, c: [v - 1, c + inner])[1]
        return outer * 100 + inner

    n = np.arange(32)
    inner = (n + 2) // 3
    for width in (1, 8):
        same(native(f, [I64], width)(n), n * inner * 100 + inner)


def test_loop_checks_its_body():
    with pytest.raises(TypeError, match="one value per carry"):
        loop([const(0, I64)], lambda i: i < 3, lambda i: [convert(i, F64)])


def test_rare_loops_without_lanes_in_need_run_nothing():
    def f(x):
        return loop(
            [x < 0.0, x],
            lambda pending, v: pending,
            lambda pending, v: [const(False, BOOL), unary("sqrt", -v)],
            rare=True,
        )[1]

    x = np.linspace(-4, 4, 48)
    for width in (1, 8):
        g = native(f, [F64], width)
        assert "branch_weights" in g.text
        with np.errstate(all="ignore"):
            same(g(x), np.where(x < 0, np.sqrt(-x), x))


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
@settings(max_examples=40)
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


# Other targets: LLVM ends the process on what it cannot select, so a child compiles.

CHILD = r"""
    import sys
    sys.path.insert(0, {tests!r})
    from native import AVX2, array_function_text
    from test_scalars import ARITHMETIC, BOOL, F32, F64, FLOATS, I32, I64, INTS, PRIMITIVES, Expr
    from jitney.codegen.scalar import convert, scale2, table
    from jitney.codegen.target import Target
    from jitney.ir.record import replace
    from jitney.runtime.engine import engine_for, host_target
    {target}
    engine = engine_for(target)
    functions = []
    for op, (dtypes, _, _) in ARITHMETIC.items():
        for d in dtypes:
            functions.append((lambda *xs, op=op, d=d: Expr(op, xs, d), [d] * PRIMITIVES[op][0]))
    for a in [BOOL, *INTS, *FLOATS]:
        for b in [BOOL, *INTS, *FLOATS]:
            functions.append((lambda x, b=b: convert(x, b), [a]))
    for d in FLOATS:
        functions.append((scale2, [d, I32]))
        functions.append((lambda x, n: scale2(x, n, near_one=True), [d, I32]))
        functions.append((lambda i, d=d: table([1, 2, 3], d, i), [I64]))
    declarations, bodies = set(), []
    for f, dtypes in functions:
        for width in (1, target.lanes(max(4, dtypes[0].itemsize))):
            text, _ = array_function_text(f, dtypes, width, target)
            text = text.replace("@f(", f"@f{{len(bodies)}}(").replace("@table", f"@t{{len(bodies)}}_")
            lines = text.splitlines()
            declarations.update(line for line in lines if line.startswith("declare"))
            bodies.append("\n".join(line for line in lines if not line.startswith("declare")))
    obj = engine.emit_object("\n".join([*sorted(declarations), *bodies]))
    print("compiled", len(bodies), len(obj))
"""
TARGETS = {
    "avx2": "target = replace(host_target(), cpu='haswell', features=AVX2, vector_bits=256)",
    "sse2": "target = replace(host_target(), cpu='x86-64', features='', vector_bits=128)",
    "neon": "target = Target('aarch64-unknown-linux-gnu', 'generic', '+neon', 128)",
}


@pytest.mark.parametrize("name", TARGETS)
def test_every_primitive_compiles_for(name):
    if name != "neon" and "x86_64" not in host_target().triple:
        pytest.skip("an x86-64 target")
    code = textwrap.dedent(CHILD).format(tests=__file__.rpartition("/")[0], target=TARGETS[name])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout.startswith("compiled"), done.stderr[-2000:]


@pytest.mark.skipif(not has_avx2(), reason="runs AVX2 code")
@pytest.mark.parametrize("op", ["div", "rem", "mulhi", "mul", "ctpop", "cttz", "min", "abs", "shl"])
def test_avx2_code_gives_the_same_answers(op):
    dtypes, model, legal = ARITHMETIC[op]
    target = avx2_target()
    for dtype in dtypes:
        arrays = [samples(dtype, seed) for seed in range(PRIMITIVES[op][0])]
        arrays = list(legal(*arrays)) if legal else arrays
        width = target.lanes(max(4, dtype.itemsize))
        f = native(lambda *xs, d=dtype: Expr(op, xs, d), [dtype] * len(arrays), width, target)
        same(f(*arrays), quiet(model)(*arrays))


@pytest.mark.skipif(not has_avx2(), reason="runs AVX2 code")
def test_avx2_conversions_give_the_same_answers():
    target = avx2_target()
    for source, dtype in itertools.product(NUMBERS, FLOATS + [I32, I64, U32, U64]):
        a = samples(source, 5)
        want = quiet(lambda v: v)(a).astype(dtype) if source.kind != "f" else None
        if want is None:
            with np.errstate(all="ignore"):
                want = a.astype(dtype) if dtype.kind == "f" else to_integer_model(a, dtype)
        width = target.lanes(max(4, source.itemsize, dtype.itemsize))
        same(native(lambda x, d=dtype: convert(x, d), [source], width, target)(a), want)


def test_text_is_the_same_every_time():
    texts = {array_function_text(collatz, [I64], 8, host_target())[0] for _ in range(3)}
    assert len(texts) == 1
