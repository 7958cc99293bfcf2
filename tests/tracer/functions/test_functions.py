"""Every array function against NumPy: one expression per case, evaluated in NumPy and in jitney."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from support import check, check_raises, run

import jitney as jt
from jitney.ir.types import BASIC
from jitney.tracer.arrays.table import BY_NUMPY, FUNCTIONS
from jitney.tracer.functions.public import public_names

_random = np.random.default_rng(7)
_x = _random.normal(size=(3, 4))
_i = _random.integers(-9, 9, (3, 4))
_nan = _x.copy()
_nan[0, 1] = np.nan
DATA: dict[str, Any] = {
    "x": _x,
    "f": _x.astype(np.float32),
    "i": _i,
    "i8": _i.astype(np.int8),
    "u8": _i.astype(np.uint8),
    "b": _x > 0,
    "xn": _nan,
    "v": _random.normal(size=4),
    "w": np.sort(_random.normal(size=4)),
    "m": _random.normal(size=(4, 5)),
    "s": _random.normal(size=(3, 3)),
    "t": _random.normal(size=(2, 3, 4)),
    "k": _random.integers(0, 4, (3, 4)),
    "long": _random.normal(size=30),
    "mid": _random.normal(size=20),
    "z": np.zeros((0, 3)),
    "o": np.array(2.5),
}

REDUCTIONS = """
sum prod max min mean std var any all argmax argmin median count_nonzero average
nansum nanprod nanmax nanmin nanmean nanstd nanvar nanargmax nanargmin
"""

CASES = """
np.sum(x, axis=1, where=x > 0, initial=3)
np.sum(b, dtype=np.int32)
np.sum(b, dtype=bool)
np.sum(i8, dtype=np.int8)
np.max(x, axis=1, where=x > 0, initial=-3)
np.min(i, initial=-100)
np.mean(x, where=x > 0)
np.mean(i, dtype=np.float32)
np.var(x, axis=0, ddof=1, where=x > -1)
np.std(f, axis=1, correction=1, keepdims=True)
np.var(x, mean=np.mean(x, axis=1, keepdims=True), axis=1)
(np.sum(z), np.sum(z, axis=0), np.prod(z, axis=1), np.mean(z, axis=0), np.any(z, axis=0))
(np.max(z, axis=1), np.max(z, axis=0, initial=1.0), np.argmax(z, axis=1), np.sort(z, axis=0))
(np.sum(o), np.max(o), np.mean(o), np.argmax(o), np.cumsum(o), np.all(o))
(np.nanmax(xn, axis=1), np.nanmean(xn, axis=1), np.nansum(xn), np.nanvar(xn, axis=0))
(np.max(xn), np.min(xn, axis=1), np.argmax(xn, axis=1), np.median(xn, axis=1))
(np.nancumsum(xn, axis=0), np.nancumprod(xn))
(np.ptp(x), np.ptp(i, axis=1))
np.average(x, axis=1, weights=[1.0, 2, 3, 4])
np.average(i, weights=k + 1)
np.average(f, axis=0, weights=np.abs(f), returned=True)
(x.sum(0), x.mean(axis=(0, 1)), x.std(1, ddof=1), x.argmin(), x.prod(1), x.any(), i.all(0))
(x.sum(axis=0, keepdims=True), f.max(1), f.min(), i.cumsum(), i.cumprod(1))
jt.logsumexp(x, axis=1)
jt.logsumexp(f, keepdims=True)
jt.logsumexp(t, axis=(0, 2))
jt.erf(x)
jt.erf(i)
np.reshape(x, (4, 3))
np.reshape(x, (2, -1), order="F")
(x.reshape(2, 6), x.reshape((-1,)), x.ravel(), x.flatten(), x.T.ravel(), x.T.reshape(-1))
(x.T, t.T, t.mT, t.transpose(1, 0, 2), t.transpose(), np.transpose(t, (2, 0, 1)))
(np.swapaxes(t, 0, 2), np.moveaxis(t, 0, -1), np.moveaxis(t, [0, 1], [2, 0]), np.rollaxis(t, 2))
(np.permute_dims(t, (1, 2, 0)), np.matrix_transpose(t))
(np.broadcast_to(v, (3, 4)), np.broadcast_to(o, (2, 2)), np.broadcast_arrays(x, v))
(np.expand_dims(x, (0, 2)), np.squeeze(x[None, :, None]), np.squeeze(x[None], 0), x[None].squeeze())
(np.atleast_1d(o), np.atleast_2d(v), np.atleast_3d(x), np.atleast_2d(o, x))
(np.concatenate([x, f]), np.concatenate([x, i], axis=None), np.concatenate((x, x), 1))
np.concatenate([f, i8], dtype=np.float64)
(np.stack([x, f], axis=1), np.stack([v, v], -1), np.vstack([x, v]), np.hstack([x, x]))
(np.hstack([v, v]), np.dstack([x, x]), np.column_stack([v, v, m]), np.append(v, [1.0, 2.0]))
np.block([[x, x], [x, x]])
np.block([v, v])
(np.array_split(x, 3, axis=1), np.split(x, [1, 3], axis=1), np.hsplit(x, 2), np.vsplit(x, 3))
(np.unstack(x), np.unstack(x, axis=1), np.split(v, 2), np.dsplit(t, 2))
(np.tile(x, 2), np.tile(x, (2, 1, 3)), np.tile(v, (2, 2)), np.tile(o, 3))
(np.repeat(x, 3), np.repeat(x, [1, 0, 2], axis=0), x.repeat(2, axis=1), np.repeat(x, [2], 0))
(np.resize(x, (5, 3)), np.resize(v, 2))
np.pad(x, 1, constant_values=5)
np.pad(x, ((1, 1), (2, 2)), constant_values=((1, 2), (3, 4)))
np.pad(x, ((1, 1), (2, 2)), constant_values=(1, 2))
np.pad(x, {1: (1, 2)})
np.pad(i8, 2)
(np.flip(x), np.flip(x, 1), np.flip(t, (0, 2)), np.fliplr(x), np.flipud(x))
(np.rot90(x), np.rot90(x, 2), np.rot90(x, 3), np.rot90(t, 1, (1, 2)), np.rot90(x, 0))
(np.roll(x, 1), np.roll(x, (1, -2), (0, 1)), np.roll(x, 9, axis=1), np.roll(v, 0))
(np.diag(v), np.diag(v, 2), np.diag(v, -1), np.diag(x), np.diag(x, 1), np.diag(x, -1))
(np.diag(x, 9), np.diagflat(x), np.diagonal(t, 0, 1, 2), np.diagonal(t, 1, 2, 0), x.diagonal())
(np.trace(x), np.trace(x, 1), np.trace(t, axis1=1, axis2=2), np.trace(i8), x.trace())
(np.tril(x), np.triu(x, 1), np.tril(t, -1), np.triu(v), np.tril(b))
np.meshgrid(v, w[:3])
np.meshgrid(v, w[:3], indexing="ij", sparse=True)
(np.delete(x, 1, axis=1), np.delete(x, [0, 2], axis=0), np.delete(x, slice(1, 3), 1), np.delete(v, -1))
(np.insert(x, 1, 5, axis=1), np.insert(v, [0, 2], [5, 6]), np.insert(x, 1, [1.0, 2, 3], axis=1))
(np.insert(x, [1], v, axis=0), np.insert(v, 4, 9.0))
(x @ m, x @ v, v @ m, v @ v, t @ m, np.matmul(x[None], t.transpose(0, 2, 1)), v @ t.mT, t @ v)
(b @ b.T, i @ i.T.astype(np.int32), f @ m, i8 @ i8.T)
(np.dot(t, m), np.dot(t, 2.0), np.dot(m.T, t.mT), np.dot(o, x), x.dot(m), np.dot(v, v))
(np.inner(x, x), np.inner(v, v), np.outer(v, w), np.vdot(x, x), np.vecdot(x, x), np.matvec(x, v))
(np.tensordot(t, m, 1), np.tensordot(t, x[..., None], ([1, 2], [0, 1])), np.tensordot(v, w, 0))
np.tensordot(x, x, 2)
(np.kron(x, m), np.kron(v, x), np.kron(v, w))
(np.cross(s, s[::-1]), np.cross(s, s[0], axisa=0), np.cross(s, s, axisc=0))
(np.einsum("ij,jk", x, m), np.einsum("ij,jk->ki", x, m), np.einsum("ii", s), np.einsum("ii->i", s))
(np.einsum("ij->", x), np.einsum("ij->ji", x), np.einsum("...i,i", t, v), np.einsum("i...->...", t))
(np.einsum("bij,bkj->bik", t, t), np.einsum("i,j,k->kji", v, v, v), np.einsum("ij,ij->ij", x, x))
(np.einsum("ij,jk,kl,lm->im", x, m, m.T, x.T), np.einsum("iij->j", s[:, :, None] * s[:, None]))
np.einsum("ij,jk,kl,lm->im", x, m, m.T, x.T, optimize=True)
np.einsum("a,ab,abc->abc", v[:2], x[:2, :3], t)
(np.einsum("i...,i...->...", t, t), np.einsum("ab,cd->ac", x, x), np.einsum(" i j , j ", x, v))
np.einsum(x, [0, 1], m, [1, 2], [0, 2])
np.einsum("ij,ij->i", i8, i8)
np.einsum("ij,kj->ik", x[:, :1], x)
np.einsum("ij,ij", b, b)
(np.linalg.multi_dot([x, m, m.T, v]), np.linalg.multi_dot([v, m, m.T, v]))
(np.linalg.matrix_power(s, 5), np.linalg.matrix_power(s, 0), np.linalg.matrix_power(s, 1))
(np.linalg.norm(x), np.linalg.norm(v), np.linalg.norm(t), np.linalg.norm(x, axis=1))
(np.linalg.norm(v, 1), np.linalg.norm(v, 3), np.linalg.norm(v, 0), np.linalg.norm(v, np.inf))
(np.linalg.norm(x, 1), np.linalg.norm(x, -1), np.linalg.norm(x, np.inf), np.linalg.norm(x, "fro"))
(np.linalg.norm(t, axis=(0, 2)), np.linalg.norm(t, 1, axis=(2, 0), keepdims=True))
(np.linalg.norm(f, axis=0, keepdims=True), np.linalg.norm(i), np.linalg.vector_norm(x, ord=3))
np.linalg.matrix_norm(t)
(np.cov(x), np.cov(v), np.cov(x, ddof=0), np.corrcoef(x), np.cov(x, rowvar=False))
(np.cumsum(x), np.cumsum(x, axis=1), np.cumprod(i8, axis=0), np.cumsum(b), np.cumsum(u8))
np.cumulative_sum(x, axis=1, include_initial=True)
np.cumulative_prod(v)
(np.diff(x), np.diff(x, 2, axis=0, prepend=0.0), np.diff(b), np.diff(u8), np.diff(v, append=v))
(np.ediff1d(x), np.ediff1d(i, to_begin=9, to_end=[1, 2]))
(np.gradient(x), np.gradient(x, 2.0, axis=1, edge_order=2), np.gradient(v))
np.gradient(x, np.array([0.0, 1, 3, 7]), axis=1)
np.gradient(x, np.array([0.0, 1, 3, 7]), axis=1, edge_order=2)
(np.trapezoid(v, w), np.trapezoid(x, dx=0.5, axis=0), np.trapezoid(x, np.arange(3.0), axis=0))
(np.polyval(v, x), np.vander(v), np.vander(i[0], 3, increasing=True), np.unwrap(x * 9))
(np.sort(x), np.sort(x, axis=0), np.sort(x, axis=None), np.sort(xn), np.sort(i8), np.sort(b))
(np.argsort(x), np.argsort(i, axis=0, kind="stable"), np.argsort(xn), x.argsort(0))
np.lexsort((i[0], k[0]))
(np.median(x), np.median(x, axis=1), np.median(f), np.median(i, axis=(0, 1)), np.median(t, (0, 2)))
(np.quantile(x, 0.3, axis=1), np.quantile(f, [0.3, 0.9]), np.percentile(i, [[10, 50]], axis=0))
np.quantile(f, 0.3, keepdims=True)
(np.searchsorted(w, x), np.searchsorted(np.sort(i[0]), i, side="right"), w.searchsorted(0.1))
np.searchsorted(v, x, sorter=np.argsort(v))
(np.digitize(x, w), np.digitize(x, [0.0, 1, 2]), np.digitize(x, [2.0, 1, 0]))
np.digitize(np.array([2.0, 1, 0, 0.5]) + 0 * v, [2.0, 1, 0], right=True)
(np.interp(x, w, v), np.interp(x, w, v, left=-1, right=7), np.interp(x, v, w, period=3.0))
(np.histogram(x, 5), np.histogram(x, [-1.0, 0, 1]), np.histogram(i, 4, range=(-3, 3)))
np.histogram(x, 3, density=True)
(np.convolve(long, v), np.convolve(v, long, "same"), np.convolve(long, mid, "valid"))
(np.convolve(long, mid), np.convolve(long, mid, "same"), np.convolve(i[0], i[1]))
(np.correlate(long, v), np.correlate(v, long, "full"), np.correlate(v, long, "same"))
(np.correlate(long, v, "same"), np.correlate(long, mid, "full"), np.correlate(mid, long))
(np.clip(x, -0.5, 0.5), np.clip(x, None, v), i.clip(min=0), np.clip(u8, 3, 200), x.clip(0))
(np.round(x, 2), np.round(i * 10 + 5, -1), np.round(x * 100, -1), f.round(), np.around(x))
(np.where(b, x, f), np.where(b, f, 1.0), np.where(b, 1, i8), np.where(b, 1, 2), np.where(o, 1.0, x))
(np.select([x > 1, x > 0], [x, x * 2], -1), np.select([x > 1], [f]), np.choose(k, [x, f, i, k]))
np.choose(i, [x, f, i, k], mode="wrap")
np.piecewise(x, [x > 0, x < -1], [lambda a: a * 2, 3.0, lambda a: -a])
(np.isclose(xn, xn + 1e-9, equal_nan=True), np.isclose(x, x + 1), np.allclose(x, x), np.isclose(i, i))
(np.array_equal(x, x), np.array_equal(x, v), np.array_equiv(x, x), np.array_equal(xn, xn, True))
(np.nan_to_num(xn), np.nan_to_num(xn, nan=7.0), np.nan_to_num(np.log(f * 0), neginf=1))
(np.sinc(x), np.i0(x), np.angle(x), np.real(x), np.imag(x), x.real, np.isreal(x), np.fix(x))
(np.isposinf(x), np.isneginf(-np.exp(x * 999)), np.iscomplexobj(x), np.isrealobj(x))
(np.take(x, [0, 2], axis=1), np.take(x, k), np.take(x, i * 5, mode="wrap"), x.take(1, 0))
np.take(x, i, axis=1, mode="clip")
(np.take_along_axis(x, np.argsort(x), axis=1), np.take_along_axis(x, k[:1] % 3, 0))
(np.compress([True, False, True], x, axis=0), np.extract([True, False, True], v[:3]))
(np.isin(i, [1, 2, 3]), np.isin(i, k, invert=True), np.bincount([0, 1, 1, 3], weights=v))
(np.zeros_like(f), np.ones_like(i, dtype=np.float32), np.full_like(x, 3), np.empty_like(x).shape)
(np.shape(x), np.ndim(x), np.size(x), np.size(x, 0), f.astype(np.result_type(f, i)))
(jt.zeros((2, 3)) + o, jt.ones(4, dtype=np.int8) * i8, jt.full((2, 2), x[0, 0]), jt.full(2, 7))
(jt.arange(4) * f, jt.arange(2, 20, 3), jt.arange(0.0, 1, 0.1), jt.arange(5, dtype=np.float32))
(jt.arange(9, 0, -2), jt.arange(3.0), jt.arange(0), jt.arange(1, 2.5, 0.5), jt.arange(2000.0) + o)
(jt.linspace(0, 1, 4) * f, jt.linspace(x[0, 0], x[0, 1], 7), jt.linspace(0, o, 5, endpoint=False))
(jt.linspace(x[0], x[1], 7, axis=1), jt.linspace(0, 1, 2000) * o, jt.linspace(0, 10, 5, dtype=int))
jt.linspace(o, 3, 5, retstep=True)
(jt.eye(4, k=1) @ x.T, jt.identity(3), jt.tri(3, 4), jt.tri(3, 4, -1), jt.indices((3, 4)) * x)
(jt.array([x[0, 0], x[1, 1], 1.0]), jt.array([[f[0, 0], 1], [2, 3]]))
(jt.asarray(x), jt.array(x, ndmin=3))
(jt.logspace(x[0, 0], 1, 5), jt.geomspace(np.abs(x[0, 0]), 9, 5), jt.geomspace(1, 1000, 4) + o)
(np.add.reduce(x), np.add.reduce(x, axis=None), np.add.accumulate(x, axis=1), np.multiply.reduce(i))
(np.maximum.accumulate(i, axis=1), np.maximum.reduce(i, axis=None), np.minimum.accumulate(x))
(np.multiply.outer(v, v), np.subtract.outer(v, x), np.logical_and.reduce(b, axis=1))
(np.bitwise_xor.reduce(i, axis=1), np.bitwise_or.accumulate(i, axis=1), np.gcd.reduce(i, axis=1))
(np.logaddexp.reduce(x), np.logical_xor.reduce(b, axis=1), np.logical_and.accumulate(b, axis=1))
(np.bitwise_and.reduce(i, axis=0, keepdims=True), np.hypot.reduce(x, axis=1), np.fmax.reduce(xn))
(jt.add.reduce(x), jt.add.outer(v, w), jt.maximum.accumulate(x), jt.multiply.reduce(x, axis=1))
(x.astype(np.float32), x.copy(), i.astype(bool), x.item(0) * 2, o.item() * 2, v.tolist())
(jt.dynamic_slice(x, (k[0, 0], 1), (2, 2)), jt.dynamic_update_slice(x, s[:2, :2], (k[1, 1], -2)))
jt.dynamic_slice(x, [9, -3], (2, 2))
(len(x), [r * 2 for r in x], divmod(x, 0.7), -x, abs(x), +x, ~b, ~i)
(x > 0) & (i < 3) | b ^ True
(1 - x, 2 / x, 7 // i, 3**x, 2 << np.abs(i), i >> 1, i % 4, 2.0 % x, np.array([1.0, 2, 3, 4]) * x)
"""


def arguments(text: str) -> list[str]:
    names = compile(text, "case", "eval").co_names
    return [n for n in dict.fromkeys(names) if n in DATA]


@pytest.mark.parametrize("case", CASES.strip().splitlines())
def test_expression(case: str) -> None:
    names = arguments(case)
    f = eval(f"lambda {', '.join(names)}: {case}", {"np": np, "jt": jt})
    check(f, *(DATA[n] for n in names))


@pytest.mark.parametrize("name", REDUCTIONS.split())
def test_reduction_over_axes_and_dtypes(name: str) -> None:
    f = getattr(np, name)
    one_axis = name.endswith(("argmax", "argmin"))
    for key in ("x", "f", "i", "i8", "u8", "b", "t"):
        a = DATA[key]
        for axis in [None, 0, -1] if one_axis else [None, 0, -1, (0, 1), ()]:
            if axis == () and name in ("median",):
                continue
            check(lambda a, axis=axis: f(a, axis=axis), a)
            check(lambda a, axis=axis: f(a, axis=axis, keepdims=True), a)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap"])
def test_pad_modes(mode: str) -> None:
    check(lambda x: np.pad(x, ((1, 2), (2, 1)), mode=mode), DATA["x"])
    check(lambda v: np.pad(v, 7, mode=mode), DATA["v"])
    check(lambda v: np.pad(v, (0, 3), mode=mode), DATA["i"][0])


def test_functions_that_assign() -> None:
    def f(x, v):
        np.put_along_axis(x, np.array([[1], [0], [2]]), 9.0, axis=1)
        np.fill_diagonal(x, v[:3])
        np.put(v, [0, 2], [5.0, 6.0])
        np.copyto(x, 1.0, where=x > 1)
        np.putmask(v, v < 0, 3.0)
        x.sort(axis=0)
        v.fill(2)
        v.partition(1)

    check(f, DATA["x"], DATA["v"])

    def at(x, k):
        np.add.at(x, k, 1.5)
        np.maximum.at(x, (k[0], 0), 9.0)
        np.subtract.at(x, 0, 1.0)
        np.multiply.at(x, np.array([[0, 0], [1, 1]]), 2.0)

    check(at, DATA["x"], np.array([0, 0, 2]))


def test_at() -> None:
    def f(x, v, k):
        return (
            jt.at(x)[1].set(v),
            jt.at(x)[:, 1].add(1),
            jt.at(v)[k].add(1.0),
            jt.at(v)[k].multiply(2.0),
            jt.at(x)[x > 0].set(0),
            jt.at(x)[k[:3], 0].min(-1.0),
            jt.at(v)[::2].max(0.3),
            jt.at(x)[0].get(),
            x,
        )

    check(f, DATA["x"], DATA["v"], np.array([0, 2, 2, 0]))


NUMBERS = list(BASIC.values())
SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)


@st.composite
def arrays(draw: Any) -> np.ndarray[Any, Any]:
    dtype = draw(st.sampled_from(NUMBERS))
    shape = draw(SHAPES)
    if dtype.kind == "f":
        elements = st.integers(-80, 80).map(lambda n: n / 8)
        return draw(hnp.arrays(np.float64, shape, elements=elements)).astype(dtype)
    return draw(hnp.arrays(dtype, shape))


def agree(f: Any, *args: Any) -> None:
    """NumPy and jitney give the same, or both raise."""
    try:
        with np.errstate(all="ignore"):
            f(*args)
    except (TypeError, ValueError, IndexError):
        check_raises(f, *args)
        return
    check(f, *args)


@settings(max_examples=50)
@given(
    arrays(),
    st.sampled_from("sum prod max min mean var any all argmax argmin cumsum sort argsort".split()),
    st.one_of(st.none(), st.integers(-3, 2)),
    st.booleans(),
)
def test_reductions_of_any_shape_and_dtype(x: Any, name: str, axis: Any, keepdims: bool) -> None:
    f = getattr(np, name)
    options = {} if name in ("cumsum", "sort", "argsort") else {"keepdims": keepdims}
    if name == "argsort":
        options = {"kind": "stable"}
    agree(lambda x: f(x, axis=axis, **options), x)


@pytest.mark.parametrize("axis", [0, -1, None])
def test_argsort_takes_a_0d_array_for_one_element(axis: int | None) -> None:
    x = np.array(2.0)
    agree(lambda x: np.argsort(x, axis=axis), x)
    agree(lambda x: x.argsort(axis), x)
    agree(lambda x: np.argpartition(x, 0, axis), x)


@settings(max_examples=50)
@given(
    arrays(), arrays(), st.sampled_from(["matmul", "dot", "concatenate", "add", "where", "kron"])
)
def test_pairs_of_any_shape_and_dtype(x: Any, y: Any, name: str) -> None:
    f = {
        "concatenate": lambda x, y: np.concatenate([x, y]),
        "where": lambda x, y: np.where(x, x, y),
    }.get(name) or getattr(np, name)
    if name in ("matmul", "dot", "kron") and x.dtype.kind == "f" and y.dtype.kind in "biu":
        y = (y % 7).astype(y.dtype)
    agree(lambda x, y: f(x, y), x, y)


ERRORS = {
    "reshape": (lambda x: x.reshape(5, 3), "x", "size 12 into shape"),
    "axis": (lambda x: np.sum(x, axis=2), "x", "axis 2 is out of bounds"),
    "duplicate": (lambda x: np.sum(x, axis=(0, 0)), "x", "duplicate"),
    "matmul": (lambda x: x @ x, "x", "4 and 3"),
    "concat": (lambda x: np.concatenate([x, x.T]), "x", "must match"),
    "stack": (lambda x: np.stack([x, x.T]), "x", "same shape"),
    "empty max": (lambda z: np.max(z), "z", "no identity"),
    "empty argmax": (lambda z: np.argmax(z, axis=0), "z", "empty"),
    "squeeze": (lambda x: np.squeeze(x, 0), "x", "not equal to one"),
    "transpose": (lambda x: x.transpose(0), "x", "axes"),
    "split": (lambda x: np.split(x, 2), "x", "equal division"),
    "einsum": (lambda x: np.einsum("ij,jk", x, x), "x", "size 4 in one operand and 3"),
    "einsum diagonal": (lambda x: np.einsum("ii", x[:, :1]), "x", "have sizes 3 and 1"),
    "einsum rank": (lambda x: np.einsum("i", x), "x", "2 axes"),
    "broadcast": (lambda x: np.broadcast_to(x, (2, 4)), "x", "could not be broadcast"),
    "clip": (lambda x: np.clip(x, 0), "x", "a_max"),
    "keyword": (lambda x: np.sum(x, axes=1), "x", "axes"),
    "where": (lambda x: np.where(x, 1), "x", "either both or neither"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_numpys_and_name_the_line(name: str) -> None:
    f, key, text = ERRORS[name]
    if name == "clip":
        with pytest.raises(TypeError, match=text):
            run(f, DATA[key])
        return
    message = check_raises(f, DATA[key], match=text)
    assert name == "keyword" or "test_functions.py" in message


def test_unknown_functions_name_their_neighbours() -> None:
    for f, text in [
        (lambda x: np.is_busday(x), "dates and times"),
        (lambda x: np.emath.sqrt(x), "np.sqrt"),
    ]:
        with pytest.raises(TypeError, match=text) as caught:
            run(f, DATA["s"])
        assert "test_functions.py" in str(caught.value)


@pytest.mark.parametrize("name", ["nonzero", "unique", "argwhere", "flatnonzero"])
def test_data_dependent_shapes_that_have_to_be_known_are_explained(name: str) -> None:
    def f(x: Any) -> Any:
        found = getattr(np, name)(x)
        return (found[0] if name == "nonzero" else found).reshape(2, -1)

    with pytest.raises(TypeError, match=r"(?s)length.*a value.*test_functions.py"):
        run(f, DATA["x"])


def test_eager_functions_are_numpys() -> None:
    x = DATA["x"]
    assert type(jt.sum(x)) is np.float64 and jt.sum(x, axis=1).shape == (3,)
    assert isinstance(jt.zeros(3), np.ndarray) and jt.linalg.norm(x) == np.linalg.norm(x)
    assert jt.prod((2, 3)) == 6 and jt.concat([x, x]).shape == (6, 4)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(jt.logsumexp(x, axis=1), np.log(np.exp(x).sum(1)))
    assert jt.logsumexp(np.array([-np.inf, -np.inf])) == -np.inf
    assert jt.logsumexp(np.array([1000.0, 1000.0])) == pytest.approx(1000 + np.log(2))
    assert jt.add.reduce(x).shape == (4,)


def test_shape_arithmetic_stays_static_inside_jit() -> None:
    def f(x):
        n = jt.prod(x.shape)
        assert isinstance(n, (int, np.integer))
        return x.reshape(int(n)) * jt.sqrt(4.0)

    check(f, DATA["x"])


def test_the_table_is_sound() -> None:
    assert len(FUNCTIONS) > 300
    for name, entry in FUNCTIONS.items():
        assert entry.name == name and callable(entry.traced) and callable(entry.reference), name
        if entry.numpy is not None:
            assert BY_NUMPY[entry.numpy].traced is entry.traced or name == "abs", name
    names = public_names()
    assert names["sin"].__name__ == "sin" and names["sin"].__doc__
    assert names["linalg"].norm.__module__ == "jitney"


def test_every_numpy_ufunc_is_in_the_table() -> None:
    missing = [
        n
        for n in dir(np)
        if isinstance(getattr(np, n), np.ufunc) and n not in FUNCTIONS and n != "isnat"
    ]
    assert missing == []


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("shape", "axis"), [((2,), 0), ((300,), 0), ((7, 40), 0), ((7, 40), 1)])
def test_running_sums_of_negative_zeros_are_negative_zeros(shape, axis, dtype) -> None:
    x = np.full(shape, -0.0, dtype)
    f = jt.jit(lambda x: (x.cumsum(axis=axis), (x * 1.5).cumsum(axis=axis), x.sum(axis=axis)))
    running, fused, total = f(x)
    assert np.signbit(running).all() and np.signbit(fused).all()
    assert not np.signbit(total).any()  # sums start from 0


def test_stored_booleans_beside_a_constant_that_is_found_late() -> None:
    """It ended LLVM where masks are AVX-512's: the constant began like the ones of the booleans."""

    def f(x):
        true = np.logical_and(x, -1)
        return true, np.where(true == -1, -1, 1.5)

    x = np.broadcast_to(np.float64(0.5), (4,))
    for got, want in zip(jt.jit(f)(x), f(x), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c16"])
def test_powers_that_are_roots(dtype: str) -> None:
    """NumPy's loop of a scalar exponent 0.5 takes roots, of some dtypes, which -0.0 and -inf show."""
    x = np.array([-np.inf, -0.0, 4.0, -1.0], dtype)
    for exponent in (0.5, np.float16(0.5), np.full(4, 0.5, dtype)):
        for operand in (x, x[0], x[1]):
            got = jt.jit(lambda x, e=exponent: np.power(x, e))(operand)
            with np.errstate(invalid="ignore", divide="ignore"):
                want = np.power(operand, exponent)
                np.testing.assert_array_equal(got, want)
                np.testing.assert_array_equal(1 / got == -np.inf, 1 / want == -np.inf)  # -0.0


def test_no_integers_to_negative_powers() -> None:
    x = np.zeros((3, 0), bool)
    assert jt.jit(lambda x: x**-1)(x).dtype == (x**-1).dtype


@pytest.mark.filterwarnings("ignore:Arrays of 2-dimensional vectors")
@pytest.mark.parametrize("sizes", [(2, 2), (2, 3), (3, 2)])
def test_cross_of_vectors_of_two_numbers(sizes: tuple[int, int]) -> None:
    """NumPy 2.5 refuses them."""
    x, y = (
        np.arange(4.0 * sizes[0]).reshape(4, -1),
        np.cos(np.arange(4.0 * sizes[1])).reshape(4, -1),
    )
    try:
        want = np.cross(x, y)
    except ValueError:
        with pytest.raises(ValueError, match="must be .* 3-dimensional vectors, but they are"):
            jt.jit(np.cross, backend="interpreter")(x, y)
    else:
        np.testing.assert_allclose(jt.jit(np.cross, backend="interpreter")(x, y), want)
