"""Derivative rules: central differences, forward against reverse, twice, and the odd points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jitney.ir.autodiff import is_differentiable, jvp_graph, vjp_graph
from jitney.ir.build import Builder
from jitney.ir.graph import Graph, Value
from jitney.ir.interpreter import evaluate
from jitney.ir.opdef import OPS, DerivativeError
from jitney.ir.ops.sampling import Case, cases
from jitney.ir.ops.term import Term, where
from jitney.ir.types import F32, F64, I32, I64, TensorType, type_of

Array = np.ndarray


def differentiable(name: str) -> list[Case]:
    return [c for c in cases(OPS[name]) if c.dtype == F64 and floats(c.graph().params)]


def floats(values: Sequence[Value]) -> list[int]:
    return [i for i, v in enumerate(values) if is_differentiable(v.type)]


def norm_product(xs: Sequence[Array], ys: Sequence[Array]) -> float:
    return float(sum(np.sum(x * y) for x, y in zip(xs, ys, strict=True)))


def check_derivatives(graph: Graph, arrays: list[Array], rng: np.random.Generator) -> None:
    """jvp and vjp along a random direction against central differences, and each other."""
    wrt, outs = floats(graph.params), floats(graph.outputs)
    direction = [rng.normal(size=arrays[i].shape) for i in wrt]
    weights = [rng.normal(size=graph.outputs[i].shape) for i in outs]

    def along(h: float) -> list[Array]:
        moved = list(arrays)
        for i, d in zip(wrt, direction, strict=True):
            moved[i] = arrays[i] + h * d
        results = evaluate(graph, moved)
        return [results[i] for i in outs]

    # Two step sizes, extrapolated: the error is of fourth order.
    coarse, fine = 2e-4, 1e-4
    d1 = [(p - m) / (2 * coarse) for p, m in zip(along(coarse), along(-coarse), strict=True)]
    d2 = [(p - m) / (2 * fine) for p, m in zip(along(fine), along(-fine), strict=True)]
    expected = [(4 * b - a) / 3 for a, b in zip(d1, d2, strict=True)]

    forward = evaluate(jvp_graph(graph, wrt), [*arrays, *direction])[len(graph.outputs) :]
    for got, want in zip(forward, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7)
    backward = evaluate(vjp_graph(graph, wrt), [*arrays, *weights])[len(graph.outputs) :]
    for i, grad in zip(wrt, backward, strict=True):
        assert type_of(grad) == graph.params[i].type
    left, right = norm_product(weights, forward), norm_product(backward, direction)
    np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-9)


WITH_RULES = [n for n in sorted(OPS) if OPS[n].vjp is not None and OPS[n].extra["examples"]]


@pytest.mark.parametrize("name", WITH_RULES)
def test_first_derivative(name: str) -> None:
    rng = np.random.default_rng(3)
    found = differentiable(name)
    assert found
    for case in found:
        graph = case.graph()
        if name == "stop_gradient":
            (x,) = case.sample(rng)
            assert not evaluate(vjp_graph(graph, [0]), [x, x + 1])[1].any()
        elif case.example.attrs.get("dtype", F64) == F64:  # not a conversion to something narrow
            check_derivatives(graph, case.sample(rng), rng)


@pytest.mark.parametrize("name", [n for n in WITH_RULES if n != "stop_gradient"])
def test_second_derivative(name: str) -> None:
    rng = np.random.default_rng(4)
    for case in differentiable(name):
        if case.example.attrs.get("dtype", F64) != F64:
            continue
        graph = case.graph()
        backward = vjp_graph(graph, floats(graph.params))
        backward.outputs = backward.outputs[len(graph.outputs) :]
        cts = [rng.normal(size=v.shape) for v in graph.outputs]
        check_derivatives(backward, [*case.sample(rng), *cts], rng)


@pytest.mark.parametrize("name", WITH_RULES)
def test_float32_stays_float32(name: str) -> None:
    rng = np.random.default_rng(5)
    for case in cases(OPS[name]):
        graph = case.graph()
        wrt = floats(graph.params)
        if case.dtype != F32 or not wrt or not floats(graph.outputs):
            continue
        arrays = case.sample(rng)
        cts = [rng.normal(size=graph.outputs[i].shape) for i in floats(graph.outputs)]
        cts = [np.asarray(c, graph.outputs[0].dtype) for c in cts]
        got = evaluate(vjp_graph(graph, wrt), [*arrays, *cts])[len(graph.outputs) :]
        assert all(g.dtype == np.float32 for g in got)
        tangents = [np.ones_like(arrays[i]) for i in wrt]
        (*_, tangent) = evaluate(jvp_graph(graph, wrt), [*arrays, *tangents])
        assert tangent.dtype == graph.outputs[0].dtype


# Conventions at points where the derivative does not exist, or a formula would fail.


def build(f: Callable[..., Term], *arrays: Array) -> Graph:
    graph = Graph("f")
    params = [graph.add_param(type_of(a)) for a in arrays]
    b = Builder(graph)
    graph.outputs = [f(*(Term(b, p) for p in params)).value]
    return graph


def grad(f: Callable[..., Term], *arrays: object) -> list[Array]:
    """Gradient of sum(f(*arrays)); reverse and forward must agree."""
    xs = [np.asarray(a, np.float64) for a in arrays]
    graph = build(f, *xs)
    wrt = list(range(len(xs)))
    ones = np.ones(graph.outputs[0].shape)
    result = evaluate(vjp_graph(graph, wrt), [*xs, ones])[1:]
    for i in wrt:  # forward, one basis vector at a time
        flat = np.zeros(xs[i].size)
        for k in range(xs[i].size):
            basis = np.zeros(xs[i].size)
            basis[k] = 1
            tangents = [np.zeros_like(x) for x in xs]
            tangents[i] = basis.reshape(xs[i].shape)
            with np.errstate(all="ignore"):
                flat[k] = np.sum(evaluate(jvp_graph(graph, wrt), [*xs, *tangents])[1])
        if np.isfinite(flat).all():
            np.testing.assert_allclose(result[i], flat.reshape(xs[i].shape), rtol=1e-12)
    return result


inf, nan = np.inf, np.nan
CONVENTIONS: list[tuple[str, Callable[..., Term], list[object], list[object]]] = [
    ("abs at 0", lambda x: x.abs(), [[0.0, -0.0, 2.0]], [[0, 0, 1]]),
    ("sign", lambda x: x.sign(), [[0.0, -2.0]], [[0, 0]]),
    ("sqrt at 0", lambda x: x.sqrt(), [[0.0, 4.0]], [[inf, 0.25]]),
    ("hypot at 0", lambda x, y: x.hypot(y), [0.0, 0.0], [0, 0]),
    ("hypot over the top", lambda x, y: x.hypot(y), [3e200, 4e200], [0.6, 0.8]),
    ("arctan2 far out", lambda x, y: x.arctan2(y), [0.0, 1e200], [1e-200, 0]),
    ("maximum ties", lambda x, y: x.maximum(y), [[1.0, 2.0], [1.0, 1.0]], [[0.5, 1], [0.5, 0]]),
    ("minimum ties", lambda x, y: x.minimum(y), [[1.0, 2.0], [1.0, 1.0]], [[0.5, 0], [0.5, 1]]),
    ("maximum of infinities", lambda x, y: x.maximum(y), [inf, inf], [0.5, 0.5]),
    ("fmax drops NaN", lambda x, y: x.fmax(y), [[nan, 1.0], [1.0, nan]], [[0, 1], [1, 0]]),
    ("fmin drops NaN", lambda x, y: x.fmin(y), [[nan, 1.0], [1.0, nan]], [[0, 1], [1, 0]]),
    ("pow: exponent at base 0", lambda x, y: x**y, [0.0, 2.0], [0, 0]),
    ("pow: exponent 0", lambda x, y: x**y, [0.0, 0.0], [0, 0]),
    ("pow: exponent 1 at base 0", lambda x, y: x**y, [0.0, 1.0], [1, 0]),
    ("pow: negative base", lambda x: x**3, [-2.0], [12]),
    ("logaddexp of -inf", lambda x, y: x.logaddexp(y), [-inf, 0.0], [0, 1]),
    ("logaddexp far apart", lambda x, y: x.logaddexp(y), [1000.0, 0.0], [1, 0]),
    ("logaddexp of inf", lambda x, y: x.logaddexp(y), [inf, 0.0], [1, 0]),
    ("tanh saturates", lambda x: x.tanh(), [[30.0, -400.0]], [[0, 0]]),
    ("floor", lambda x: x.floor(), [[1.0, 1.5]], [[0, 0]]),
    ("copysign", lambda x, y: x.copysign(y), [[2.0, -2.0], [-1.0, -0.0]], [[-1, 1], [0, 0]]),
    ("copysign at 0", lambda x, y: x.copysign(y), [0.0, 1.0], [0, 0]),
    ("heaviside", lambda x, y: x.heaviside(y), [[0.0, 1.0], [0.5, 0.5]], [[0, 0], [1, 0]]),
    ("arctan far out", lambda x: x.arctan(), [1e200], [0]),
    ("arcsinh far out", lambda x: x.arcsinh(), [1e200], [1e-200]),
]  # fmt: skip


@pytest.mark.parametrize(
    "f, args, expected", [c[1:] for c in CONVENTIONS], ids=[c[0] for c in CONVENTIONS]
)
def test_convention(f: Callable[..., Term], args: list[object], expected: list[object]) -> None:
    for got, want in zip(grad(f, *args), expected, strict=True):
        np.testing.assert_allclose(got, np.asarray(want, np.float64), rtol=1e-12, atol=1e-14)


def op(name: str, **attrs: object) -> Callable[..., Term]:
    return lambda x, *more: Term(x.b, x.b.op(name, x.value, *(m.value for m in more), **attrs))


@pytest.mark.parametrize(
    "name, x, expected",
    [
        ("max", [3.0, 1.0, 3.0, 3.0], [1 / 3, 0, 1 / 3, 1 / 3]),
        ("min", [1.0, 1.0, 3.0, inf], [0.5, 0.5, 0, 0]),
        ("max", [inf, 1.0, inf, 0.0], [0.5, 0, 0.5, 0]),
        ("prod", [2.0, 0.0, 3.0, 5.0], [0, 30, 0, 0]),
        ("prod", [2.0, 0.0, 3.0, 0.0], [0, 0, 0, 0]),
    ],
)
def test_reductions_at_ties_and_zeros(name: str, x: list[float], expected: list[float]) -> None:
    (got,) = grad(op(name, axes=(0,)), x)
    np.testing.assert_allclose(got, expected, rtol=1e-12)


@pytest.mark.parametrize("reverse", [False, True])
def test_cumprod_with_zeros(reverse: bool) -> None:
    x = np.array([2.0, 0.0, 3.0, 0.0, 5.0])
    jacobian = np.zeros((5, 5))
    for k in range(5):
        for j in range(k + 1) if not reverse else range(k, 5):
            others = [i for i in (range(k + 1) if not reverse else range(k, 5)) if i != j]
            jacobian[k, j] = np.prod(x[others])
    (got,) = grad(op("cumprod", axis=0, reverse=reverse), x)
    np.testing.assert_allclose(got, jacobian.sum(0))


def test_hessian_of_prod_with_two_zeros() -> None:
    """d2 / dx0 dx1 of x0 * x1 * x2 is x2, also at x0 = x1 = 0."""
    graph = build(op("prod", axes=(0,)), np.zeros(3))
    gradient = vjp_graph(graph, [0])
    gradient.outputs = gradient.outputs[1:]
    x, one = np.array([0.0, 0.0, 7.0]), np.float64(1)
    columns = [evaluate(jvp_graph(gradient, [0]), [x, one, basis])[1] for basis in np.eye(3)]
    np.testing.assert_array_equal(columns, [[0, 7, 0], [7, 0, 0], [0, 0, 0]])


def test_cummax_gives_ties_to_the_latest() -> None:
    x = [1.0, 3.0, 2.0, 3.0, 0.0]
    assert grad(op("cummax", axis=0, reverse=False), x)[0].tolist() == [1, 2, 0, 2, 0]
    assert grad(op("cummax", axis=0, reverse=True), x)[0].tolist() == [0, 2, 0, 2, 1]
    assert grad(op("cummin", axis=0, reverse=False), x)[0].tolist() == [4, 0, 0, 0, 1]


def scatter(combine: str, index: list[int]) -> Callable[..., Term]:
    def f(x: Term, u: Term) -> Term:
        b = x.b
        i = b.const(index, I64)
        attrs = {"axes": (0,), "mode": "check", "combine": combine}
        return Term(b, b.op("scatter", x.value, u.value, i, **attrs))

    return f


@pytest.mark.parametrize(
    "combine, x, u, dx, du",
    [
        ("set", [1, 2, 3], [7, 8, 9], [1, 0, 0], [0, 1, 1]),
        ("add", [1, 2, 3], [7, 8, 9], [1, 1, 1], [1, 1, 1]),
        ("multiply", [1, 2, 3], [7, 8, 9], [1, 56, 9], [16, 14, 3]),
        ("multiply", [1, 2, 3], [0, 8, 9], [1, 0, 9], [16, 0, 3]),
        ("multiply", [1, 2, 3], [0, 0, 0], [1, 0, 0], [0, 0, 3]),
        ("max", [1, 8, 9], [8, 8, 9], [1, 1 / 3, 0.5], [1 / 3, 1 / 3, 0.5]),
        ("min", [1, 2, 10], [2, 8, 9], [1, 0.5, 0], [0.5, 0, 1]),
    ],
)
def test_scatter_with_duplicates(
    combine: str, x: list[float], u: list[float], dx: list[float], du: list[float]
) -> None:
    got = grad(scatter(combine, [1, 1, -1]), x, u)
    np.testing.assert_allclose(got, [dx, du])


# The branch not taken contributes nothing.

X = [-1.0, 0.0, 0.25, 4.0]


def half(x: Term) -> Term:
    return x * 0.5


def safe(x: Term) -> Term:
    return where(x > 0, x, 1)


def moved(x: Term) -> Term:
    b, v = x.b, x.value
    v = b.op("reshape", b.op("flip", v, axes=(0,)), shape=(2, 2))
    v = b.op("transpose", b.op("transpose", v, perm=(1, 0)), perm=(1, 0))
    return Term(b, b.op("reshape", v, shape=(4,)))


def flipped(x: Term) -> Term:
    return Term(x.b, x.b.op("flip", x.value, axes=(0,)))


MASKED: dict[str, tuple[Callable[[Term], Term], Callable[[Term], Term]]] = {
    # What a user writes, then the double-where form.
    "sqrt": (lambda x: where(x > 0, x.sqrt(), 0), lambda x: where(x > 0, safe(x).sqrt(), 0)),
    "log on the other side": (
        lambda x: where(x <= 0, half(x), x.log()),
        lambda x: where(x <= 0, half(x), safe(x).log()),
    ),
    "chain": (
        lambda x: where(x > 0, (x.sqrt().log() * 3).exp() / x, 0),
        lambda x: where(x > 0, (safe(x).sqrt().log() * 3).exp() / safe(x), 0),
    ),
    "sum of two bad parts": (
        lambda x: where(x > 0, x.sqrt() + x.log(), x),
        lambda x: where(x > 0, safe(x).sqrt() + safe(x).log(), x),
    ),
    "nested where": (  # where x < 0 the inner mask holds and the outer one does not
        lambda x: where(x > 0, where(x < 1, x.sqrt(), x.log()), 0),
        lambda x: where(x > 0, where(x < 1, safe(x).sqrt(), safe(x).log()), 0),
    ),
    "negated": (
        lambda x: where(x > 0, -(x.log() - x.sqrt()), 1),
        lambda x: where(x > 0, -(safe(x).log() - safe(x).sqrt()), 1),
    ),
    "through movement": (
        lambda x: where(flipped(x) > 0, moved(x.sqrt()), 0),
        lambda x: where(flipped(x) > 0, moved(safe(x).sqrt()), 0),
    ),
    "quotient": (
        lambda x: where(x > 0, x.sin() / x, 1),
        lambda x: where(x > 0, safe(x).sin() / safe(x), 1),
    ),
    "pow": (lambda x: where(x > 0, x**0.5, 0), lambda x: where(x > 0, safe(x) ** 0.5, 0)),
}


@pytest.mark.parametrize("name", MASKED)
def test_where_equals_double_where(name: str) -> None:
    plain, double = MASKED[name]
    (got,), (want,) = grad(plain, X), grad(double, X)
    assert np.isfinite(want).all()
    np.testing.assert_allclose(got, want, rtol=1e-14)


@pytest.mark.parametrize("name", MASKED)
def test_where_equals_double_where_twice(name: str) -> None:
    def second(f: Callable[[Term], Term]) -> list[Array]:
        x, ones = np.array(X), np.ones(4)
        gradient = vjp_graph(build(f, x), [0])
        gradient.outputs = gradient.outputs[1:]
        reverse = evaluate(vjp_graph(gradient, [0]), [x, ones, ones])[1]
        forward = evaluate(jvp_graph(gradient, [0]), [x, ones, ones])[1]
        return [reverse, forward]

    plain, double = MASKED[name]
    got, want = second(plain), second(double)
    assert np.isfinite(want[0]).all()
    np.testing.assert_allclose(got[0], want[0], rtol=1e-13)
    np.testing.assert_allclose(got[1], want[0], rtol=1e-13)


# Expressions of x as trees: "x", (op, tree), (op, tree, tree), ("where", threshold, tree, tree).
UNARY = "sqrt log exp neg sin abs arcsin log1p cbrt".split()
BINARY = "add sub mul div pow maximum hypot".split()
TREES = st.recursive(
    st.just("x"),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(UNARY), inner),
        st.tuples(st.sampled_from(BINARY), inner, inner),
        st.tuples(st.just("where"), st.sampled_from([-1.5, -0.1, 0.0, 0.3]), inner, inner),
    ),
    max_leaves=8,
)
POINTS = np.array([-2.0, -1.0, -0.5, 0.0, 0.2, 1.0, 3.0])


def grow(tree: Any, x: Term, at: float | None) -> Term:
    """The tree over x; with `at`, x's value, each `where` is resolved to the branch it takes."""
    if tree == "x":
        return x
    if tree[0] == "where":
        _, threshold, yes, no = tree
        if at is not None:
            return grow(yes if at > threshold else no, x, at)
        return where(x > threshold, grow(yes, x, at), grow(no, x, at))
    first, *rest = (grow(t, x, at) for t in tree[1:])
    return getattr(first, tree[0])(*rest)


