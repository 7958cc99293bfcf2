"""Programs over floats of 16 and 8 bits: compiled code against the interpreter, NumPy and ml_dtypes."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from graphs import random_graphs
from hypothesis import given, settings
from support import check
from test_codegen import compiled

import jitney as jt
from jitney.codegen.program.compile import compile_graph
from jitney.ir.interpreter import evaluate
from jitney.ir.passes import optimise, storable
from jitney.ir.types import BASIC, DTYPE_NAMES, F32, dtype_name, is_extended, is_float, is_small
from jitney.runtime.executable import Executable
from jitney.runtime.native.host import host_target

SMALL = [d for d in DTYPE_NAMES.values() if is_small(d)]
SOME = [DTYPE_NAMES[n] for n in ("f16", "bf16", "f8e4m3fn", "f8e5m2")]
rng = np.random.default_rng(3)
X = rng.uniform(-2, 2, (7, 33)).astype(F32)


def same_bits(got: np.ndarray, want: np.ndarray, what: str = "") -> None:
    """The same dtype and numbers, signs of zeros included; NaN where there is NaN."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype and got.shape == want.shape, what
    if is_float(want.dtype):
        got, want = got.astype(np.float64), want.astype(np.float64)
        keep = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got[keep]), np.signbit(want[keep]), what)
    np.testing.assert_array_equal(got, want, what)


@settings(max_examples=30, deadline=None)
@given(random_graphs(max_ops=25, exact=True, pool=[*SMALL, *list(BASIC.values())[:6], F32]))
def test_random_graphs_have_the_interpreters_bits(case) -> None:
    """As they stand, and optimised as what they become."""
    graph, arrays = case
    want = [w for w in evaluate(graph, arrays) if w is not None]
    signature = graph.input_types, graph.output_types
    module = compile_graph(optimise(storable(graph)), host_target(), signature=signature)
    results = [*compiled(graph).run(arrays), *Executable(module, host_target()).run(arrays)]
    for got, w in zip(results, want + want, strict=True):
        assert got.dtype == w.dtype
        if is_float(w.dtype):  # the largest of 0 and -0 may be either
            got, w = got.astype(np.float64), w.astype(np.float64)
        np.testing.assert_array_equal(got, w)


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def heat(u):
    for _ in range(3):
        u[1:-1] += (u[2:] - 2 * u[1:-1] + u[:-2]) * 0.25
    return u


