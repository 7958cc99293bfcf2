"""Code under autograph at run time: assertions, effects, derivatives, arrays under
several names."""

# The programs under test are written as users write them.
# ruff: noqa: F821

from __future__ import annotations

import functools

import numpy as np
import pytest
from autograph_support import BACKENDS, X, agree, auto, both, clipped

import jitney as jt

pytestmark = pytest.mark.usefixtures("traced_numbers")

# Effects and errors at run time


@pytest.mark.parametrize("backend", BACKENDS)
def test_assertions_hold_at_run_time(backend: str) -> None:
    @jt.jit(autograph=True, backend=backend)
    def f(x, n):
        assert x.ndim == 1, "checked while tracing"
        assert x[0] > 0
        total = 0.0
        for i in range(n):
            if i > 2:
                assert x[i] < 10, "too {large}"
            total += x[i]
        return total

    x = np.array([1.0, 20.0, 3.0, 4.0, 50.0])
    assert f(x, 4) == 28.0
    with pytest.raises(AssertionError, match="too {large}"):
        f(x, 5)
    with pytest.raises(AssertionError, match=r"x\[0\] > 0"):
        f(-x, 1)
    with pytest.raises(AssertionError, match="checked while"):
        f(x[0], 1)


def test_side_effects_of_ordinary_code_are_those_of_python() -> None:
    def f(items, log):
        for item in items:
            if item is None or log.append(item) or item == 2:
                continue
            try:
                if item == 4:
                    break
                log.append(-item)
            finally:
                log.append("end")
        else:
            log.append("else")
        while items and items.pop():
            log.append(len(items))
        del item
        try:
            item  # noqa: B018
        except UnboundLocalError as error:
            log.append(str(error))
        return log

    for items in ([1, None, 2, 3], [1, 4, 5], []):
        want = []
        try:
            f(list(items), want)
        except UnboundLocalError as error:
            want.append(str(error))
        got = []

        @auto
        def run(x, items=items, got=got):
            try:
                f(list(items), got)
            except UnboundLocalError as error:
                got.append(str(error))
            return x if x > 0 else -x

        run(1.0)
        assert got == want and len(got) > 1


def test_only_the_branch_taken_is_traced_for_ordinary_conditions() -> None:
    called = []

    @auto(static_argnames="training")
    def f(x, training):
        if training:
            called.append("yes")
            return x * 2
        called.append("no")
        return x

    assert f(1.0, training=True) == 2.0 and called == ["yes"]


def test_globals_and_closures_are_live_and_guarded() -> None:
    table = np.arange(3.0)
    rate = 2.0

    def helper(x):
        return x * rate if x > 0 else x + table[0] + LIMIT

    @auto
    def f(x):
        if x > LIMIT:
            return x - table[1]
        return helper(x)

    global LIMIT
    LIMIT = 10.0
    assert (f(11.0), f(2.0), f(-1.0)) == (10.0, 4.0, 9.0)
    LIMIT, rate = 1.0, 3.0
    table[:] = 100.0
    assert (f(11.0), f(0.5), f(-1.0)) == (-89.0, 1.5, 100.0)
    assert f.cache_info().misses == 2
    f(2.0)
    assert f.cache_info().misses == 2


LIMIT = 0.0
COUNT = 0