@settings(max_examples=150, deadline=None)
@given(TREES)
def test_branches_not_taken_contribute_nothing(tree: Any) -> None:
    """The gradient through any nest of wheres is that of the branches taken, element by element."""

    def gradients(at: float | None, x: Array) -> list[Array]:
        graph = build(lambda x: grow(tree, x, at), x)
        reverse = evaluate(vjp_graph(graph, [0]), [x, np.ones_like(x)])[1]
        forward = evaluate(jvp_graph(graph, [0]), [x, np.ones_like(x)])[1]
        return [reverse, forward]

    got = gradients(None, POINTS)
    want = np.transpose([gradients(float(p), p) for p in POINTS])
    # Zero times the infinite slope of a branch that *is* taken is NaN in any order of operations,
    # inf in some: compare where the branches taken are smooth, which is what the rule is about.
    smooth = np.isfinite(want).all(0)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g[smooth], w[smooth], rtol=1e-9, atol=1e-12)


def test_mask_through_broadcast_and_slices() -> None:
    """A scalar and a slice that are used only under a mask that is false everywhere."""

    def f(s: Term, x: Term) -> Term:
        b = s.b
        root = Term(b, b.op("broadcast", s.sqrt().value, shape=(3,), dims=()))
        log = Term(b, b.op("slice", x.log().value, start=(1,), stop=(4,), step=(1,)))
        return where(root > 1, root + log, 0)

    ds, dx = grad(f, 0.0, [0.0, 0.0, -1.0, 2.0])
    assert ds == 0
    # log(x[0]) is not under the mask at all: 0 * inf, as the double-where form has it too.
    assert dx[1:].tolist() == [0, 0, 0]