PROGRAMS = {
    "arithmetic": lambda x: (x * x + x / 3 - 1) % 0.75,
    "functions": lambda x: np.tanh(x) + np.exp(-x) * np.log1p(abs(x)) - np.sqrt(abs(x)),
    "rounding": lambda x: np.floor(x * 4) + np.rint(x * 3) + np.trunc(x),
    "comparisons": lambda x: np.where((x > 0.5) | (x == x.max()), x, -x),
    "softmax": softmax,
    "moments": lambda x: (x.mean(axis=0), x.std(axis=1), x.var(), x.sum(axis=1), np.prod(x[:, :5])),
    "extremes": lambda x: (x.max(axis=0), x.argmin(axis=1), np.ptp(x), x.clip(-1, 0.5)),
    "products": lambda x: (x @ x.T, x[0] @ x[1], np.einsum("ij,ik->jk", x, x)),
    "sorting": lambda x: (np.sort(x, axis=1), np.argsort(x, axis=0, kind="stable"), np.median(x)),
    "movement": lambda x: np.concatenate([x[::2, ::-1], np.pad(x[1:4], ((0, 1), (0, 0)))]).T,
    "indexing": lambda x: (
        x[np.array([2, 0, -1])],
        x[:, [3]],
        np.take_along_axis(x, X.argsort(1), 1),
    ),
    "in place": heat,
    "casts": lambda x: (
        x.astype(np.int8),
        x.astype(np.float64),
        (x > 0).astype(x.dtype),
        x.astype("f4") * 2,
    ),
    "steps": lambda x: (
        np.nextafter(x, x * 0 + 9),
        np.frexp(x),
        np.copysign(x, -x[::-1]),
        np.signbit(x),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_float16_as_numpy(name: str) -> None:
    check(PROGRAMS[name], X.astype(np.float16), backend="native")


@pytest.mark.parametrize("dtype", SOME[1:], ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_have_the_interpreters_results(name: str, dtype: np.dtype) -> None:
    x = X.astype(dtype)
    got = jt.tree.leaves(jt.jit(PROGRAMS[name])(x.copy()))
    want = jt.tree.leaves(jt.jit(PROGRAMS[name], backend="interpreter")(x.copy()))
    step = float(jt.finfo(dtype).eps)
    for g, w in zip(got, want, strict=True):
        assert g.dtype == w.dtype and g.shape == w.shape
        g, w = np.asarray(g).astype(np.float64), np.asarray(w).astype(np.float64)
        np.testing.assert_allclose(g, w, rtol=2 * step, atol=2 * step * np.max(np.abs(w)))


@pytest.mark.parametrize("dtype", SMALL, ids=str)
def test_arithmetic_is_that_of_ml_dtypes(dtype: np.dtype) -> None:
    binary = (np.add, np.subtract, np.multiply, np.divide, np.maximum, np.fmin, np.less, np.equal)
    unary = (np.negative, np.absolute, np.sqrt, np.floor, np.rint, np.isnan, np.square)

    def all_of_them(x: Any, y: Any) -> Any:
        return [f(x, y) for f in binary] + [f(x) for f in unary]

    x, y = X.astype(dtype), X[::-1].astype(dtype)
    with np.errstate(invalid="ignore"):
        found, wanted = jt.jit(all_of_them)(x, y), all_of_them(x, y)
    for f, got, want in zip(binary + unary, found, wanted, strict=True):
        same_bits(got, want, f.__name__)


@pytest.mark.parametrize("dtype", SMALL, ids=str)
def test_casts_between_all_dtypes(dtype: np.dtype) -> None:
    others = [other for other in DTYPE_NAMES.values() if other.kind != "c"]
    large = [other for other in others if other not in SMALL]  # small ones have tests of their own

    @jt.jit
    def to_and_from(x: Any, *ys: Any) -> Any:
        return [x.astype(other) for other in others], [y.astype(dtype) for y in ys]

    x, ys = (X * 3).astype(dtype), [(X * 3).astype(other) for other in large]
    to, back = to_and_from(x, *ys)
    with np.errstate(all="ignore"):
        for other, found in zip(others, to, strict=True):
            same_bits(found, x.astype(F32).astype(other), f"to {other}")
        for other, y, found in zip(large, ys, back, strict=True):
            same_bits(found, y.astype(dtype), f"from {other}")


def test_sums_and_products_are_rounded_once() -> None:
    for dtype in SOME[:2]:
        ones = np.ones(5000, dtype)
        assert float(jt.jit(np.sum)(ones)) == float(dtype.type(5000))
        assert float(jt.jit(lambda x: x @ x)(ones)) == float(dtype.type(5000))
        assert float(jt.jit(np.mean)(ones)) == 1.0
        exact = X.astype(dtype)
        product = jt.jit(lambda x: np.matmul(x, x.T, dtype=np.float32))(exact)
        np.testing.assert_allclose(product, exact.astype(F32) @ exact.astype(F32).T, rtol=1e-5)
        large = np.full(100_000, 3, dtype)  # whose sum no half can hold
        assert float(jt.jit(np.mean)(large)) == 3.0 and float(jt.jit(np.std)(large)) == 0.0
        total = jt.jit(lambda x, i: jt.at(x[:1] * 0)[i].add(x))(ones, np.zeros(5000, int))
        assert float(total[0]) == float(dtype.type(5000))


def test_promotion() -> None:
    def result(x, y):
        return jt.jit(lambda x, y: x + y)(x, y).dtype

    half, brain, eight = (np.ones(2, d) for d in SOME[:3])
    assert result(half, brain) == result(brain, eight) == result(eight, half) == F32
    for other in (np.int8, np.uint8, np.bool_):
        assert result(brain, np.ones(2, other)) == (brain + np.ones(2, other)).dtype == brain.dtype
    for other in (np.int16, np.int32, np.int64, np.float32, np.float64, np.complex64):
        assert result(brain, np.ones(2, other)) == (brain + np.ones(2, other)).dtype
    for x in (half, brain, eight):
        for number in (2, 2.5, True):
            assert jt.jit(lambda x, n=number: n * x)(x).dtype == x.dtype
            assert jt.jit(lambda x, n: np.where(x > 0, x, n))(x, number).dtype == x.dtype
        assert jt.jit(lambda x: x + 1j)(x).dtype == np.complex64
        assert jt.jit(lambda x: np.concatenate([x, x.astype(np.float64)]))(x).dtype == np.float64
        assert jt.jit(lambda x: x @ x)(x).dtype == x.dtype


@pytest.mark.parametrize("dtype", SOME[:2], ids=str)
def test_gradients_are_those_of_float32_rounded(dtype: np.dtype) -> None:
    w = rng.uniform(-1, 1, (33, 5)).astype(F32)

    def loss(w, x):
        return -np.log(softmax(np.tanh(x @ w))[:, 0]).mean()

    exact = jt.jit(jt.grad(loss))(w, X)
    for f in (jt.grad(loss), jt.jit(jt.grad(loss))):
        got = f(w.astype(dtype), X.astype(dtype))
        assert got.dtype == dtype
        scale = float(np.max(np.abs(exact)))
        step = float(jt.finfo(dtype).eps)
        np.testing.assert_allclose(got.astype(F32), exact, rtol=0, atol=12 * step * scale)
    jt.check_grads(lambda x: np.sum(np.sin(x) * x, axis=0), (X[:2, :3].astype(dtype),), order=2)


@pytest.mark.parametrize("dtype", SOME, ids=str)
def test_loops_carry_them(dtype: np.dtype) -> None:
    x = X[0].astype(dtype)
    two = dtype.type(2)

    def scanned(x):
        return jt.scan(lambda c, a: (c * 0.5 + a, c > a), dtype.type(0), x)

    def counted(x):
        return jt.while_loop(lambda c: c[0] < 20, lambda c: (c[0] * two, c[1] * 0.5), (two, x))

    def by_lane(x):
        return jt.vmap(lambda a: jt.while_loop(lambda c: c < 3, lambda c: c + 1, a))(x)

    def summed(x):
        return jt.fori_loop(0, 9, lambda i, c: c + x[i], dtype.type(0))

    for f in (scanned, counted, by_lane, summed):
        got, want = (jt.tree.leaves(jt.jit(f, backend=b)(x)) for b in ("native", "interpreter"))
        for g, w in zip(got, want, strict=True):
            same_bits(g, w)
    if is_extended(dtype) and dtype.itemsize == 1:
        return
    grad = jt.jit(jt.grad(lambda x: scanned(x)[0]))(x)
    assert grad.dtype == dtype and float(grad[-1]) == 1.0 and float(grad[-2]) == 0.5


@pytest.mark.parametrize("dtype", SOME, ids=str)
def test_calls(dtype: np.dtype) -> None:
    """Scalars, other layouts, results without elements, callbacks, captured arrays, donation."""
    x = X.astype(dtype)
    scalar = dtype.type(2)
    f = jt.jit(lambda x, s: x * s)
    same_bits(f(x, scalar), x * scalar)
    for value in (0.5, -3, np.inf, 1.75):  # the first call has left a program that takes scalars
        with np.errstate(all="ignore"):
            same_bits(f(x, dtype.type(value)), x * dtype.type(value))
    assert f.cache_info().misses == 1
    for view in (x[::2], x[:, ::-1], x.T, np.asfortranarray(x), x[:0], x[0, 0:1].reshape(())):
        same_bits(f(view, scalar), np.asarray(view) * scalar)
    frozen = x.copy()
    frozen.setflags(write=False)
    same_bits(f(frozen, scalar), frozen * scalar)
    total = jt.jit(lambda x: x.max())(x)
    assert type(total) is dtype.type and total == np.max(x.astype(F32))
    same_bits(jt.jit(lambda a: a + x)(x), x + x)
    spec = jt.ShapeDtype(x.shape, dtype)
    doubled = jt.jit(lambda a: jt.pure_callback(lambda v: v + v, spec, a) + a)(x)
    same_bits(doubled, (x + x) + x)
    seen: list[np.ndarray] = []
    jt.jit(lambda a: jt.debug_callback(seen.append, a))(x) if hasattr(
        jt, "debug_callback"
    ) else None
    assert all(v.dtype == dtype for v in seen)
    y = x.copy()
    same_bits(jt.jit(lambda a: a + 1, donate_argnums=0)(y), jt.jit(lambda a: a + 1)(x))


def test_finfo_and_names() -> None:
    for dtype in SMALL:
        if is_extended(dtype):
            assert getattr(jt, dtype.name) is dtype.type
            assert jt.finfo(dtype).max == ml_dtypes.finfo(dtype).max
        assert jt.finfo(np.ones(2, dtype)).bits == 8 * dtype.itemsize
    assert jt.finfo(jt.float16).eps == np.finfo(np.float16).eps
    assert jt.finfo(np.float64) is np.finfo(np.float64) and jt.finfo(1.0).bits == 64
    assert jt.finfo("float32").bits == 32
    with pytest.raises(ValueError, match="not inexact"):
        jt.finfo(np.int32)


@pytest.mark.parametrize("dtype", SMALL, ids=str)
def test_text_and_pickles(dtype: np.dtype) -> None:
    graph = jt.jit(lambda x: x * 2 + np.ones(3, dtype)).trace(np.ones(3, dtype))
    text = str(graph)
    assert f"{dtype_name(dtype)}[3]" in text
    assert str(jt.parse_graph(text)) == text
    assert pickle.loads(pickle.dumps(dtype)) == dtype


def test_moving_and_rounding_back_is_no_arithmetic() -> None:
    x = X.astype(np.float16)
    graph = jt.jit(lambda x: (x.astype(np.float32).astype(np.float16), x.T[::-1], x[3])).trace(x)
    names = {op.name for op in optimise(storable(graph)).ops}
    assert names.isdisjoint({"widen", "narrow", "convert"})


@pytest.mark.parametrize("dtype", SOME, ids=str)
def test_conversions_are_vectors(dtype: np.dtype) -> None:
    """No element by itself, no call, and no constant beside the loop that is not a register's."""
    target = host_target()
    if "x86_64" not in target.triple or not target.has("f16c"):
        pytest.skip("reads x86 assembly")
    x = np.ones(1 << 16, dtype)
    text = jt.jit(lambda x: x * x + x).lower(x).asm()
    kernel = text[text.index("widen") : text.index("retq")]
    loop = kernel[kernel.rindex(":\n", 0, kernel.rindex("jl")) :]
    register = "%zmm" if target.vector_bits == 512 else "%ymm"
    assert loop.count(register) > 4 and "call" not in kernel
    assert ("vcvtph2ps" in loop) == ("vcvtps2ph" in loop) == (dtype == np.float16)
    for scalar in ("cvtsi2ss", "vmulss", "vpextr", "vpinsr"):
        assert scalar not in loop


WITHOUT = """
import sys
import numpy as np, jitney as jt
f = jt.jit(lambda x: np.sin(x).sum() + x.astype(np.float16).sum())
f(np.arange(5.0)), jt.grad(f)(np.arange(5.0)), jt.finfo(np.float16)
assert "ml_dtypes" not in sys.modules
g = jt.jit(lambda x: x * 2.5)
print(g(np.arange(3).astype(jt.bfloat16)))
"""


def test_ml_dtypes_waits_and_the_disk_remembers(tmp_path) -> None:
    from os import environ
    from pathlib import Path

    env = {**environ, "JITNEY_CACHE_DIR": str(tmp_path), "JITNEY_CACHE": "1"}
    env["PYTHONPATH"] = str(Path(jt.__file__).resolve().parents[1])
    for _ in range(2):
        ran = subprocess.run(
            [sys.executable, "-c", WITHOUT], env=env, capture_output=True, text=True
        )
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout.split() == ["[0", "2.5", "5]"]
