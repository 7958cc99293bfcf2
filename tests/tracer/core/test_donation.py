"""Memory that is given: donated arguments, updates in place, and what `explain` says about copies."""

from __future__ import annotations

import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitney as jt
from jitney.runtime.compile import clear_memory_cache


def donating(function: Any, argnums: Any = 0, **options: Any) -> Any:
    return jt.jit(function, donate_argnums=argnums, **options)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 100, 1000, 100_003])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.int64, np.bool_])
def test_a_result_takes_the_place_of_a_donated_argument(n: int, dtype: Any) -> None:
    def function(x: Any, y: Any) -> Any:
        return (x ^ y) if dtype is np.bool_ else x * x + y

    x, y = (np.arange(n) % 5).astype(dtype), (np.arange(n) % 3).astype(dtype)
    want, kept = function(x, y), y.copy()
    f = donating(function)
    for _ in range(3):  # through Python, then natively
        mine = x.copy()
        got = f(mine, y)
        assert got is mine
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(y, kept)


def test_without_donation_results_are_fresh() -> None:
    x = np.ones(5)
    assert jt.jit(lambda x: x + 1)(x) is not x and x[0] == 1


UNFIT = {
    "another dtype": lambda x: x.astype(np.float32),
    "another shape": lambda x: x[:-1] + 1,
    "reversed": lambda x: x[::-1] * 2,
    "shifted": lambda x: x + np.roll(x, 1),
    "transposed": lambda x: x.reshape(3, 4).T.reshape(12) + 0,
    "a sum of all": lambda x: x - x.sum(),
    "neighbours": lambda x: np.concatenate([x[1:], x[:1]]) + x,
    "sorted": lambda x: np.sort(x),
    "cumulative": lambda x: np.cumsum(x),
    "read by the next result": lambda x: (x + 1, x[::-1] * 2),
    "two results": lambda x: (x + 1, x * 2),
    "one result twice": lambda x: (lambda y: (y, y))(x + 1),
    "returned too": lambda x: (x, x + 1),
    "through a loop": lambda x: jt.fori_loop(0, 3, lambda i, s: s[::-1] + x, x),
    "scalar": lambda x: x.max(),
    "gathered": lambda x: x[np.array([3, 1, 2])] + 1,
}


@pytest.mark.parametrize("name", sorted(UNFIT))
def test_results_are_right_whatever_is_donated(name: str) -> None:
    function = UNFIT[name]
    x = np.random.default_rng(0).normal(size=12)
    want = jt.jit(function)(x.copy())
    f = donating(function)
    for _ in range(3):
        got = f(x.copy())
        for a, b in zip(
            got if isinstance(got, tuple) else (got,),
            want if isinstance(want, tuple) else (want,),
            strict=True,
        ):
            np.testing.assert_array_equal(a, b)


def test_an_optimiser_step_in_place() -> None:
    def step(params: Any, moments: Any, gradient: Any) -> Any:
        moments = {k: 0.9 * m + 0.1 * gradient[k] for k, m in moments.items()}
        params = {k: p - 0.01 * moments[k] / (abs(moments[k]) + 1) for k, p in params.items()}
        return params, moments

    rng = np.random.default_rng(0)
    trees = [{k: rng.normal(size=s) for k, s in (("w", (30, 40)), ("b", (40,)))} for _ in range(3)]
    want = step(*trees)
    f = donating(step, (0, 1))
    for _ in range(3):
        mine = [{k: v.copy() for k, v in tree.items()} for tree in trees]
        params, moments = f(*mine)
        for k in ("w", "b"):
            np.testing.assert_allclose(params[k], want[0][k], rtol=1e-12)
            np.testing.assert_allclose(moments[k], want[1][k], rtol=1e-12)
            np.testing.assert_array_equal(mine[2][k], trees[2][k])
        assert {id(v) for v in params.values()} <= {id(v) for t in mine[:2] for v in t.values()}


def test_the_peak_is_smaller() -> None:
    x = np.ones(1 << 20)

    def peak(f: Any) -> int:
        f(x.copy())
        f(x.copy())
        mine = x.copy()
        tracemalloc.start()
        try:
            f(mine)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(jt.jit(lambda x: x * 2 + 1)) >= x.nbytes
    assert peak(donating(lambda x: x * 2 + 1)) < 100_000


