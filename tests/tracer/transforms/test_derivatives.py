"""Derivative rules: central differences, forward against reverse, twice, and the odd points."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from derivatives import build, check_derivatives, floats, grad, op
from sampling import Case, cases

from jitney.ir.autodiff.transform import jvp_graph, vjp_graph
from jitney.ir.interpreter import evaluate
from jitney.ir.opdef import OPS
from jitney.ir.ops.term import Term
from jitney.ir.types import F32, F64, I64


def differentiable(name: str) -> list[Case]:
    return [c for c in cases(OPS[name]) if c.dtype == F64 and floats(c.graph().params)]


WITH_RULES = [
    n
    for n in sorted(OPS)
    if OPS[n].vjp is not None
    and OPS[n].extra["examples"]
    and n not in "complex real imag conj".split()
]


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
        cts = [rng.normal(size=graph.outputs[i].shape) for i in floats(graph.outputs)]
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
        outputs = [graph.outputs[i] for i in floats(graph.outputs)]
        cts = [np.asarray(rng.normal(size=v.shape), v.dtype) for v in outputs]
        got = evaluate(vjp_graph(graph, wrt), [*arrays, *cts])[len(graph.outputs) :]
        assert all(g.dtype == np.float32 for g in got)
        tangents = [np.ones_like(arrays[i]) for i in wrt]
        (*_, tangent) = evaluate(jvp_graph(graph, wrt), [*arrays, *tangents])
        assert tangent.dtype == outputs[-1].dtype


# Conventions at points where the derivative does not exist, or a formula would fail.


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


def test_integer_paths_carry_nothing() -> None:
    graph = build(lambda x: op("convert", dtype=F64)(op("convert", dtype=I64)(x)) * x, np.zeros(2))
    got = evaluate(vjp_graph(graph, [0]), [np.array([2.5, -1.5]), np.ones(2)])[1]
    assert got.tolist() == [2, -1]