def test_mask_through_gather_update_concat() -> None:
    def f(x: Term) -> Term:
        b = x.b
        bad = x.sqrt()
        picked = Term(
            b, b.op("gather", bad.value, b.const([3, 0, 3, 1], I64), axes=(0,), mode="check")
        )
        twice = Term(b, b.op("concat", bad.value, picked.value, axis=0))
        both = Term(b, b.op("concat", x.value, x.value, axis=0))
        return where((both > 0) & (twice > 0), twice, 0)

    (got,) = grad(f, [0.0, 4.0, 0.0, 4.0])
    np.testing.assert_allclose(got, [0, 0.5, 0, 0.25])  # picked[3] is x[1], under x[3] > 0


def test_forward_mode_masks_what_a_select_zeroed() -> None:
    """sqrt(where(m, x, 0)): the tangent is 0 where m is false, and so is its image."""
    (got,) = grad(lambda x: where(x > 1, x, 0).sqrt(), X)
    assert got.tolist() == [0, 0, 0, 0.25]


def test_chain_under_where_ends_with_one_select() -> None:
    """The masks of intermediate products are dead code."""
    graph = build(lambda x: where(x > 0, x.sqrt().log().exp(), 0), np.array(X))
    gradient = vjp_graph(graph, [0])
    needed, selects = [gradient.outputs[1]], 0
    seen: set[Value] = set()
    while needed:
        v = needed.pop()
        if v in seen or v.op is None:
            continue
        seen.add(v)
        selects += v.op.name == "select"
        needed.extend(v.op.operands)
    assert selects == 1