def test_overlapping_read_only_and_shared_arguments_are_left_alone() -> None:
    f = donating(lambda x, y: x + y)
    x = np.arange(10.0)
    f(x.copy(), x)
    for _ in range(3):
        np.testing.assert_array_equal(f(x, x), 2 * x)
        assert x[3] == 3
        whole = np.arange(15.0)
        np.testing.assert_array_equal(f(whole[:10], whole[5:]), x + whole[5:])
        np.testing.assert_array_equal(whole, np.arange(15.0))
        frozen = x.copy()
        frozen.setflags(write=False)
        np.testing.assert_array_equal(f(frozen, x), 2 * x)
        np.testing.assert_array_equal(frozen, x)
        strided = np.repeat(x, 2)[::2]
        np.testing.assert_array_equal(f(strided, x), 2 * x)


def test_donated_by_negative_number_as_keyword_and_of_methods() -> None:
    f = donating(lambda a, b: a * 2 + b, -1)
    a, b = np.ones(4), np.ones(4)
    assert f(a, b) is b and b[0] == 3 and a[0] == 1
    b = np.ones(4)
    assert f(a, b=b) is b and a[0] == 1

    class Model:
        k = 3.0

        @jt.jit(donate_argnums=1)
        def scale(self, x: Any) -> Any:
            return x * self.k

    model, x = Model(), np.ones(4)
    assert model.scale(x) is x and x[0] == 3


def test_arguments_that_are_assigned_to_are_updated_in_place() -> None:
    @jt.jit
    def f(u: Any, v: Any) -> None:
        u[1:-1] = 0.25 * v[2:] + v[1:-1]
        u[0] = 7.0

    u, v = np.zeros(1 << 18), np.arange(float(1 << 18))
    f(u, v)
    assert u[0] == 7 and u[1] == 1.5 and u[-1] == 0
    text = f.explain(u, v)
    assert "1 result in the place of arguments" in text and "copies" not in text
    f(u, v)
    tracemalloc.start()
    try:
        f(u, v)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def roots(x: Any) -> None:
    for i in range(len(x)):
        x[i] = math.sqrt(x[i]) + math.exp(-x[i])


def roots_of_a_grid(x: Any) -> None:
    n, m = x.shape
    for i in range(n):
        for j in range(m):
            x[i, j] = 2 * math.sqrt(x[i, j])


def roots_of_neighbours(x: Any, out: Any) -> None:
    for i in range(1, len(x) - 1):
        out[i] = math.sqrt(x[i - 1]) * math.cosh(x[i + 1])


def roots_of_roots(x: Any) -> None:
    for i in range(1, len(x)):
        x[i] = math.sqrt(x[i - 1] + 0.5)


@pytest.mark.parametrize("f", [roots, roots_of_a_grid, roots_of_neighbours, roots_of_roots])
def test_what_is_checked_first_is_written_in_place(f: Any) -> None:
    """Where a function may raise, but only before it writes, its arguments need not be copied."""
    x = np.linspace(0.3, 9, 64)
    given = x.reshape(8, 8) if f is roots_of_a_grid else x
    arguments = [given, np.zeros(64)][: f.__code__.co_argcount]
    compiled = jt.jit(f)
    for wrong in (None, -1.0, 1e3):
        mine = [np.array(a) for a in arguments]
        if wrong is not None:
            mine[0].flat[40] = wrong
        before, theirs = [np.array(a) for a in mine], [np.array(a) for a in mine]
        errors: list[Any] = [None, None]
        for k, (function, these) in enumerate(((f, theirs), (compiled, mine))):
            try:
                function(*these)
            except (ValueError, OverflowError) as error:
                errors[k] = type(error)
        assert errors[0] == errors[1]
        for a, b in zip(mine, theirs if errors[0] is None else before, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-14)
    many = [np.ones((300, 300) if a.ndim == 2 else 90_000) for a in arguments]
    assert ("copies" in str(compiled.explain(*many))) == (f is roots_of_roots)


def test_a_call_that_fails_leaves_its_arguments() -> None:
    @jt.jit
    def f(u: Any, v: Any, i: Any) -> Any:
        u[:] = v * 2
        return v[i]

    u, v = np.zeros(5), np.ones(5)
    assert f(u, v, 2) == 1 and u[0] == 2
    u[:] = 0
    with pytest.raises(IndexError):
        f(u, v, 9)
    assert not u.any()


