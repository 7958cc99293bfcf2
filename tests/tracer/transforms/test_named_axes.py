"""Collectives along named axes: what `together` of each record says, derivatives, nesting, refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitney as jt
from jitney.ir.ops.collectives.records import COLLECTIVES

N = 4
RING = [(i, (i + 1) % N) for i in range(N)]

# name: the function of one member, the shape of its operand, what all members' operands become
CASES: dict[str, tuple[Callable[[Any], Any], tuple[int, ...], Callable[[Any], Any]]] = {
    "psum": (lambda x: jt.psum(x, "i"), (3,), lambda x: [x.sum(0)] * N),
    "pmean": (lambda x: jt.pmean(x, "i"), (3,), lambda x: [x.mean(0)] * N),
    "pmax": (lambda x: jt.pmax(x, "i"), (3,), lambda x: [x.max(0)] * N),
    "pmin": (lambda x: jt.pmin(x, "i"), (3,), lambda x: [x.min(0)] * N),
    "gather": (lambda x: jt.all_gather(x, "i"), (3,), lambda x: [x] * N),
    "gather last": (
        lambda x: jt.all_gather(x, "i", axis=-1),
        (3, 2),
        lambda x: [np.stack(x, -1)] * N,
    ),
    "gather tiled": (
        lambda x: jt.all_gather(x, "i", axis=1, tiled=True),
        (3, 2),
        lambda x: [np.concatenate(x, 1)] * N,
    ),
    "scatter": (
        lambda x: jt.psum_scatter(x, "i", scatter_dimension=1),
        (3, N),
        lambda x: [x.sum(0)[:, i] for i in range(N)],
    ),
    "scatter tiled": (
        lambda x: jt.psum_scatter(x, "i", tiled=True),
        (2 * N, 3),
        lambda x: [x.sum(0)[2 * i : 2 * i + 2] for i in range(N)],
    ),
    "exchange": (
        lambda x: jt.all_to_all(x, "i", 0, 1),
        (N, 3),
        lambda x: [np.stack([x[j, i] for j in range(N)], 1) for i in range(N)],
    ),
    "exchange tiled": (
        lambda x: jt.all_to_all(x, "i", 1, 0, tiled=True),
        (3, 2 * N),
        lambda x: [
            np.concatenate([x[j][:, 2 * i : 2 * i + 2] for j in range(N)]) for i in range(N)
        ],
    ),
    "ring": (lambda x: jt.ppermute(x, "i", RING), (3,), lambda x: list(np.roll(x, 1, 0))),
    "some": (
        lambda x: jt.ppermute(x, "i", [(0, 2), (3, 0)]),
        (),
        lambda x: [x[3], 0 * x[0], x[0], 0 * x[0]],
    ),
    "shuffle": (
        lambda x: jt.pshuffle(x, "i", [2, 0, 3, 1]),
        (2,),
        lambda x: list(x[[2, 0, 3, 1]]),
    ),
    "broadcast": (lambda x: jt.pbroadcast(x, "i", 2), (3,), lambda x: [x[2]] * N),
    "index": (
        lambda x: x * (1 + jt.axis_index("i")),
        (3,),
        lambda x: [x[i] * (1 + i) for i in range(N)],
    ),
    "size": (
        lambda x: x / jt.psum(1, "i") + jt.axis_size("i"),
        (3,),
        lambda x: [row / N + N for row in x],
    ),
}


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives(name: str, rng: np.random.Generator) -> None:
    one, shape, wanted = CASES[name]
    x = rng.normal(size=(N, *shape))
    along = jt.vmap(one, axis_name="i")
    want = np.stack(wanted(x))
    for function in (along, jt.jit(along)):
        np.testing.assert_allclose(function(x), want, rtol=1e-12)
    outside = jt.jit(jt.vmap(along))(np.stack([x, 2 * x]))
    np.testing.assert_allclose(outside[0], want, rtol=1e-12)
    between = jt.jit(jt.vmap(jt.vmap(one), axis_name="i"))(np.stack([x, x + 1], axis=1))
    np.testing.assert_allclose(between[:, 0], want, rtol=1e-12)

    def loss(x: Any) -> Any:
        return np.sin(along(x)).sum()

    jt.check_grads(loss, (x,), order=2, modes=("fwd", "rev"))
    # Each member's gradient is that of the sum of all results.
    own = jt.vmap(jt.grad(lambda x: np.sin(one(x)).sum()), axis_name="i")
    np.testing.assert_allclose(jt.jit(own)(x), jt.grad(loss)(x), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32", "complex128", "bfloat16"])
def test_dtypes(dtype: str, rng: np.random.Generator) -> None:
    x = rng.integers(0, 2, (N, 3)).astype(getattr(jt, dtype))
    total = jt.jit(jt.vmap(lambda x: jt.psum(x, "i"), axis_name="i"))(x)
    wide = np.int64 if dtype == "bool" else x.dtype
    assert total.dtype == wide
    assert (total == x.astype(wide).sum(0)).all()
    if dtype != "complex128":
        largest = jt.jit(jt.vmap(lambda x: jt.pmax(x, "i"), axis_name="i"))(x)
        assert largest.dtype == x.dtype
        assert (largest == x.max(0)).all()
    moved = jt.jit(jt.vmap(lambda x: jt.ppermute(x, "i", RING[:-1]), axis_name="i"))(x)
    assert moved.dtype == x.dtype and (moved[1:] == x[:-1]).all() and not moved[0].any()


def test_records_say_what_their_rules_do(rng: np.random.Generator) -> None:
    """`together`, which processes are held to, and the batch rules, on the same operands."""
    from jitney.ir.batching.transform import batch_graph
    from jitney.ir.build import Builder
    from jitney.ir.graph import Graph
    from jitney.ir.interpreter import evaluate
    from jitney.ir.types import type_of

    own: dict[str, Any] = {"kind": "sum", "perm": ((0, 1), (3, 2)), "root": 2}
    for record in set(COLLECTIVES.values()):
        x = rng.normal(size=(N, N, 3) if record.rows[0] else (N, 3))
        attrs = {a: own[a] for a in record.attrs}
        graph = Graph("g")
        param = graph.add_param(type_of(x[0]))
        graph.outputs = [Builder(graph).op(record.named, param, group="i", size=N, **attrs)]
        batched, (flag,) = batch_graph(graph, [True], N, "i")
        (got,) = evaluate(batched, [x])
        want = np.stack(record.together(list(x), size=N, **attrs))
        np.testing.assert_allclose(got if flag else np.stack([got] * N), want, rtol=1e-13)


def test_trees_sizes_and_two_axes(rng: np.random.Generator) -> None:
    def one(x: Any) -> Any:
        total = jt.psum({"x": x, "n": 1}, ("i", "j"))
        return total["x"] / total["n"] + 10 * jt.axis_index(("i", "j")) + jt.pmax(x, "j")

    f = jt.jit(jt.vmap(jt.vmap(one, axis_name="j"), axis_name="i"))
    for shape in ((2, 3), (3, 2), (1, 4)):  # the same names, of other sizes
        x = rng.normal(size=shape)
        want = x.mean() + 10 * np.arange(x.size).reshape(shape) + x.max(1, keepdims=True)
        np.testing.assert_allclose(f(x), want)


def test_an_inner_axis_hides_the_outer_one_of_its_name() -> None:
    def outer(row: Any) -> Any:
        inner = jt.vmap(lambda v: jt.psum(v, "i"), axis_name="i")(row)
        return inner + 100 * jt.psum(row, "i")

    x = np.arange(6.0).reshape(2, 3)
    got = jt.jit(jt.vmap(outer, axis_name="i"))(x)
    np.testing.assert_allclose(got, x.sum(1, keepdims=True) + 100 * x.sum(0))


def test_in_loops_scans_and_inner_jit(rng: np.random.Generator) -> None:
    x = rng.normal(size=(N, 3))

    @jt.jit
    def centred(v: Any) -> Any:
        return v - jt.pmean(v, "i")

    def one(x: Any) -> Any:
        for k in range(3):
            x = centred(x) * (1 + k)
        x, sums = jt.scan(lambda c, k: (c + jt.psum(c, "i") * k, jt.pmax(c, "i")), x, np.ones(3))
        return jt.fori_loop(0, 2, lambda k, c: jt.ppermute(c, "i", RING), x) + sums.sum()

    want, sums = x, []
    for k in range(3):
        want = (want - want.mean(0)) * (1 + k)
    for _ in range(3):
        sums.append(want.max(0))
        want = want + want.sum(0)
    want = np.roll(want, 2, 0) + np.sum(sums)
    f = jt.vmap(one, axis_name="i")
    np.testing.assert_allclose(jt.jit(f)(x), want)
    np.testing.assert_allclose(f(x), want)
    jt.check_grads(lambda x: f(x).sum(), (x,), order=1)


def test_a_branch_that_some_take_is_refused() -> None:
    def one(x: Any) -> Any:
        return jt.cond(x > 0, lambda x: jt.psum(x, "i"), lambda x: x, x)

    with pytest.raises(jt.errors.TransformError, match="all members of a group take part"):
        jt.vmap(one, axis_name="i")(np.array([1.0, -1.0]))
    same = jt.vmap(lambda p, x: one(x) if p is None else jt.cond(p, lambda: jt.psum(x, "i"), lambda: x),
                   in_axes=(None, 0), axis_name="i")  # fmt: skip
    np.testing.assert_allclose(jt.jit(same)(np.True_, np.array([1.0, -1.0])), [0, 0])
    np.testing.assert_allclose(jt.jit(same)(np.False_, np.array([1.0, -1.0])), [1, -1])


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "unbound": (lambda: jt.psum(np.ones(3), "i"), jt.errors.UnboundAxisError, "axis_name='i'"),
    "other": (
        lambda: jt.vmap(lambda x: jt.psum(x, "k"), axis_name="i")(np.ones(3)),
        NameError,
        "bound is 'i'",
    ),
    "groups": (
        lambda: jt.vmap(lambda x: jt.psum(x, "i", axis_index_groups=[[0]]), axis_name="i")(  # type: ignore[arg-type]
            np.ones(3)
        ),
        jt.errors.UnsupportedFunctionError,
        "axis_index_groups",
    ),
    "length": (
        lambda: jt.vmap(lambda x: jt.psum_scatter(x, "i"), axis_name="i")(np.ones((3, 2))),
        jt.errors.ShapeError,
        "has 2 elements.*among 3",
    ),
    "perm": (
        lambda: jt.vmap(lambda x: jt.ppermute(x, "i", [(0, 1), (2, 1)]), axis_name="i")(np.ones(3)),
        jt.errors.TransformError,
        "gets from one other",
    ),
    "source": (
        lambda: jt.vmap(lambda x: jt.pbroadcast(x, "i", 3), axis_name="i")(np.ones(3)),
        jt.errors.TransformError,
        "counted from 0 to 2",
    ),
    "axis": (
        lambda: jt.vmap(lambda x: jt.all_gather(x, "i", axis=2), axis_name="i")(np.ones(3)),
        jt.errors.AxisBoundsError,
        "axis 2",
    ),
    "order": (
        lambda: jt.vmap(lambda x: jt.pmax(x, "i"), axis_name="i")(np.ones(3, complex)),
        jt.errors.DTypeError,
        "no order",
    ),
    "name": (lambda: jt.vmap(np.sin, axis_name=3), jt.errors.TransformError, "axis_name=3"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_refused(name: str) -> None:
    call, kind, said = WRONG[name]
    with pytest.raises(kind, match=said):
        call()


@pytest.mark.parametrize(
    "function",
    [
        lambda v: jt.psum(v, "i"),
        lambda v: jt.pmean(v, "i"),
        lambda v: jt.pmax(v, "i"),
        lambda v: jt.ppermute(v, "i", []),
        lambda v: v * jt.axis_index("i"),
        lambda v: jt.all_gather(v, "i").sum(axis=0),
    ],
)
def test_an_axis_without_examples(function: Callable[[Any], Any]) -> None:
    none = np.zeros((0, 3))
    batched = jt.vmap(function, axis_name="i")
    for run in (batched, jt.jit(batched), jt.grad(lambda x: batched(x).sum())):
        assert run(none).shape == (0, 3)