def test_support_of_long_sums_does_not_recurse() -> None:
    def f(x: Term) -> Term:
        total = root = where(x > 0, x.sqrt(), 0)
        for _ in range(3000):
            total = total + root
        return total

    (got,) = np.asarray(
        evaluate(vjp_graph(build(f, np.zeros(2)), [0]), [np.zeros(2), np.ones(2)])[1:]
    )
    assert got.tolist() == [0, 0]


# Structured ops.


def branch(f: Callable[..., list[Term]], *types: TensorType) -> Graph:
    graph = Graph("region")
    b = Builder(graph)
    graph.outputs = [t.value for t in f(*(Term(b, graph.add_param(t)) for t in types))]
    return graph


def cond_graph() -> Graph:
    v = TensorType((3,), F64)
    graph = Graph("f")
    params = [graph.add_param(t) for t in (TensorType((), I32), v, v)]
    branches = [
        branch(lambda x, y: [x * y, x.gt(y)], v, v),
        branch(lambda x, y: [x.sin(), x.lt(y)], v, v),
        branch(lambda x, y: [y, y.lt(y)], v, v),
    ]
    graph.outputs = list(Builder(graph).append(OPS["cond"], params, {}, branches).results)
    return graph


@pytest.mark.parametrize("index", [-1, 0, 1, 2, 5])
def test_cond(index: int) -> None:
    rng = np.random.default_rng(6)
    arrays = [np.int32(index), rng.normal(size=3), rng.normal(size=3)]
    check_derivatives(cond_graph(), arrays, rng)
    backward = vjp_graph(cond_graph(), [1, 2])
    backward.outputs = backward.outputs[2:]
    check_derivatives(backward, [*arrays, rng.normal(size=3)], rng)


