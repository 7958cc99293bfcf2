"""scan, map_fn, foldl, foldr, case, associative_scan, static fori_loop; effects in program order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from backends import BACKENDS, X, both
from hypothesis import given, settings
from hypothesis import strategies as st

import jitney as jt
from jitney.ir.text import print_graph
from jitney.ir.types import I64, TensorType
from jitney.ir.verify import verify
from jitney.tracer.core.effects import check
from jitney.tracer.core.specs import Spec
from jitney.tracer.core.tracing import trace_function
from jitney.tracer.data import pytree

M = np.random.default_rng(0).normal(size=(6, 3))


def unrolled(f: Any, init: Any, xs: Any, reverse: bool = False) -> Any:
    """What scan means, over one array."""
    carry, ys = init, [None] * len(xs)
    for i in reversed(range(len(xs))) if reverse else range(len(xs)):
        carry, ys[i] = f(carry, xs[i])
    return carry, np.stack(ys)


# scan


@pytest.mark.parametrize("unroll", [1, 2, 4, 6, 99, True, False])
@pytest.mark.parametrize("reverse", [False, True])
def test_scan_unrolled_and_in_reverse(wrap: Callable[..., Any], unroll: Any, reverse: bool) -> None:
    def step(c: Any, x: Any) -> Any:
        c = np.tanh(c + x * 0.5)
        return c, c * x

    def f(m: Any) -> Any:
        return jt.scan(step, np.zeros(3), m, reverse=reverse, unroll=unroll)

    want = unrolled(step, np.zeros(3), M, reverse)
    got = wrap(f)(M)
    np.testing.assert_allclose(got[0], want[0], rtol=1e-14)
    np.testing.assert_allclose(got[1], want[1], rtol=1e-14)
    gradient = jt.grad(lambda m: unrolled_loss(step, m, reverse))(M)
    np.testing.assert_allclose(
        wrap(jt.grad(lambda m: np.sum(f(m)[0]) + np.sum(f(m)[1] ** 2)))(M), gradient, rtol=1e-10
    )


def unrolled_loss(step: Any, m: Any, reverse: bool) -> Any:
    carry, ys = unrolled(step, np.zeros(3), m, reverse)
    return np.sum(carry) + np.sum(ys**2)


def test_scan_trees_closures_and_nothing() -> None:
    table = np.arange(5.0)

    def f(x: Any) -> Any:
        scale = np.exp(x)

        def step(c: Any, x: Any) -> Any:
            new = {"n": c["n"] + 1, "v": c["v"] + scale * table * x["a"][0]}
            return new, (x["a"][1], {"sum": np.sum(new["v"]), "nothing": None})

        xs = {"a": (x * 2, np.outer(x, x)), "b": None}
        return jt.scan(step, {"n": 0, "v": np.zeros(5)}, xs)

    def without_ys(x: Any) -> Any:
        return jt.scan(lambda c, x: (c * 0.5 + x, None), 0.0, x)

    def without_xs(x: Any) -> Any:
        return jt.scan(lambda c, _: (np.sin(c), np.sum(c)), x, None, length=4)

    def without_carry(x: Any) -> Any:
        return jt.scan(lambda _, x: (None, x**2), None, x)

    for g in (f, without_ys, without_xs, without_carry):
        both(g, X)


def test_scan_promotes_python_numbers(wrap: Callable[..., Any]) -> None:
    for dtype in (np.float32, np.float64, np.int16):
        x = np.arange(4).astype(dtype)
        carry, ys = wrap(lambda x: jt.scan(lambda c, x: (c + x, c), 0, x))(x)
        assert carry.dtype == ys.dtype == dtype and carry == 6
        assert ys.tolist() == [0, 0, 1, 3]
    total, ys = wrap(lambda x: jt.scan(lambda c, x: (c + 1, c), 0, x))(X)
    assert type(total) is int and ys.dtype == np.int64


def test_scan_of_length_zero(wrap: Callable[..., Any]) -> None:
    def f(x: Any) -> Any:
        return jt.scan(lambda c, x: ((c[0] + x[0], c[1]), (x[:2], 1.0)), (0, np.zeros(2)), x)

    (a, b), (ys, ones) = wrap(f)(np.zeros((0, 3), np.float32))
    assert a.dtype == np.float32 and a == 0
    assert b.shape == (2,) and ys.shape == (0, 2) and ys.dtype == np.float32
    assert ones.shape == (0,) and ones.dtype == np.float64


def test_assignment_in_the_body_stays_there(wrap: Callable[..., Any]) -> None:
    def f(x: Any, init: Any) -> Any:
        def step(c: Any, row: Any) -> Any:
            c[0] += row[0]
            row[1] = 100.0
            return c, (c, row)

        return jt.scan(step, init, x)

    x, init = M.copy(), np.zeros(2)
    carry, (seen, rows) = wrap(f)(x, init)
    np.testing.assert_array_equal(x, M)
    np.testing.assert_array_equal(init, 0)
    np.testing.assert_allclose(seen[:, 0], np.cumsum(M[:, 0]), rtol=1e-14)
    np.testing.assert_allclose(carry, seen[-1], rtol=1e-14)
    np.testing.assert_array_equal(rows[:, 1], 100.0)
    np.testing.assert_array_equal(rows[:, 2], M[:, 2])


@pytest.mark.usefixtures("traced_numbers")
def test_scan_errors(jit: Callable[..., Any]) -> None:
    ok = lambda c, x: (c, x)  # noqa: E731
    for f in (lambda g: g, jit):
        with pytest.raises(ValueError, match=r"(?s)xs\['a'\] has 5, xs\['b'\] has 4"):
            f(lambda x: jt.scan(ok, 0.0, {"a": x, "b": x[1:]}))(X)
        with pytest.raises(ValueError, match="length has 3, xs has 5"):
            f(lambda x: jt.scan(ok, 0.0, x, length=3))(X)
        with pytest.raises(ValueError, match="length=n"):
            f(lambda x: jt.scan(ok, x))(X)
        with pytest.raises(ValueError, match=r"xs\[0\] has none"):
            f(lambda x: jt.scan(ok, 0.0, [x[0], x[1]]))(X)
        with pytest.raises(TypeError, match=r"(?s)must return a pair \(carry, y\).*\*") as info:
            f(lambda x: jt.scan(lambda c, x: c + x, 0.0, x))(X)
        assert "test_scan.py" in str(info.value)
        with pytest.raises(TypeError, match="unroll"):
            f(lambda x: jt.scan(ok, 0.0, x, unroll=0))(X)
        with pytest.raises(TypeError, match="callable"):
            f(lambda x: jt.scan(None, 0.0, x))(X)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="fori_loop"):
        jit(lambda n: jt.scan(ok, 0.0, None, length=n))(3)
    with pytest.raises(TypeError, match=r"(?s)at c\[1\].*f64\[\].*f returns f64\[5\]") as info:
        jit(lambda x: jt.scan(lambda c, t: ((c[0], x), t), (0.0, x[0]), x))(X)
    assert "test_scan.py" in str(info.value)
    with pytest.raises(TypeError, match=r"(?s)carry of scan changes its structure"):
        jit(lambda x: jt.scan(lambda c, t: ((c, c), t), x, x))(X)


@pytest.mark.parametrize("loop", ["while", "for", "static for", "scan", "foldl"])
def test_a_carry_that_grows_names_it_and_tensor_array(jit: Callable[..., Any], loop: str) -> None:
    def f(x: Any, n: Any) -> Any:
        grow = lambda c: {"h": np.concatenate([c["h"], x]), "k": c["k"]}  # noqa: E731
        init = {"h": x, "k": 0.0}
        if loop == "while":
            return jt.while_loop(lambda c: c["h"][0] < n, grow, init)
        if loop == "scan":
            return jt.scan(lambda c, _: (grow(c), None), init, x)
        if loop == "foldl":
            return jt.foldl(lambda c, _: grow(c), x, init)
        return jt.fori_loop(0, n if loop == "for" else 3, lambda i, c: grow(c), init)

    with pytest.raises(TypeError) as info:
        jit(f)(X, 3)
    text = str(info.value)
    assert " c['h']" in text and "f64[5]" in text and "f64[10]" in text
    assert "test_scan.py" in text and "jt.TensorArray" in text.splitlines()[-1]


def test_a_number_that_becomes_an_array(jit: Callable[..., Any]) -> None:
    with pytest.raises(
        TypeError, match=r"(?s)a Python float.*f64\[5\].*np.zeros\(\(5,\), 'float64'"
    ):
        jit(lambda x: jt.fori_loop(0, 3, lambda i, c: c + x, 0.0))(X)


# fori_loop with static bounds is a scan


@pytest.mark.parametrize("bounds", [(0, 7), (-2, 3), (4, 4), (5, 1)])
def test_static_fori_loop_unrolled(wrap: Callable[..., Any], bounds: tuple[int, int]) -> None:
    def f(x: Any, unroll: Any) -> Any:
        return jt.fori_loop(*bounds, lambda i, c: np.sin(c) + x * i, x, unroll=unroll)

    want = X
    for i in range(*bounds):
        want = np.sin(want) + X * i
    for unroll in (1, 3, True):
        got = wrap(lambda x, unroll=unroll: f(x, unroll))(X)
        np.testing.assert_allclose(got, want, rtol=1e-13)


@pytest.mark.usefixtures("traced_numbers")
def test_fori_loop_checkpoint_and_unroll(jit: Callable[..., Any]) -> None:
    def f(x: Any, **options: Any) -> Any:
        return np.sum(jt.fori_loop(0, 9, lambda i, c: np.sin(c) * x + i, x, **options))

    want = jt.grad(f)(X)
    for options in ({}, {"checkpoint": "all"}, {"checkpoint": "sqrt"}, {"checkpoint": 2}):
        got = jit(jt.grad(lambda x, o=options: f(x, **o)))(X)
        np.testing.assert_allclose(got, want, rtol=1e-12, err_msg=str(options))
    for bad in ("some", 0, True, 1.5):
        with pytest.raises(TypeError, match="checkpoint"):
            jit(lambda x, bad=bad: f(x, checkpoint=bad))(X)
        with pytest.raises(TypeError, match="checkpoint"):
            jt.while_loop(lambda c: c < 0, lambda c: c, 1.0, checkpoint=bad)
    with pytest.raises(TypeError, match="not both"):
        jit(lambda x: f(x, checkpoint="sqrt", unroll=2))(X)
    with pytest.raises(TypeError, match="known while tracing"):
        jit(lambda n: jt.fori_loop(0, n, lambda i, c: c + i, 0, unroll=2))(4)


# map_fn and folds


def test_map_fn() -> None:
    def tuples(x: Any) -> Any:
        return jt.map_fn(lambda t: (t[0] + t[1], np.sum(t[0] * t[1])), (x, np.flip(x)))

    def single(x: Any) -> Any:
        return jt.map_fn(lambda v: v * v, x)

    for f in (tuples, single):
        both(f, M)
        both(f, M[:0])


def test_map_fn_dtype(wrap: Callable[..., Any]) -> None:
    f = wrap(lambda x: jt.map_fn(lambda v: (v, v > 0), x, dtype=(np.float64, bool)))
    assert f(X)[1].dtype == bool
    with pytest.raises(TypeError, match=r"float64 at result\[0\], not dtype=float32"):
        wrap(lambda x: jt.map_fn(lambda v: (v, v), x, dtype=np.float32))(X)
    with pytest.raises(TypeError, match="structure"):
        wrap(lambda x: jt.map_fn(lambda v: v, x, dtype=(np.float64, np.float64)))(X)


def test_folds(wrap: Callable[..., Any]) -> None:
    def f(x: Any) -> Any:
        return (
            jt.foldl(lambda a, b: a * 0.5 + b, x),
            jt.foldr(lambda a, b: a * 0.5 + b, x),
            jt.foldl(lambda a, b: a - b, x, 10.0),
            jt.foldr(lambda a, b: {"s": a["s"] - b}, x, {"s": 1}),
        )

    def plain(x: Any, start: Any = None) -> Any:
        acc, rest = (x[0], x[1:]) if start is None else (start, x)
        for v in rest:
            acc = acc * 0.5 + v
        return acc

    left, right, minus, tree = wrap(f)(X)
    np.testing.assert_allclose(left, plain(X))
    np.testing.assert_allclose(right, plain(X[::-1]))
    np.testing.assert_allclose([minus, tree["s"]], [10 - X.sum(), 1 - X.sum()])
    assert wrap(lambda x: jt.foldl(np.add, x, 0.5))(X[:0]) == 0.5
    with pytest.raises(ValueError, match="initializer"):
        wrap(lambda x: jt.foldr(np.add, x))(X[:0])


# case


def test_case(wrap: Callable[..., Any]) -> None:
    def f(x: Any) -> Any:
        pairs = [(x < 0, lambda: -x), (x < 10, lambda: x * 2), (x < 100, lambda: x * 3)]
        return jt.case(pairs, default=lambda: 0.0)

    for x, want in ((-3.0, 3.0), (5.0, 10.0), (50.0, 150.0), (500.0, 0.0)):
        assert wrap(f)(x) == want
    assert wrap(jt.grad(f))(50.0) == 3.0
    strict = lambda x: jt.case([(x > 0, lambda: 1), (x > 5, lambda: 2)], exclusive=True)  # noqa: E731
    assert wrap(strict)(3.0) == 1
    with pytest.raises(AssertionError, match="several predicates"):
        wrap(strict)(9.0)
    with pytest.raises(AssertionError, match="no predicate"):
        wrap(strict)(-9.0)
    assert wrap(lambda x: jt.case([(x > 0, lambda: x), (True, lambda: 7.0)]))(-1.0) == 7.0


def test_case_errors() -> None:
    with pytest.raises(TypeError, match="pair 0"):
        jt.case([1])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="predicate 1 of case"):
        jt.case([(True, lambda: 1), (1.5, lambda: 2)])
    with pytest.raises(ValueError, match="no pair"):
        jt.case([])


def test_cond_without_operands_by_keyword(wrap: Callable[..., Any]) -> None:
    f = wrap(lambda x: jt.cond(x > 0, true_fn=lambda: x * 2, false_fn=lambda: -x))
    assert f(2.0) == 4.0 and f(-2.0) == 2.0


# associative_scan


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 7, 8, 33])
def test_associative_scan_sums(wrap: Callable[..., Any], n: int, reverse: bool) -> None:
    x = np.arange(1, 2 * n + 1).reshape(n, 2)
    got = wrap(lambda x: jt.associative_scan(np.add, x, reverse=reverse))(x)
    want = np.cumsum(x[::-1], 0)[::-1] if reverse else np.cumsum(x, 0)
    np.testing.assert_array_equal(got, want)
    got = wrap(lambda x: jt.associative_scan(np.maximum, x, reverse=reverse, axis=-1))(x.T)
    np.testing.assert_array_equal(
        got, np.maximum.accumulate(x[::-1].T if reverse else x.T, 1)[:, :: -1 if reverse else 1]
    )


def test_associative_scan_of_matrices_and_of_linear_recurrences(wrap: Callable[..., Any]) -> None:
    def recurrence(a: Any, b: Any) -> Any:
        """h = a h + b, as a prefix of affine maps: not commutative."""
        return jt.associative_scan(
            lambda f, g: {"a": f["a"] * g["a"], "b": g["a"] * f["b"] + g["b"]}, {"a": a, "b": b}
        )["b"]

    def sequential(a: Any, b: Any) -> Any:
        return jt.scan(lambda h, t: (t[0] * h + t[1],) * 2, np.zeros(3), (a, b))[1]

    a, b = 0.5 * M, np.cos(M)
    np.testing.assert_allclose(wrap(recurrence)(a, b), sequential(a, b), rtol=1e-12)
    weight = np.linspace(0, 1, 18).reshape(6, 3)
    grads = [
        wrap(lambda a, b, f=f: jt.grad(lambda a, b: np.sum(f(a, b) * weight), (0, 1))(a, b))(a, b)
        for f in (recurrence, sequential)
    ]
    for got, want in zip(*grads, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-11)
    m = np.random.default_rng(1).normal(size=(5, 2, 2))
    products = wrap(lambda m: jt.associative_scan(lambda x, y: y @ x, m))(m)
    want = m[0]
    for i in range(1, 5):
        want = m[i] @ want
        np.testing.assert_allclose(products[i], want, rtol=1e-12)


def test_associative_scan_errors() -> None:
    with pytest.raises(np.exceptions.AxisError, match="axis 1"):
        jt.associative_scan(np.add, X, axis=1)
    with pytest.raises(ValueError, match=r"elems\[0\] has 5, elems\[1\] has 6"):
        jt.associative_scan(lambda a, b: a, (X, M))
    with pytest.raises(TypeError, match="changes a shape"):
        jt.associative_scan(lambda a, b: np.sum(a + b), X)
    with pytest.raises(TypeError, match="returns"):
        jt.associative_scan(lambda a, b: (a, b), X)


# Random scans: structure, order and unrolling against the plain loop, values and derivatives.

STEPS: list[Callable[[Any, Any], Any]] = [
    lambda c, x: (np.sin(c) * x, c + x),
    lambda c, x: (c * 0.9 + jt.cond(x > 0, lambda: np.cos(c), lambda: c * x), np.sum(c) * x),
    lambda c, x: (jt.fori_loop(0, 3, lambda i, k: k * 0.5 + x * i, c), c[:2]),
    lambda c, x: (jt.scan(lambda k, v: (k * v, k), c, c)[0] * 0.1 + x, c[::-1]),
]


@settings(max_examples=8, deadline=None)
@given(
    st.sampled_from(STEPS), st.integers(1, 6), st.integers(1, 4), st.booleans(),
    st.sampled_from(BACKENDS), st.integers(0, 9),
)  # fmt: skip
def test_random_scans(
    step: Any, n: int, unroll: int, reverse: bool, backend: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    init, xs = rng.normal(size=3), rng.normal(size=n)

    def f(init: Any, xs: Any) -> Any:
        return jt.scan(step, init, xs, reverse=reverse, unroll=unroll)

    def loss(init: Any, xs: Any) -> Any:
        carry, ys = f(init, xs)
        return np.sum(carry) + np.sum(ys**2)

    def plain_loss(init: Any, xs: Any) -> Any:
        carry, ys = unrolled(step, init, xs, reverse)
        return np.sum(carry) + np.sum(ys**2)

    compiled = jt.jit(
        lambda init, xs: (f(init, xs), jt.grad(loss, (0, 1))(init, xs)), backend=backend
    )
    (carry, ys), gradients = compiled(init, xs)
    want = unrolled(step, init, xs, reverse)
    np.testing.assert_allclose(carry, want[0], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(ys, want[1], rtol=1e-12, atol=1e-14)
    for got, wanted in zip(gradients, jt.grad(plain_loss, (0, 1))(init, xs), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-11)


# Effects: the first check that fails in program order is the one that is raised.


def limits(x: Any, n: Any) -> Any:
    """Checks before, inside and after branches and loops; x tells which fail: bit k for check k."""

    def holds(k: int, extra: Any = True) -> None:
        check(np.logical_or(x & (1 << k) == 0, np.logical_not(extra)), f"check {k}")

    holds(0)

    def branch() -> Any:
        holds(1)
        return x + 1

    y = jt.cond(n > 0, branch, lambda: x)

    def body(i: Any, c: Any) -> Any:
        holds(3, i == 2)
        holds(2, i == 1)
        return jt.cond(i > 2, lambda: (holds(4, i == 3), c + i)[1], lambda: c)

    y = jt.fori_loop(0, n, body, y)

    def step(c: Any, i: Any) -> Any:
        holds(6, i == 0)
        holds(5, i == 4)
        return c + i, c

    y, _ = jt.scan(step, y, np.arange(5), reverse=True)

    def go_on(c: Any) -> Any:
        holds(7, c[0] == 1)
        return c[0] < 3

    def last(c: Any) -> Any:
        holds(8, c[0] == 0)
        return c[0] + 1, c[1]

    y = jt.while_loop(go_on, last, (0, y))[1]
    holds(9)
    return y


ORDER = [0, 1, 2, 3, 4, 5, 6, 8, 7, 9]  # as the program runs


@pytest.mark.parametrize("backend", BACKENDS)
@settings(max_examples=20, deadline=None)
@given(failing=st.sets(st.integers(0, 9)))
def test_effects_happen_in_program_order(backend: str, failing: set[int]) -> None:
    f = LIMITS[backend]
    x = sum(1 << k for k in failing)
    if not failing:
        f(x, 5)
        return
    first = next(k for k in ORDER if k in failing)
    with pytest.raises(AssertionError, match=f"check {first}"):
        f(x, 5)


LIMITS = {backend: jt.jit(limits, backend=backend) for backend in BACKENDS}


def test_regions_with_effects_share_one_thread() -> None:
    specs = [Spec(TensorType((), I64))] * 2
    tree = pytree.flatten(((0, 0), {}))[1]
    graph = trace_function(limits, specs, tree).graph
    verify(graph)
    names = [op.name for op in graph.walk()]
    assert names.count("create_token") == 1, "regions take the token in instead of making one"
    assert print_graph(graph).count("token") > 10


def test_effects_under_derivatives(jit: Callable[..., Any]) -> None:
    def f(x: Any, n: Any) -> Any:
        def body(i: Any, c: Any) -> Any:
            check(c < 100, "too large: {0}", c)
            return c * x

        return jt.fori_loop(0, n, body, x) * jt.fori_loop(0, 2, body, x)

    forward = lambda x, n: jt.jvp(lambda x: f(x, n), (x,), (1.0,))[1]  # noqa: E731
    for g in (jt.grad(f), forward):
        assert jit(g)(2.0, 3) == 7 * 2.0**6
        with pytest.raises(AssertionError, match="too large: 128"):
            jit(g)(2.0, 9)
