"""Every keyword of every NumPy function in the table: taken, with NumPy's result."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from support import check, check_raises

import jitney as jt
from jitney.tracer.arrays.table import FUNCTIONS, _by_our_names

rng = np.random.default_rng(5)
X = rng.normal(size=(4, 6))
HOLES = np.where(rng.random((4, 6)) < 0.3, np.nan, X)
DATA: dict[str, Any] = {
    "x": X,
    "h": HOLES,
    "f": X.astype(np.float32),
    "i": rng.integers(-9, 99, (4, 6)),
    "k": rng.integers(0, 3, 6),
    "z": X + 1j * X[::-1],
    "b": X > 0,
    "v": rng.normal(size=6),
    "w": rng.random(6),
    "s": np.int64(2),
    "t": rng.normal(size=(2, 3, 4)),
}


def unreachable() -> list[str]:
    """The parameters of NumPy's functions that ours do not take."""
    found = []
    for name, entry in FUNCTIONS.items():
        numpy = entry.numpy
        if numpy is None or isinstance(numpy, np.ufunc):
            continue
        try:
            theirs = inspect.signature(numpy).parameters.values()
        except (TypeError, ValueError):
            continue
        mine = inspect.signature(entry.traced).parameters.values()
        if any(p.kind is p.VAR_KEYWORD for p in mine):
            continue
        names = {p.name for p in mine}
        for i, p in enumerate(theirs):
            if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) or p.name in names:
                continue
            before = [None] * i
            args, kwargs = _by_our_names(entry, tuple(before), {p.name: None})
            if p.name in kwargs:
                found.append(f"{name}({p.name}=)")
    return found


def test_every_parameter_of_numpys_is_ours_too() -> None:
    assert unreachable() == []


