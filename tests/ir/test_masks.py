"""The branch of a select that is not taken contributes nothing to a derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from derivatives import Array, build, grad
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jitney.ir.autodiff.transform import jvp_graph, vjp_graph
from jitney.ir.graph import Value
from jitney.ir.interpreter import evaluate
from jitney.ir.ops.term import Term, where
from jitney.ir.types import I64

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


@settings(max_examples=50, deadline=None)
@example(("sqrt", ("where", -1.5, "x", ("maximum", "x", ("sqrt", "x")))))
@given(TREES)
def test_branches_not_taken_contribute_nothing(tree: Any) -> None:
    """The gradient through any nest of wheres is that of the branches taken, element by element; where
    the value is a number."""

    def gradients(at: float | None, x: Array) -> list[Array]:
        graph = build(lambda x: grow(tree, x, at), x)
        _, reverse = evaluate(vjp_graph(graph, [0]), [x, np.ones_like(x)])
        value, forward = evaluate(jvp_graph(graph, [0]), [x, np.ones_like(x)])
        return [np.where(np.isnan(value), np.nan, slope) for slope in (reverse, forward)]

    got = gradients(None, POINTS)
    want = np.transpose([gradients(float(p), p) for p in POINTS])
    # Zero times the infinite slope of a branch that *is* taken is NaN in any order of operations,
    # inf or 0 in some: compare where the branches taken are smooth, which is what the rule is about.
    beside = np.transpose([gradients(float(p), p + 1e-9) for p in POINTS])
    smooth = (np.isfinite(want) & np.isclose(beside, want, rtol=1e-3, atol=1e-3)).all(0)
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