def test_nonlocal_and_global_variables_in_branches() -> None:
    def f(x):
        count = 0

        def bump():
            nonlocal count
            if x > 0:
                count += 2
            for _ in range(3):
                count += 1

        bump()
        bump()
        return count

    both(f, (1.0,), (-1.0,), native=False)

    @auto
    def g(x):
        global COUNT
        if COUNT < 10:
            COUNT += 1
        return x if x > 0 else -x

    assert g(-1.0) == 1.0 and COUNT == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_derivatives(backend: str) -> None:
    def branchy(x):
        total = 0.0
        for v in x:
            if v > 0:
                total = total + np.sqrt(v) * v
            elif v < -0.5:
                total = total - v * v
        return total

    def looping(x):
        y = np.sum(x * x)
        n = 0
        while y < 1000.0:
            y = y * (x[1] + 3.0)
            n += 1
            if n > 50:
                break
        return y

    def filling(x):
        out = jt.zeros_like(x)
        for i in range(1, len(x)):
            out[i] = out[i - 1] * 0.5 + x[i] * x[i]
            if out[i] > 2.0:
                out[i] = out[i] * x[i]
        return out.sum()

    for f in (branchy, looping, filling):
        eager = jt.grad(f)(X)
        compiled = jt.jit(jt.grad(f), autograph=True, backend=backend)
        np.testing.assert_allclose(compiled(X), eager, rtol=1e-12)
        step = np.cos(np.arange(5.0)) * 1e-6
        numeric = (f(X + step) - f(X - step)) / 2e-6
        np.testing.assert_allclose(eager @ (step / 1e-6), numeric, rtol=1e-5)
        tangent = jt.jit(
            lambda x, t, f=f: jt.jvp(f, (x,), (t,))[1], autograph=True, backend=backend
        )
        np.testing.assert_allclose(tangent(X, step / 1e-6), numeric, rtol=1e-5)
        inner = jt.jit(f, autograph=True, backend=backend)
        np.testing.assert_allclose(jt.jit(jt.grad(inner), backend=backend)(X), eager, rtol=1e-12)
        np.testing.assert_allclose(jt.grad(inner)(X), eager, rtol=1e-12)


def test_gradient_of_a_branch_is_that_of_the_one_taken() -> None:
    """No NaN of the other side, as jt.where would let through."""

    def f(x):
        if x > 0:
            return np.sqrt(x)
        return x * 2.0

    assert jt.jit(jt.grad(f), autograph=True)(0.0) == 2.0
    assert jt.jit(jt.grad(lambda x: np.log(x) if x > 0 else x), autograph=True)(0.0) == 1.0


def test_what_a_branch_replaces_contributes_nothing() -> None:
    """What comes before the branch may have an infinite derivative there: no 0 * inf."""

    def replaced(x):
        s = np.sqrt(x[0])
        if x[1] > 0:
            s = x[1]
        return s * 2.0

    def chained(x):
        s = np.sqrt(x[0])
        if x[1] < 0:
            s = np.log(s)
        elif x[1] > 0:
            s = x[1]
        if x[1] > 0.5:
            t = np.log(s - s)
            s = t if x[1] < 0 else x[1]
        return s * 2.0

    def of_arrays(x):
        s = np.sqrt(x)
        if x[1] > 0:
            s = x * 2.0
        return s.sum()

    x = np.array([0.0, 1.0])
    for f, expected in ((replaced, [0, 2]), (chained, [0, 2]), (of_arrays, [2, 2])):
        for gradient in (jt.grad(f), jt.jit(jt.grad(f)), jt.jit(jt.jacfwd(f))):
            np.testing.assert_array_equal(gradient(x), expected, f.__name__)


def test_vmap_of_branches_and_loops() -> None:
    def steps(x):
        n = 0
        while x > 1.0:
            x = x * 0.5 if n % 2 == 0 else x - 1.0
            n += 1
        return n

    xs = np.array([0.3, 1.7, 40.0, 9.0])
    for f in (
        jt.jit(jt.vmap(steps), autograph=True),
        jt.vmap(jt.jit(steps, autograph=True)),
        jt.jit(jt.vmap(jt.jit(steps, autograph=True))),
    ):
        np.testing.assert_array_equal(f(xs), [steps(x) for x in xs])


# Arrays under several names


def test_which_array_is_assigned_into() -> None:
    def fresh(x, p):
        y = x + 1
        if p > 0:
            y = y * 2
        y[0] = 5
        for i in range(p):
            y[i] += 1
            y = y * 2
        return y

    def moved(x, n):
        y, z = x + 0, x * 2
        for _ in range(n):
            z = y
            y = y + 1
            z[0] = 2
        return y, z

    def held(x, n):
        y = x + 0
        items = [y]
        for _ in range(n):
            y += 1
            items[0][1] += 1
        return y, items

    def numpys(x, n):
        out, box = np.zeros(4), {"a": np.ones(4)}
        for i in range(n):
            if x[i] > 0:
                out[i] = x[i]
            box["a"][i] += i
        return out, box

    for f in (fresh, moved, held, numpys):
        both(f, (np.arange(4.0), 3), (np.arange(4.0), 0))