def while_graph() -> Graph:
    """i, x = 0, x; while i < n: i, x, y = i + 1, sin(x) * scale, y + x"""
    i64, vector = TensorType((), I64), TensorType((2,), F64)
    types = (i64, vector, i64, vector, vector)
    test = branch(lambda n, scale, i, x, y: [i < n], *types)
    body = branch(lambda n, scale, i, x, y: [i + 1, x.sin() * scale, y + x], *types)
    graph = Graph("f")
    params = [graph.add_param(t) for t in types]
    op = Builder(graph).append(OPS["while"], params, {"consts": 2}, [test, body])
    graph.outputs = list(op.results)
    return graph


@pytest.mark.parametrize("trips", [0, 1, 5])
def test_while_forward(trips: int) -> None:
    graph = while_graph()
    rng = np.random.default_rng(8)
    scale, x, y, *ds = (rng.normal(size=2) for _ in range(6))
    n, i = np.int64(trips), np.int64(0)
    got = evaluate(jvp_graph(graph, [1, 3, 4]), [n, scale, i, x, y, *ds])[3:]
    h = 1e-6

    def at(t: float) -> list[Array]:
        moved = [v + t * d for v, d in zip((scale, x, y), ds, strict=True)]
        return evaluate(graph, [n, moved[0], i, *moved[1:]])[1:]

    for a, p, m in zip(got, at(h), at(-h), strict=True):
        np.testing.assert_allclose(a, (p - m) / (2 * h), rtol=1e-7, atol=1e-8)
    only_x = evaluate(jvp_graph(graph, [3]), [n, scale, i, x, y, ds[1]])[3:]
    zero = np.zeros(2)
    both = evaluate(jvp_graph(graph, [1, 3, 4]), [n, scale, i, x, y, zero, ds[1], zero])[3:]
    np.testing.assert_allclose(only_x, both)


def test_while_backward_is_refused_by_name() -> None:
    with pytest.raises(DerivativeError, match="while"):
        vjp_graph(while_graph(), [3])


def test_assert_lets_gradients_pass() -> None:
    graph = Graph("f")
    x = graph.add_param(TensorType((), F64))
    b = Builder(graph)
    ok = b.op("gt", x, b.const(0.0))
    b.op("assert", ok, x, b.op("create_token"), message="x is {0}")
    graph.outputs = [b.op("log", x)]
    assert evaluate(vjp_graph(graph, [0]), [np.float64(4), np.float64(1)])[1] == 0.25
    with pytest.raises(AssertionError, match=r"x is -4\.0"):
        evaluate(vjp_graph(graph, [0]), [np.float64(-4), np.float64(1)])


def test_integer_paths_carry_nothing() -> None:
    graph = build(lambda x: op("convert", dtype=F64)(op("convert", dtype=I64)(x)) * x, np.zeros(2))
    got = evaluate(vjp_graph(graph, [0]), [np.array([2.5, -1.5]), np.ones(2)])[1]
    assert got.tolist() == [2, -1]
