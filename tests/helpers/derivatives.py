"""What tests of derivatives share: central differences, and gradients of formulas over Terms."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from jitney.ir.autodiff.transform import is_differentiable, jvp_graph, vjp_graph
from jitney.ir.build import Builder
from jitney.ir.graph import Graph, Value
from jitney.ir.interpreter import evaluate
from jitney.ir.ops.term import Term
from jitney.ir.types import type_of

Array = np.ndarray


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


def op(name: str, **attrs: object) -> Callable[..., Term]:
    return lambda x, *more: Term(x.b, x.b.op(name, x.value, *(m.value for m in more), **attrs))