CASES = """
np.nanmean(h, where=x > 0, axis=1)
np.nanstd(h, axis=0, ddof=1, where=x > -1, keepdims=True)
np.nanvar(h, correction=1)
np.nanmax(h, axis=0, initial=0.5, keepdims=True)
np.nansum(h, axis=1, dtype=np.float32, initial=2, where=x > 0)
np.nanprod(h, 1, None, None, True)
np.std(x, axis=1, mean=np.mean(x, axis=1, keepdims=True), ddof=2)
np.cov(x, fweights=k[:4] * 0 + 2, rowvar=False)
np.cov(x, fweights=k, aweights=w)
np.cov(x, v, aweights=w, ddof=0)
np.cov(z, aweights=w, bias=True)
np.cov(x, ddof=3)
(np.corrcoef(x, rowvar=False), np.corrcoef(f, dtype=np.float32))
np.quantile(x, [0, 0.3, 0.5, 1], axis=1, weights=w, method="inverted_cdf")
np.quantile(x, 0.4, weights=x**2, method="inverted_cdf")
np.percentile(x, [20, 70], axis=0, weights=x**2, method="inverted_cdf", keepdims=True)
np.nanquantile(h, [0.1, 0.6], axis=1, weights=x**2, method="inverted_cdf")
np.quantile(h, 0.5, axis=1, weights=w, method="inverted_cdf")
np.quantile(i, [0.2, 0.9], axis=(0, 1), weights=x**2, method="inverted_cdf")
np.average(x, axis=1, weights=w, returned=True, keepdims=True)
np.average(t, axis=(0, 2), weights=t[:, 0] ** 2)
np.gradient(x, [0, 1.0, 3, 3.5], w.cumsum(), edge_order=2)
np.gradient(x, 0.5, axis=1)
np.interp(v, w.cumsum(), v)
np.interp(v, w.cumsum(), v, left=-9, right=9)
np.interp(v * 9, w.cumsum(), v, period=2.5)
np.unwrap(x * 9, discont=4, axis=0, period=5)
np.unwrap(i, period=10)
np.ediff1d(x, to_begin=v, to_end=[1.0, 2.0])
np.cumulative_sum(v, include_initial=True)
np.cumulative_prod(x, axis=0, include_initial=True, dtype=np.float32)
np.diff(x, n=2, axis=0, prepend=0, append=x[:1])
np.pad(array=x, pad_width=((1, 2), (3, 1)), mode="maximum")
np.pad(x, (2, 9), "minimum", stat_length=2)
np.pad(x, 3, "mean", stat_length=((1, 2), (3, 99)))
np.pad(i, 3, "mean")
np.pad(i, 3, "median", stat_length=(2, 3))
np.pad(x, ((1, 2), (4, 5)), "linear_ramp", end_values=((1, 2), (3, -4)))
np.pad(i, 4, "linear_ramp", end_values=-7)
np.pad(x, (2, 17), "reflect", reflect_type="odd")
np.pad(x, (12, 3), "symmetric", reflect_type="odd")
np.pad(i[:1], 3, "reflect", reflect_type="odd")
np.pad(x, 2, ramp, sign=-1)
np.clip(x, None, 0.5)
np.clip(x, min=-0.5, max=None)
np.clip(i, 0, 50, dtype=np.float32)
np.round(i, -1)
np.round(i, decimals=-2)
np.nan_to_num(h / 0, nan=3.0, posinf=9, neginf=-9)
np.divmod(i, 7, where=b)[1] * b
np.piecewise(x, [x < 0, x > 1], [lambda v, a: v * a, 5, lambda v, a: v - a], 3)
np.select([x < 0, x > 1], [x, x * 2], default=7)
np.choose(i, [x, x * 2, -x], mode="wrap")
np.choose(i, [x, x * 2, -x], mode="clip")
np.histogram(x, bins=5, range=(-1, 1), weights=x**2, density=True)
np.histogram2d(v, w, bins=[3, 4], range=[[-1, 1], [0, 1]], weights=w, density=True)[0]
np.histogramdd(x, bins=2, weights=x[:, 0], density=True)[0]
np.apply_along_axis(lambda r, a: r[:2] * a, 0, x, 3)
np.fromfunction(lambda p, q: p * 2 + q, (3, 4), dtype=int) + s
np.block([[x, x * 2], [np.ones((1, 6)), x[:1]]])
np.insert(x, 2, 9, axis=1)
np.insert(x, [1, 3], v[:2], axis=1)
np.insert(v, s, 7.0)
np.insert(x, s, v, axis=0)
np.insert(x, s, x[:, :2].T, axis=1)
np.delete(x, [0, -1], axis=0)
np.delete(v, slice(None, None, 2))
np.delete(x, s, axis=1)
np.delete(v, -s)
np.append(x, x[:1], axis=0)
np.roll(x, (1, -2), axis=(0, 1))
np.roll(x, s, axis=1)
np.roll(x, s)
np.roll(x, -s, axis=(0, 1))
np.take(x, i, mode="wrap")
np.take(x, i, axis=1, mode="clip")
np.argsort(x, axis=0, kind="stable")
np.searchsorted(v, w, side="right", sorter=np.argsort(v))
np.broadcast_to(array=v, shape=(2, 6))
np.empty_like(prototype=x, shape=(2, 2)) * 0
np.zeros(3, like=x) + s
np.linalg.tensordot(x, x, axes=2)
(np.ndim(a=x), np.shape(a=x), np.size(a=x, axis=1))
np.compress(condition=[True, False, True], a=x, axis=1)
np.ix_([0, 2], [True, False, True])[1] + s
np.moveaxis(a=t, source=0, destination=-1)
np.trapezoid(x, x=w.cumsum(), axis=1)
np.trapezoid(x, dx=0.5, axis=0)
np.kron(a=x[:2], b=x[:1])
np.cross(t[..., :3], t[..., 1:], axisa=2, axisc=0)
np.vander(v, N=3, increasing=True)
np.tri(3, 4, k=-1, dtype=int) * s
np.convolve(v, w, mode="same")
np.correlate(v, w, mode="full")
np.packbits(b, axis=1, bitorder="little")
np.count_nonzero(x > 0, axis=1, keepdims=True)
np.ptp(x, axis=1, keepdims=True)
np.median(x, axis=1, keepdims=True)
np.isclose(x, x + 1e-9, rtol=0, atol=1e-8)
np.array_equal(h, h, equal_nan=True)
np.concatenate((x, i), axis=None, dtype=np.float32, casting="unsafe")
np.stack([x, x], axis=-1, dtype=np.float32, casting="same_kind")
np.tile(x, (2, 1, 2))
np.repeat(x, [1, 0, 2, 1], axis=0)
np.unravel_index(k, (2, 2), order="F")
np.sum(x, axis=1, keepdims=True, where=b, initial=5)
np.max(x, axis=1, where=b, initial=0)
jt.require(x, np.float32, ["C", "W"])
jt.r_[0, v, 1:4, x[0], 0:1:3j]
jt.r_["0,2", v, w]
jt.r_["-1", x, x]
jt.r_["0,2,0", v, w]
jt.r_[s, 2.5]
jt.c_[v, w, x.T]
jt.c_[x, x]
jt.c_[v, 1:7]
"""