def test_tensor_arrays_in_loops() -> None:
    def f(x, n):
        rows = jt.TensorArray(np.float64, 5)
        for i in range(5):
            rows = rows.write(i, x * i)
            if n < 0:
                break
        total = 0.0
        for row in rows.stack():
            total = total + row.sum() * n
        return total

    def growing(x, n):
        values = jt.TensorArray(np.float64, 8)
        i = 0
        while i < 8:
            values = values.write(i, x * i + n)
            i = i + 1 if n > 0 else i + 2 - 1
        return values.stack()

    assert auto(f)(X, 2) == f(X, 2)
    agree(auto(growing)(X, 2), np.outer(np.arange(8), X) + 2)


def test_decorators_and_defaults() -> None:
    def doubled(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return function(*args, **kwargs) * 2

        return wrapper

    @auto
    @doubled
    def f(x, *rest, low=0.0, **options):
        if x < low:
            x = low
        for r in rest:
            x = x + r if r > 0 else x
        return x * options.get("scale", 1.0)

    assert f(-3.0, 1.0, -5.0, low=-1.0, scale=4.0) == 0.0
    assert f(3.0) == 6.0
    assert jt.jit(jt.jit(clipped), autograph=True)(-2.0) == 0.0


def test_what_is_tested_first_raises_first() -> None:
    """An index that is out of bounds is met after the test of the user's that comes before it."""

    def tested(x: Any, i: Any) -> Any:
        if i >= len(x):
            raise ValueError("too large")
        return x[i]

    def asserted(x: Any, i: Any) -> Any:
        assert i < len(x), "too large"
        return x[i]

    def of_arrays(x: Any, i: Any) -> Any:
        i = np.array([0, i])
        if np.max(i) > 2:
            raise ValueError("too large")
        return np.array([x[k] for k in i])

    def afterwards(x: Any, i: Any) -> Any:
        y = x[i]
        if i >= len(x):
            raise ValueError("too large")
        return y

    for f, kind in (
        (tested, ValueError),
        (asserted, AssertionError),
        (of_arrays, ValueError),
        (afterwards, IndexError),
    ):
        compiled = jt.jit(f)
        assert np.array_equal(compiled(np.arange(3.0), 1), f(np.arange(3.0), 1))
        for function in (f, compiled):
            with pytest.raises(kind):
                function(np.arange(3.0), 10)


class Counter:
    def __init__(self) -> None:
        self.n, self.seen = 0, np.zeros(3)

    def above(self, x: Any, t: Any) -> Any:
        self.n += 1
        self.seen[self.n % 3] += x
        return x > t


def _counts(x: Any, t: Any, n: int) -> Any:
    c, k = Counter(), 0
    while c.above(x[k], t):
        t, k = t * 1.5, k + 1
    return t, k, c.n, c.seen


def _counts_in_a_list(x: Any, t: Any, n: int) -> Any:
    asked, k = [0, 1.0], 0

    def above(v: Any) -> Any:
        asked[0] += 1
        asked[1] *= v
        return v > t

    while above(x[k]) and k < 5:
        k += 1
    return k, asked


def _counts_long(x: Any, t: Any, n: int) -> Any:
    c, k = Counter(), 0
    while c.above(x[k % 3], -t) and k < n:
        k = k + 1
        t = np.sin(t) ** 2 + np.cos(t) ** 2 - np.exp(-t) * 0.5
    return t, k, c.n, c.seen


@pytest.mark.parametrize("function", [_counts, _counts_in_a_list, _counts_long])
def test_conditions_of_loops_change_what_they_reach(function: Any) -> None:
    x = np.array([0.9, 0.8, 0.7, 0.9, 0.1, 0.2, 0.3])
    for n in (0, 1, 200):
        got, want = jt.jit(function)(x, 0.1, n), function(x, 0.1, n)
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
