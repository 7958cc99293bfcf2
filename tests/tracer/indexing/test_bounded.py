"""Arrays whose length is a value: slices with traced bounds, masks, and what functions do with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitney as jt

Array = np.ndarray[Any, Any]
X = np.array([3.0, -1.0, 0.0, np.inf, 2.0, -4.0, 7.0, 0.5])
PTR = np.array([0, 2, 5, 5, 8])


def outcome(f: Callable[..., Any], *args: Any) -> Any:
    """What a call gives, with its dtypes and shapes, or the class of what it raises."""
    args = tuple(a.copy() if isinstance(a, np.ndarray) else a for a in args)
    with np.errstate(all="ignore"):
        try:
            result = f(*args)
        except (ValueError, IndexError, ZeroDivisionError) as error:
            return next(c for c in type(error).__mro__ if c.__module__ == "builtins")
    parts = [r for r in (result if isinstance(result, tuple) else (result,)) if r is not None]
    return [*map(np.asarray, parts), *(a for a in args if isinstance(a, np.ndarray))]


def same(f: Callable[..., Any], *args: Any, compiled: Any = None) -> None:
    got, want = outcome(compiled or jt.jit(f), *args), outcome(f, *args)
    if isinstance(want, type) or isinstance(got, type):
        assert got is want, (got, want)
        return
    for g, w in zip(got, want, strict=True):
        assert g.shape == w.shape and g.dtype == w.dtype, (g, w)
        np.testing.assert_allclose(g, w, rtol=1e-12, atol=1e-12)


def written(x, lo, hi, step):
    y = x.copy()
    y[lo[0] : hi[0] : step] = x[0]
    y[lo[1] :] += 1
    y[: hi[1]] *= y[: hi[1]]
    part = y[lo[2] : hi[2] : step]
    part[:] = part[::-1].copy()
    return y


def read(x, lo, hi, step):
    part = x[lo[0] : hi[0] : step]
    return part, part.sum(), np.exp(-part) + part, part.shape[0], part[lo[1] : hi[1]], part > 0


@settings(max_examples=20, deadline=None)
@given(
    st.integers(0, 6),
    st.sampled_from([None, 1, 2, 3, -1, -2]),
    hnp.arrays(np.int64, 3, elements=st.integers(-9, 9)),
    hnp.arrays(np.int64, 3, elements=st.integers(-9, 9)),
)
def test_slices_mean_what_they_mean_in_python(n: int, step: Any, lo: Array, hi: Array) -> None:
    x = np.arange(1.0, n + 1)
    key = (n, step)
    for f in (read, written):
        if (f, *key) not in COMPILED:
            COMPILED[f, *key] = jt.jit(lambda x, lo, hi, f=f: f(x, lo, hi, step))
        if n or f is read:
            same(lambda x, lo, hi, f=f: f(x, lo, hi, step), x, lo, hi, compiled=COMPILED[f, *key])


COMPILED: dict[Any, Any] = {}

REDUCTIONS = """
v.sum() | v.mean() | v.std() | v.var(ddof=1) | v.prod() | np.sum(v, dtype=np.float32) | v.any()
v.all() | v.max() | np.min(v) | np.argmax(v) | v.argmin() | np.median(v) | np.linalg.norm(v)
np.count_nonzero(v) | np.ptp(v) | np.linalg.norm(v, 1) | np.nansum(v) | np.sort(v) | np.argsort(v)
np.cumsum(v) | np.diff(v) | v[::-1] | v[0] | v[-2] | v[1:] | v[v > 0] | np.where(v > 0, v, -v)
np.flip(v) | v[np.array([0, -1])] | np.concatenate([v, x[:2], v]) | v @ v | np.outer(v, v[:2])
np.percentile(v, 30) | np.quantile(v, 0.75) | np.allclose(v, v[::-1])
np.clip(v, 0, 1) | v * 2 + x[0] | -v | abs(v) | v ** 2 | 2 ** v | np.sqrt(abs(v)) | v.size | np.unique(v)
v[:, None] * v[None, :] | np.nonzero(v > 0)[0] | v.astype(np.float32) | np.isnan(v)
np.sum(v, where=v > 0) | np.maximum(v, 1) | v.copy() | v.dot(v) | np.nanmax(v) | np.exp(v) @ np.ones(3)
np.stack([v, v], axis=-1) | np.stack([v, v[:2]]) | np.vstack((v, v))
np.column_stack([v, v, v]) | np.dstack([v, v]) | np.hstack([v, 1.0, v])
np.stack([v, np.ones(3)]) | np.stack([np.ones(1), v]) | np.atleast_2d(v)
np.concatenate([v[:, None] * x, v[:, None] * x[:2]], axis=1) | np.vstack([v[:, None] * x, x[None]])
np.concatenate([v, x], dtype=np.float32) | np.append(v, 1) | np.concatenate([v, v], axis=None)
np.diff(v, n=2) | np.diff(v, prepend=7) | np.diff(v > 0, append=True) | np.diff(v, 1, -1, v, x[:1])
np.unravel_index(np.flatnonzero(v > 0), (2, 4))
np.vstack([v, v[:1]])
np.unravel_index(np.flatnonzero(v > 0) + 7, (2, 4), order="F")
np.ravel_multi_index((np.flatnonzero(v > 0), np.flatnonzero(v > 0) // 2), (8, 4))
np.sum(v, 0, np.float32) | np.any(v, 0, None, True) | np.max(v, where=v > 0, initial=0)
np.cumsum(v, 0, np.float32) | np.cumulative_sum(v, include_initial=True)
np.take(v, np.array([0, -1])) | v.take([1]) | x.take(np.flatnonzero(v > 0)), np.take(v[:, None], [0], 1)
np.roll(v, 2), np.roll(v, -1), np.roll(v[:, None] * x, 1, 0), np.roll(v[:, None] * x, 3, axis=1)
np.expand_dims(v, 0), np.expand_dims(v, (0, 2)), np.ediff1d(v), np.ediff1d(v, 9, [1, 2])
np.trapezoid(v), np.trapezoid(v, dx=0.5), np.trapezoid(v, v * 2) | np.trapezoid(v, np.arange(3.0))
np.searchsorted(np.sort(v), [-4, 0.5, 9, np.nan]), np.searchsorted(np.sort(v), x, "right")
np.searchsorted([-1, 0, 2], v), np.searchsorted(np.sort(v), v), np.sort(v).searchsorted(2.0)
np.isin(x, v), np.isin(v, [3, 0]), np.isin(v, v[1:]), np.isin(x, v, invert=True), np.isin(3, v)
np.interp(v, [0, 1], [2, 3]), np.polyval([1, 2, 3], v) | np.interp(v, np.arange(3), v, 7, 8)
np.interp([-1, 0.5, 9], v, v) | np.interp(np.linspace(-5, 9, 40), np.sort(v[v < 9]), v[v < 9])
np.average(v), np.average(v, returned=True)[1] | np.average(v, weights=v > 0)
np.average(v[:, None] * x, 0, v[:, None] * np.ones(8))
np.array_equal(v, v), np.array_equal(v, x[1:4]), np.array_equal(v, v + 1), np.array_equal(v, v[:2])
np.array_equal(v, np.copy(v), equal_nan=True), np.array_equal(v, v[:, None])
v.real + v.imag, v.conj(), np.conjugate(v), *divmod(v, 2), *divmod(7, v + 9)
x, np.add.at(x, np.flatnonzero(v > 0) % 3, 2.0), np.subtract.at(x, np.flatnonzero(v > 0), v[v > 0])
x, np.maximum.at(x, np.flatnonzero(v > 0), v[v > 0] - 1) | x, np.add.at(x, np.flatnonzero(v > 0) + 6, 1)
v + x | v + np.ones(3) | v + np.ones(1) | v[:3] + v[:2] | np.zeros_like(v) + 1
""".replace("\n", "|").split("|")


@pytest.mark.parametrize("text", [t.strip() for t in REDUCTIONS if t.strip()])
def test_functions_of_slices_and_masks(text: str) -> None:
    scope: dict[str, Any] = {"np": np}
    exec(f"def f(x, i):\n v = x[i[0]:i[1]]\n return {text}", scope)
    exec(f"def g(x, m):\n v = x[m]\n return {text}", scope)
    f, g = scope["f"], scope["g"]
    sliced = jt.jit(f)
    masked = jt.jit(g)
    for lo, hi in ((1, 4), (2, 2), (0, 3), (3, 8)):
        same(f, X, np.array([lo, hi]), compiled=sliced)
        mask = np.zeros(8, bool)
        mask[lo:hi] = True
        mask[7] = False
        same(g, X, mask, compiled=masked)


def products(a, i):
    n, m = i[1], i[2]
    return (
        a[:n, :n] @ a[:n, 0],
        a[:, :n] @ a[:n],
        a[n:m, :n] @ a[:n, n:],
        a[0, :n] @ a[:n, :m],
        a[:n].sum(axis=0),
        a[:n].sum(axis=1),
        a[:n, :m].max(),
        a[:m].T,
        np.dot(a[1, :n], a[2, :n]),
        a[:n] - a[:n].mean(axis=0),
        a[n:, m - 1],
    )


def eliminated(a, i):
    n = i[1]
    a[n:, n:] -= np.outer(a[n:, 0], a[0, n:])
    a[n:, 1] = 7
    a[0, :n], a[1, :n] = a[1, :n].copy(), a[0, :n].copy()
    a[:n] = a[:n][::-1].copy()
    return a


def test_matrices() -> None:
    a = np.arange(64.0).reshape(8, 8) % 7
    for f in (products, eliminated):
        same(f, a, PTR)
        same(f, a[::-1].T, PTR)


def groups(x, y):
    means = np.zeros(4)
    for c in range(4):
        v = x[y == c]
        if v.size:
            means[c] = v.mean()
    total = 0.0
    for v in x[y > 1]:
        total += v
    for k in range(len(x[y == 1])):
        total += k
    return means, total, sum(x[y == 0]), max(x[y == 2])


def shrinking(x, y):
    v = x[y > 0]
    while v.size > 2:
        v = v[1:]
    return v


def rows(x, ptr):
    out = np.zeros(len(ptr) - 1)
    for i in range(len(ptr) - 1):
        out[i] = x[ptr[i] : ptr[i + 1]] @ x[np.arange(8)[ptr[i] : ptr[i + 1]]]
    return out


def chosen(x, y):
    v = x[: y[0]] if x[0] > 1 else x[y[1] :]
    return v.sum(), v


def test_loops_and_branches() -> None:
    x, y = np.linspace(0, 1, 8), np.array([3, 1, 0, 2, 2, 1, 3, 2])
    for f in (groups, shrinking, chosen):
        same(f, x, y)
    same(rows, x, PTR)


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.complex128, bool])
def test_sets_and_places(dtype: Any) -> None:
    x = np.array([0, 3, 1, 1, 0, 2, 0, 3]).astype(dtype)
    for f in (
        lambda x: np.unique(x),
        lambda x: np.unique(x, return_counts=True, return_index=True, return_inverse=True),
        lambda x: np.nonzero(x),
        lambda x: np.flatnonzero(x),
        lambda x: np.where(x)[0],
        lambda x: np.argwhere(x.reshape(2, 4)),
        lambda x: np.extract(x, x),
        lambda x: np.compress(x[:2], x.reshape(2, 4), axis=0),
        lambda x: np.intersect1d(x, x[2:4]),
        lambda x: np.setdiff1d(x, x[:2]),
        lambda x: np.setxor1d(x, x[:2]),
        lambda x: x[np.nonzero(x)[0]],
        lambda x: np.nonzero(x.reshape(2, 4))[1].max(),
    ):
        same(f, x)
        same(f, np.zeros_like(x)) if dtype is not bool else None


def assigned(x, m, v):
    x[m] = v[: m.sum()]
    x[np.flatnonzero(m)] += 1
    x[m] = x[m][::-1]
    return x


def numbered(x, m, v):
    x[m] = v
    return x


def test_assignments_to_masks() -> None:
    mask = X > 0
    same(assigned, X, mask, np.arange(8.0))
    same(numbered, X, mask, np.arange(5.0))
    same(numbered, X, mask, np.arange(2.0))  # the wrong number of values
    same(numbered, X.reshape(2, 4), mask.reshape(2, 4), np.arange(5.0))


def test_gradients_go_through_the_elements_alone() -> None:
    """What is not there may be infinite, or NaN where it is computed with."""
    x = np.array([1.0, 2.0, 3.0, 0.0, np.nan])

    def f(x, s, i):
        v = x[i[0] : i[1]]
        return (np.log(v) / s).sum() + (v @ v) ** 0.5 + (x[x > 1] * s).sum() + v[0] * v.max()

    def plain(x, s):
        return (np.log(x[:3]) / s).sum() + (x[:3] @ x[:3]) ** 0.5 + (x[1:3] * s).sum() + x[0] * x[2]

    i = np.array([0, 3])
    got = jt.jit(jt.grad(f, argnums=(0, 1)))(x, 2.0, i)
    want = jt.grad(plain, argnums=(0, 1))(x, 2.0)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w)
    got = jt.jit(lambda x, s: jt.jvp(lambda x: f(x, s, i + 0), (x,), (np.ones(5),))[1])(x, 2.0)
    np.testing.assert_allclose(got, want[0][:3].sum())


def test_each_example_has_a_length_of_its_own() -> None:
    x = np.arange(12.0).reshape(3, 4)
    i = np.array([[0, 2], [1, 4], [2, 2]])

    def f(x, i):
        y = x.copy()
        y[i[0] : i[1]] *= 2
        return x[i[0] : i[1]].sum(), y, x[::-1][: i[1] : 2].sum()

    got = jt.jit(jt.vmap(f))(x, i)
    want = [
        np.stack(parts) for parts in zip(*(f(a, b) for a, b in zip(x, i, strict=True)), strict=True)
    ]
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w)


def made(x):
    n = (x > 0).sum()
    y = np.zeros(n)
    y[:] = np.arange(n)
    total = 0.0
    for i in range(60):
        w = np.ones(i)
        w[:] = x[0]
        total += (w * np.arange(i)).sum()
    return y, np.full(len(x[x < 0]), 7), np.arange(2, n), total, np.zeros((n, 2)).sum(axis=0)


def test_new_arrays_of_a_length_that_has_a_bound() -> None:
    same(made, np.array([1.0, -2.0, 3.0, 0.0, 5.0, 6.0]))
    with pytest.raises(TypeError, match="known only when"):
        jt.jit(lambda x: jt.map_fn(lambda v: np.zeros(v.astype(int)), x))(X)


def nested(x, m):
    v = x[m]
    places = np.transpose(np.nonzero(x[None] > 0))
    return (
        *(np.asarray(np.nonzero(x)), places, np.array([v, v * 2]).sum(axis=1), np.diff([v, v])),
        *(np.mean((v, v), axis=0), np.array((v, v), np.float32), np.stack(np.nonzero(x[None]), 1)),
    )


def uneven(x, m):
    return np.array([x[m], x[x > 0]])


@pytest.mark.parametrize("f", [nested, uneven])
def test_sequences_of_counted_arrays_are_arrays(f: Any) -> None:
    compiled = jt.jit(f)
    for mask in (X > 0, X < 0, X > 100, X == X):
        same(f, X, mask, compiled=compiled)
    with pytest.raises(ValueError, match="inhomogeneous shape after 1 dimensions"):
        jt.jit(uneven)(X, X < 0)


def pairs_of_places(x, v, y, z):
    r, c = np.nonzero(x)
    read = x[r, c], x[r, 1], x[1, c], x[np.array([[0], [1]]), c], x[r]
    x[np.where(x > 1)] += 1
    x[np.where(x > 2)] = x[x > 2] * 2
    y[r, c] = v
    z[r] = x[r] + 1
    z[r, 0] -= 3
    return read


def test_counted_places_of_several_axes() -> None:
    compiled = jt.jit(pairs_of_places)
    y = np.zeros((2, 3))
    for x in ([[0.0, 1, 0], [2, 0, 3]], [[0.0, 0, 0], [0, 0, 0]], [[-1.0, 0, 0], [5, 0, 4]]):
        for v in (np.array([7.0]), np.arange(3.0), np.ones(2)):
            f = (np.array(x), v, y, y + 1)
            got, want = outcome(compiled, *f), outcome(pairs_of_places, *f)
            if isinstance(want, type):
                assert got is want
            else:
                for g, w in zip(got, want, strict=True):
                    np.testing.assert_array_equal(g, w, strict=True)
    with pytest.raises(IndexError, match="could not be broadcast together"):
        jt.jit(lambda x: x[np.nonzero(x)[0], np.arange(2)])(np.eye(3))
    with pytest.raises(IndexError, match="boolean index did not match"):
        jt.jit(lambda x: x[x > 0][x > 0])(X)


def shown(x):
    v = x[x > 0]
    print(v, x[x < 0], [np.flatnonzero(x), 2], sep="|")
    print(f"v={v} {np.flatnonzero(x)!r:>30}")
    if v.size > 3:
        raise ValueError(f"many: {v}")


def test_texts_of_counted_arrays(capfd: Any) -> None:
    compiled = jt.jit(shown)
    for x in (np.array([1.0, -2.0, 0.0, 3.0]), np.zeros(4), np.ones(4)):
        texts = []
        for f in (compiled, shown):
            try:
                f(x)
            except ValueError as error:
                print(str(error).splitlines()[0])
            texts.append(capfd.readouterr().out)
        assert texts[0] == texts[1]
    scope: dict[str, Any] = {"np": np}
    for text in ("x[x > 0]", "np.flatnonzero(x)"):
        exec(f"def f(x): return '{{}}'.format({text})", scope)
        with pytest.raises(TypeError, match="the text of an array whose length is a value"):
            jt.jit(scope["f"]).trace(jt.ShapeDtype(X.shape, X.dtype))


def aliased(x, m):
    w = x[m]
    v = w
    w *= x[m]
    w -= 1
    x[m] += v
    y = np.asarray(x[m])
    y.sort()
    z = np.array(x[m], np.float32)
    np.cumsum(z, out=z)
    return v, w, y, z, np.clip(y, 0, 1, np.zeros(4)), np.round(y, 1, out=np.zeros(4))


def changed(x, m):
    w, y, z, q = x[m], x[m], x[m], x[m]
    v, size = w, z.size
    w[0] = 9
    v[v > 8] = 4
    w.sort()
    y.fill(size)
    np.add(z, 1, out=z)
    np.cumsum(z, out=z)
    np.clip(q, 0.5, 4, q)
    part = q[1:]
    part *= 2
    q[1] += 3
    return v, w, y, z, q, part, np.clip(x[m], 0, 1), x


def test_selections_are_never_written_to_unseen() -> None:
    same(aliased, np.arange(8.0), X > 0)
    same(changed, np.arange(8.0), X > 0)

    def in_a_branch(x, w):
        if x[0] > 0:
            w[0] = 1
        return w

    with pytest.raises(TypeError, match=r"keep the copy first: y = x\[mask\]\.copy\(\)"):
        jt.jit(lambda x: in_a_branch(x, x[x > 0]))(X)


@pytest.mark.parametrize("count", [np.array(2), np.array(2.0), np.int64(2), 2, np.array([2])])
def test_bounds_of_arrays_without_dims(count: Any) -> None:
    """Numbers among the arguments are compiled in; an array is none, also without dims."""

    def f(x: Any, n: Any) -> Any:
        n = np.count_nonzero(n == 2)
        return x[:n], x[-n:], x[n::2]

    x = np.arange(6.0)
    for got, wanted in zip(jt.jit(f)(x, count), f(x, count), strict=True):
        np.testing.assert_array_equal(got, wanted)


def einsums(x, a, m):
    v, w = x[m > 0], a[m > 0]
    return (
        np.einsum("i,i->i", v, v),
        np.einsum("i,i", v, v),
        np.einsum("i,ij->j", v, w),
        np.einsum("ij,kj->ik", w, w),
        np.einsum("...j,j->...j", w, a[0]),
        np.einsum(v, [0], w, [0, 1], [1]),
        np.einsum("i,j->ij", v, x),
        np.einsum("ij->j", w),
    )


def deletions(x, a, m):
    v, w = x[m > 0], a[m > 0]
    return (
        np.delete(v, -1),
        np.delete(v, [0, 2]),
        np.delete(v, m[0]),
        np.delete(v, v > 0.5),
        np.delete(v, np.where(v > 0.5)[0]),
        np.delete(x, np.where(m > 1)[0]),
        np.delete(v, slice(0, 2)),
        np.delete(v, []),
        np.delete(w, 1, axis=0),
        np.delete(w, [0, 1], axis=1),
        np.delete(w, np.where(w[:, 0] > 0.5)[0], axis=0),
    )


def writes(x, a, m):
    chosen = m > 0
    rows, columns = np.arange(len(m))[chosen], (m % a.shape[1])[chosen]
    a[rows, columns] = 5.0
    a[rows] += x[chosen][:, None]
    a[rows, 0] *= x[rows]
    a[1, columns] = 7.0
    part = a[:, 1:]
    part[rows, columns - 1] = x[chosen]
    return a


def mismatched(x, a, m):
    return np.einsum("i,i", x[m > 0], x[m > 1])


def beyond(x, a, m):
    return np.delete(x[m > 1], 5)


@pytest.mark.parametrize("f", [einsums, deletions, writes, mismatched, beyond])
def test_einsum_deletion_and_places_by_masks(f: Any) -> None:
    a = np.arange(24.0).reshape(6, 4) / 16
    same(f, np.linspace(0.1, 0.9, 6), a, np.array([1, 0, 2, 3, -1, 1]))


def test_einsum_of_zeros_that_would_meet_infinities_is_refused() -> None:
    def f(x, y):
        return np.einsum("i,j->j", x[x > 0], y)

    y = np.where(X > 0, np.inf, X)
    np.testing.assert_array_equal(jt.jit(f)(X, y), f(X, y))  # compiled for so many
    with pytest.raises(jt.errors.DynamicShapeError, match="einsum"):
        jt.jit(jt.vmap(f))(X[None], y[None])


def escaped(x, n):
    """Points are left out when they have escaped: arrays that become shorter in a loop."""
    z, c, places = np.zeros(x.shape), x * 2, np.arange(x.size)
    found = np.zeros(x.shape, dtype=np.int64)
    for i in range(n):
        if not len(z):
            break
        np.multiply(z, z, z)
        np.add(z, c, out=z)
        far = np.abs(z) > 2.0
        found[places[far]] = i + 1
        np.logical_not(far, far)
        z, c, places = z[far], c[far], places[far]
    return found, places


def test_ufuncs_write_into_arrays_that_become_shorter():
    compiled = jt.jit(escaped)
    for n in (0, 1, 7):
        same(escaped, np.linspace(-1, 1, 20), n, compiled=compiled)
    same(escaped, np.full(4, 9.0), 5, compiled=compiled)


def test_trees_have_such_arrays_as_leaves():
    def f(x: Any, mask: Any) -> Any:
        part = x[mask]
        doubled = jt.tree.map(lambda a, b: a + b, {"a": part, "b": x}, {"a": part * 1, "b": x})
        named = jt.tree.map_with_path(lambda path, a: (path, a.sum()), [part[1:], x])
        return doubled, jt.tree.leaves([part, (x,)]), [total for _, total in named]

    x, mask = np.arange(4.0), np.array([True, False, True, True])
    for got, want in zip(
        jt.tree.leaves(jt.jit(f)(x, mask)), jt.tree.leaves(f(x, mask)), strict=True
    ):
        np.testing.assert_array_equal(got, want)


def _sieve(limits):
    out = np.zeros(len(limits), int)
    for k in range(len(limits)):
        n = limits[k]
        prime = np.ones(n + 1, dtype=bool)
        prime[:2] = False
        for p in range(2, int(n**0.5) + 1):
            if prime[p]:
                prime[p * p :: p] = False
        out[k] = prime.sum()
    return out


def _stepped(x, bounds, value):
    x[bounds[0] : bounds[1] : bounds[2]] = value
    return x


def test_assignment_to_slices_with_traced_steps():
    limits = np.array([10, 20, 50, 97, 30])
    np.testing.assert_array_equal(jt.jit(_sieve)(limits), _sieve(limits))
    stepped = jt.jit(_stepped)
    for bounds in ((2, 9, 3), (0, 20, 7), (-8, -1, 2), (15, 3, 2), (1, 20, 30), (20, 30, 2)):
        for x in (np.arange(20.0), np.ones((20, 2))):
            got = stepped(x.copy(), np.array(bounds), 5.0)
            np.testing.assert_array_equal(got, _stepped(x.copy(), bounds, 5.0))
    for step, said in ((0, "cannot be zero"), (-1, "must not be negative")):
        with pytest.raises(ValueError, match=said):
            stepped(np.ones(9), np.array([5, 0, step]), 1.0)

    def read(x, steps):
        total = 0.0
        for step in steps:
            total += x[::step].sum()
        return total

    with pytest.raises(jt.errors.TracerIndexError, match="the step of a slice"):
        jt.jit(read)(np.ones(9), np.arange(1, 300))