@settings(max_examples=15)
@given(
    n=st.integers(1, 70),
    start=st.integers(0, 69),
    length=st.integers(0, 70),
    step=st.sampled_from([1, 2, 3]),
    own=st.booleans(),
)
def test_assignments_agree_with_numpy(
    n: int, start: int, length: int, step: int, own: bool
) -> None:
    def function(u: Any, v: Any) -> Any:
        part = slice(start, start + length, step)
        u[part] += (u if own else v)[part] * 3
        u *= 2
        return u[::-1] + v

    u, v = np.arange(float(n)), np.arange(float(n)) + 100
    want_u = u.copy()
    want = function(want_u, v)
    f = jt.jit(function)
    for _ in range(2):
        mine = u.copy()
        np.testing.assert_array_equal(f(mine, v), want)
        np.testing.assert_array_equal(mine, want_u)


@pytest.mark.parametrize("n", [7, 30_000])
@pytest.mark.parametrize("inplace", [None, "require"])
def test_what_one_argument_was_is_kept_in_another(n: int, inplace: Any) -> None:
    """The copy is made before the other one is overwritten: by a formula, by an update, by both; or of
    what is computed once."""

    def moved(w: Any, m: Any, old: Any) -> None:
        step = w - old
        old[...] = w
        w += 0.5 * m + step

    def updated(w: Any, m: Any, old: Any) -> None:
        old[...] = w
        w[2:5] = m[2:5]
        w[0] += 1.0

    def once(w: Any, m: Any, old: Any) -> None:
        w[...] = np.sin(m)
        old[...] = w

    def swapped(w: Any, m: Any, old: Any) -> None:
        old[...] = w
        w[...] = m
        m[...] = old

    def two(w: Any, m: Any, old: Any) -> None:
        m[...] = w
        old[...] = w
        w *= 2.0

    apart = [] if inplace else [swapped]
    for function in (moved, updated, once, two, *apart):
        mine = [np.arange(float(n)) + k for k in range(3)]
        want = [a.copy() for a in mine]
        compiled = jt.jit(function, inplace=inplace)
        for _ in range(2):
            function(*want)
            compiled(*mine)
            for a, b in zip(mine, want, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-15, err_msg=function.__name__)


def test_require_refuses_copies_with_line_and_reason() -> None:
    @jt.jit(inplace="require")
    def kept(x: Any) -> Any:
        y = x * 2
        z = jt.at(y)[3].set(1.0)
        return y, z

    with pytest.raises(jt.errors.InPlaceError, match="its value before the update is a result too"):
        kept(np.ones(1000))

    @jt.jit(inplace="require")
    def borrowed(x: Any) -> Any:
        return jt.at(x)[3].set(1.0)

    with pytest.raises(
        ValueError, match=r"(?s)`x` belongs to somebody else.*donate_argnums"
    ) as error:
        borrowed(np.ones(1000))
    assert "test_donation.py" in str(error.value)
    f = jt.jit(lambda x: jt.at(x)[3].set(1.0), inplace="require", donate_argnums=0)
    x = np.ones(1000)
    assert f(x) is x and x[3] == 1

    @jt.jit(inplace="require")
    def apart(u: Any) -> None:
        u[:] = u[::-1] * 1.0

    with pytest.raises(jt.errors.InPlaceError, match="copied at the end"):
        apart(np.ones(1000))

    @jt.jit(inplace="require")
    def loop(x: Any) -> Any:
        def body(i: Any, s: Any) -> Any:
            return jt.at(s)[i].set(s[i] + 1.0)

        return jt.fori_loop(0, 10, body, x * 1.5)

    np.testing.assert_array_equal(loop(np.ones(1000))[:11], [2.5] * 10 + [1.5])
    with pytest.raises(ValueError, match="choose None or 'require'"):
        jt.jit(abs, inplace="always")


@pytest.mark.parametrize("n", [7, 100, 30_000])  # in one row, one kernel, shared among threads
def test_what_needs_old_elements_is_computed_before_they_are_overwritten(n: int) -> None:
    def update(m: Any, v: Any, p: Any, g: Any, count: Any) -> None:
        finite = np.all(np.isfinite(g))
        mean, square = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        step = np.where(finite, mean / (np.sqrt(square) + 0.1), 0.0)
        sign = np.sign(0.5 * m + g)
        m[...] = np.where(finite, mean, m)
        v[...] = np.where(finite, square, v)
        p[...] = p - step - sign
        count += np.where(finite, 1, 0)

    compiled = jt.jit(update, inplace="require")
    rng = np.random.default_rng(0)
    ours = [*rng.standard_normal((3, n)) ** 2, rng.standard_normal(n), np.zeros((), int)]
    plain = [x.copy() for x in ours]
    for bad in (0.0, np.inf, 0.0):
        ours[3][-1] = plain[3][-1] = bad
        compiled(*ours)
        update(*plain)
        for mine, other in zip(ours, plain, strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-14)
    assert ours[4] == 2