def ramp(row: Any, width: tuple[int, int], axis: int, options: dict[str, Any]) -> None:
    """A mode of np.pad."""
    row[: width[0]] = options["sign"] * (axis + 1)
    row[-width[1] :] = row[width[0]] * 2


def lines() -> list[str]:
    return [line for line in CASES.splitlines() if line]


@pytest.mark.parametrize("case", lines())
def test_keywords(case: str) -> None:
    # The names that the expression reads are the arguments.
    names = [n for n in DATA if n in compile(case, case, "eval").co_names]
    known = {"np": np, "jt": jt, "ramp": ramp}
    f = eval(f"lambda {', '.join(names)}: {case}", known)
    names = list(inspect.signature(f).parameters)
    check(f, *(DATA[n] for n in names))


def test_writing_functions() -> None:
    def f(x: Any, i: Any, b: Any, v: Any) -> Any:
        np.put(x, i, v, mode="wrap")
        np.put(x.T, [0, 5, 7], v[:2])
        np.put(x, [1, -1], v[3])
        y, w, u = x * 2, x * 3, x * 4
        np.place(y, b, v)
        np.place(y, y > 1, [7.0])
        np.putmask(w, b, v)
        np.putmask(w, mask=~b, values=[1.0, 2.0])
        np.copyto(u, v, where=b)
        np.copyto(dst=u[0], src=3, casting="unsafe")
        tall, wide = np.concatenate([x, x, x]).T.copy().T, x * 1
        np.fill_diagonal(tall, v[:3], wrap=True)
        np.fill_diagonal(wide, 9)
        cube = np.zeros_like(x, shape=(3, 3, 3))
        np.fill_diagonal(cube, [1, 2, 3])
        np.put_along_axis(wide, i[:, :2] % 6, 5, axis=1)
        fraction, whole = np.zeros_like(x), np.zeros_like(x)
        np.modf(x, out=(fraction, whole), where=b)
        mantissa, power = np.frexp(x)
        np.ldexp(mantissa, power, out=fraction, where=~b)
        return y, w, u, tall, wide, cube, fraction, whole, power

    check(f, X, DATA["i"], DATA["b"], DATA["v"])


def test_gradients_of_what_is_composed() -> None:
    v, w = DATA["v"], DATA["w"]
    for f in (
        lambda x: np.cov(x, aweights=w),
        lambda x: np.pad(x, 3, "reflect", reflect_type="odd"),
        lambda x: np.pad(x, 3, "mean", stat_length=2),
        lambda x: np.pad(x, 3, "linear_ramp", end_values=2),
        lambda x: np.quantile(x, 0.4, axis=1, weights=w, method="inverted_cdf"),
        lambda x: np.nanmean(x, where=x > 0),
        lambda x: jt.r_["0,2", x, v],
    ):
        jt.check_grads(f, (X,), order=1)


def test_what_is_refused_says_why() -> None:
    for f, text in (
        (lambda x: np.pad(x, 1, "nearest"), "not supported"),
        (lambda x: np.pad(x, 1, "mean", end_values=3), "unsupported keyword"),
        (lambda x: np.pad(x[:0], 1, "maximum"), "empty axis"),
        (lambda x: np.quantile(x, 0.5, weights=x), "inverted_cdf"),
        (lambda x: np.quantile(x, 0.5, weights=x[0], method="inverted_cdf"), "Axis"),
        (lambda x: np.cov(x, fweights=x[0]), "fweights must be integer"),
        (lambda x: np.put(x, 0, 1, mode="fill"), "clipmode|mode"),
        (lambda x: np.delete(x, 9, axis=0), "out of bounds"),
    ):
        check_raises(f, X, match=text)
    with pytest.raises(IndexError, match="out of bounds"):
        jt.jit(lambda x, s: np.delete(x, s))(X, np.int64(24))
    with pytest.raises(TypeError, match=r"jt\.nonzero"):
        jt.jit(lambda b: np.ix_(b, [0]))(X[0] > 0)
    with pytest.raises(TypeError, match="np.matrix"):
        jt.jit(lambda v: jt.r_["r", v])(X[0])