def test_updates_share_a_loop_with_what_reads_the_old_elements() -> None:
    def update(m: Any, p: Any, g: Any, early: Any) -> None:
        early[...] = 0.9 * m  # the old elements; below it is the new ones
        m[...] = 0.9 * m + g
        p -= 0.9 * m

    compiled = jt.jit(update, inplace="require")
    rng = np.random.default_rng(0)
    ours = list(rng.standard_normal((4, 1003)))
    plain = [x.copy() for x in ours]
    for _ in range(3):
        compiled(*ours)
        update(*plain)
    np.testing.assert_allclose(ours, plain, rtol=1e-14)
    assert len(compiled.lower(*ours).kernels) == 1


def test_explain_tells_memory_and_copies() -> None:
    f = jt.jit(lambda x: (x, jt.at(x)[3].set(1.0), np.sort(x)))
    text = f.explain(np.ones(1000))
    assert "memory: arena" in text and "results 15.62 KiB, peak" in text
    assert "copies 7.805 KiB at test_donation.py:" in text or "copies 7.8" in text


@pytest.mark.parametrize("donated_first", [True, False])
def test_code_for_donated_arguments_is_not_that_of_other_calls(
    tmp_path: Any, donated_first: bool
) -> None:
    """One graph, compiled with and without donation: in this process, and from disk."""

    def function(x: Any, y: Any) -> Any:
        return x * 3 + y

    def call(donate: Any) -> None:
        x, y = np.ones(5), np.ones(5)
        got = jt.jit(function, donate_argnums=donate)(x, y)
        np.testing.assert_array_equal(got, np.full(5, 4.0))
        for k, argument in enumerate((x, y)):
            assert (got is argument) == (k == donate)
            assert got is argument or (argument == 1).all(), "a plain argument was overwritten"

    orders = [0, None, 1] if donated_first else [None, 1, 0]
    with jt.config(cache_dir=tmp_path / "c"):
        for donate in (*orders, *orders):
            call(donate)
        clear_memory_cache()
        for donate in (orders[1], orders[0], orders[2]):
            call(donate)


def test_donation_is_remembered(tmp_path: Any) -> None:
    def make() -> Any:
        return jt.jit(lambda x, y: x * 2 + y, donate_argnums=0)

    with jt.config(cache_dir=tmp_path / "c"):
        for seconds in ("trace", "recall"):
            f, x, y = make(), np.ones(5), np.ones(5)
            assert f(x, y) is x and x[0] == 3
            assert seconds in f.cache_info().entries[0].seconds
            np.testing.assert_array_equal(f(y, y), 3 * np.ones(5))


@pytest.mark.parametrize(("rows", "features", "classes"), [(8, 6, 10), (32, 128, 384)])
def test_indices_are_checked_before_anything_is_written(
    rows: int, features: int, classes: int
) -> None:
    """The gradient of picking a class for each row scatters by the same indices, in the loop that
    writes the weights, or before one over blocks of rows."""

    def loss(w: Any, b: Any, x: Any, labels: Any) -> Any:
        z = x @ w + b
        return -(
            np.take_along_axis(z, labels[:, None], axis=1)[:, 0] - np.log(np.exp(z).sum(1))
        ).sum()

    def update(w: Any, b: Any, m: Any, x: Any, labels: Any) -> Any:
        value, (dw, db) = jt.value_and_grad(loss, argnums=(0, 1))(w, b, x, labels)
        w -= 0.1 * dw / (np.sqrt(dw * dw) + 1)
        m[...] = 0.9 * m + 0.1 * db
        b -= m
        return value

    compiled = jt.jit(update, inplace="require")
    rng = np.random.default_rng(0)
    w, b = rng.standard_normal((features, classes)), rng.standard_normal(classes)
    x, labels = rng.standard_normal((rows, features)) * 0.1, rng.integers(-classes, classes, rows)
    for last in (classes - 1, classes, -classes, -classes - 1):
        labels[-1] = last
        ours, others = ((w.copy(), b.copy(), np.ones(classes)) for _ in "ab")
        if -classes <= last < classes:
            np.testing.assert_allclose(
                compiled(*ours, x, labels), update(*others, x, labels), 1e-12
            )
            assert (ours[0] != w).any()
        else:
            with pytest.raises(IndexError, match=f"index {last} is out of bounds"):
                compiled(*ours, x, labels)
        for mine, other in zip(ours, others, strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-12)
