"""checkpoint: the same numbers, less memory, and recomputation that no pass undoes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitney as jt
from jitney.ir.build import Builder
from jitney.ir.graph import Graph
from jitney.ir.interpreter import evaluate
from jitney.ir.passes import inline_calls, optimise
from jitney.ir.types import F64, TensorType
from jitney.ir.verify import verify

X = np.linspace(-1.0, 2.0, 6)
BACKENDS = ["interpreter", "native"]
POLICIES: list[Any] = [None, "nothing", "dots", "everything", ["kept"], []]


def layer(x: Any, w: Any) -> Any:
    h = jt.checkpoint_name(jt.tanh(x @ w), "kept")
    return jt.sin(h * jt.exp(-h * h)) @ w.T + x


def chain(x: Any, ws: Any, wrap: Any) -> Any:
    f = wrap(layer)
    for w in ws:
        x = f(x, w)
    return jt.sum(x * x)


def inputs(depth: int, n: int = 3, m: int = 5) -> tuple[Any, Any]:
    rng = np.random.default_rng(depth)
    return rng.normal(size=(4, n)), [rng.normal(size=(n, m)) * 0.3 for _ in range(depth)]


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients_are_those_without(policy: Any, backend: str) -> None:
    x, ws = inputs(3)
    remat = jt.checkpoint(policy=policy)
    got = jt.jit(jt.grad(lambda ws: chain(x, ws, remat)), backend=backend)(ws)
    want = jt.grad(lambda ws: chain(x, ws, lambda f: f))(ws)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    if backend == "native" or policy == "dots":
        return
    product = jt.jit(lambda ws, vs: jt.hvp(lambda ws: chain(x, ws, remat), (ws,), (vs,)))
    want = jt.hvp(lambda ws: chain(x, ws, lambda f: f), (ws,), (ws,))
    for a, b in zip(product(ws, ws), want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)


@settings(max_examples=8, deadline=None)
@given(
    layers=st.lists(
        st.sampled_from(["checkpoint", "dots", "jit", "vmap", "cond", "loop", "while", "grad"]),
        min_size=1,
        max_size=4,
    )
)
def test_any_nesting_gives_the_same_numbers(layers: list[str]) -> None:
    def f(x: Any) -> Any:
        return jt.sin(x * x) * x

    def build(remat: Any) -> Any:
        wrappers = {
            "checkpoint": remat,
            "dots": jt.checkpoint(policy="dots"),
            "jit": jt.jit,
            "vmap": lambda g: lambda x: jt.vmap(g)(jt.stack([x, x + 1]))[1],
            "cond": lambda g: lambda x: jt.cond(jt.sum(x) > 0.5, g, lambda x: g(x + 1), x),
            "loop": lambda g: lambda x: jt.fori_loop(0, 3, lambda i, c: g(c) * 0.5, x),
            "while": lambda g: (
                lambda x: jt.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, g(c[1])), (0, x))[
                    1
                ]
            ),
            "grad": lambda g: jt.grad(lambda x: jt.sum(g(x))),
        }
        g = remat(f)
        for name in layers:
            g = wrappers[name](g)
        return jt.jit(jt.grad(lambda x: jt.sum(g(x) ** 2)), backend="interpreter")

    x = np.array([0.3, -0.4])
    got, want = build(jt.checkpoint)(x), build(lambda g: g)(x)
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9, err_msg=str(layers))


def graph_of(policy: Any) -> Graph:
    x, ws = inputs(2)
    remat = jt.checkpoint(policy=policy)
    return jt.jit(jt.grad(lambda ws: chain(x, ws, remat))).trace(ws)


def test_the_recomputation_survives_every_pass() -> None:
    """A first computation and a second one, behind a barrier, that nothing merges with the first."""
    x, ws = inputs(2)
    plain = optimise(jt.jit(jt.grad(lambda ws: chain(x, ws, lambda f: f))).trace(ws))
    graph = graph_of(None)
    verify(graph)
    assert [op.name for op in graph.ops].count("remat") == 4
    verify(inline_calls(graph))
    done = optimise(graph, verify=True)
    assert not any(op.name in ("remat", "checkpoint_name") for op in done.walk())

    def count(graph: Graph, name: str) -> int:
        return sum(op.name == name for op in graph.walk())

    assert count(plain, "tanh") == 2 and count(done, "tanh") == 4
    assert count(plain, "dot") + 2 == count(done, "dot")  # x @ w again; the last product is not
    dots = optimise(graph_of("dots"))
    assert count(dots, "tanh") == 4 and count(dots, "dot") == count(plain, "dot")
    kept = optimise(graph_of(["kept"]))
    assert count(kept, "tanh") == 2 and count(kept, "dot") == count(plain, "dot")
    assert count(kept, "exp") > count(plain, "exp")
    assert count(optimise(graph_of(["another"])), "tanh") == 4
    everything = optimise(graph_of("everything"))
    assert count(everything, "optimization_barrier") == 0


def test_the_arena_of_a_deep_chain_is_smaller() -> None:
    x, ws = inputs(16, 32, 128)
    x = np.tile(x, (32, 1))

    def arena(policy: Any) -> int:
        remat = jt.checkpoint(policy=policy)
        lowered = jt.jit(jt.grad(lambda ws: chain(x, ws, remat))).lower(ws)
        return int(lowered.executable.module.arena_bytes)

    sizes = {policy: arena(policy) for policy in ("nothing", "dots", "everything")}
    assert sizes["nothing"] < sizes["dots"] < sizes["everything"]
    assert sizes["nothing"] < sizes["everything"] / 3, sizes
    inner = 16 * x.shape[0] * 128 * 8  # one inner value of every layer
    assert sizes["nothing"] < inner < sizes["everything"]


def test_a_checkpointed_loop_body_keeps_the_carry_alone() -> None:
    def f(x: Any, wrap: Any) -> Any:
        step = wrap(lambda i, c: jt.sin(jt.exp(-c * c) * c) + jt.cos(c) * 0.5)
        return jt.sum(jt.fori_loop(0, 20, step, x))

    x = np.linspace(0, 1, 1000)
    results = []
    arenas = []
    for wrap in (jt.checkpoint, lambda g: g):
        gradient = jt.jit(jt.grad(lambda x, wrap=wrap: f(x, wrap)))
        results.append(gradient(x))
        arenas.append(gradient.lower(x).executable.module.arena_bytes)
    np.testing.assert_allclose(results[0], results[1], rtol=1e-12)
    assert arenas[0] <= arenas[1]


def test_barriers_are_identities_that_no_pass_looks_through() -> None:
    graph = Graph("f")
    x, y = (graph.add_param(TensorType((3,), F64)) for _ in range(2))
    b = Builder(graph)
    first = b.op("optimization_barrier", x, y)
    second = b.op("optimization_barrier", x, y)
    constant = b.op("optimization_barrier", b.const(np.ones(3)))
    once, twice = (b.op("exp", pair[0]) for pair in (first, second))
    graph.outputs = [once, twice, b.op("exp", x), b.op("neg", constant), *first, *second]
    verify(graph)
    done = optimise(graph, verify=True)
    names = [op.name for op in done.ops]
    assert names.count("optimization_barrier") == 3 and names.count("exp") == 3
    assert "neg" in names  # not folded
    values = [np.arange(3.0), np.ones(3)]
    for a, c in zip(evaluate(graph, values), evaluate(done, values), strict=True):
        np.testing.assert_array_equal(a, c)


def test_outside_of_derivatives_and_of_jit_it_is_a_plain_call() -> None:
    seen = []

    def f(x: Any) -> Any:
        seen.append(float(x) if isinstance(x, float) else None)
        return x * x

    assert jt.checkpoint(f)(3.0) == 9.0 and seen == [3.0]
    assert not any(op.name == "remat" for op in jt.jit(jt.checkpoint(f)).trace(3.0).ops)
    assert jt.grad(jt.checkpoint(lambda x: x * x if x > 0 else -x))(-3.0) == -1.0


@pytest.mark.parametrize("backend", BACKENDS)
def test_effects_inside_happen_once(backend: str) -> None:
    seen: list[float] = []

    def f(x: Any) -> Any:
        y = jt.sin(x)
        jt.io_callback(lambda v: seen.append(float(v)), None, y)
        noise = jt.io_callback(lambda v: v * 0 + len(seen), x, y)
        return jt.exp(y) * noise

    gradient = jt.jit(jt.grad(lambda x: jt.checkpoint(f)(x) * 2), backend=backend)
    want = 2 * np.exp(np.sin(0.5)) * np.cos(0.5)
    with pytest.raises(TypeError, match="Python function"):
        gradient(0.5)  # the noise depends on x, as far as anybody knows

    def constant_noise(x: Any) -> Any:
        y = jt.sin(x)
        jt.io_callback(lambda v: seen.append(float(v)), None, y)
        noise = jt.io_callback(lambda: np.float64(len(seen)), jt.ShapeDtype((), np.float64))
        return jt.exp(y) * noise

    seen.clear()
    gradient = jt.jit(jt.grad(lambda x: jt.checkpoint(constant_noise)(x) * 2), backend=backend)
    assert gradient(0.5) == pytest.approx(want) and seen == [pytest.approx(np.sin(0.5))]


def test_arguments_that_are_no_arrays_and_closures() -> None:
    table = np.arange(6.0)

    @jt.checkpoint
    def f(x: Any, mode: str, *, scale: int) -> Any:
        assert mode == "twice"
        return {"y": jt.sin(x) * scale * table, "n": scale}

    @jt.jit
    def gradient(x: Any, z: Any) -> Any:
        return jt.grad(lambda x, z: jt.sum(f(x * z, "twice", scale=2)["y"]), (0, 1))(x, z)

    gx, gz = gradient(X, 3.0)
    np.testing.assert_allclose(gx, 3 * np.cos(3 * X) * 2 * table)
    np.testing.assert_allclose(gz, np.sum(X * np.cos(3 * X) * 2 * table))


def test_wrong_uses_are_refused() -> None:
    with pytest.raises(ValueError, match="everything"):
        jt.checkpoint(jt.sin, policy="all")
    with pytest.raises(TypeError, match="list of names"):
        jt.checkpoint(jt.sin, policy=[1])
    with pytest.raises(TypeError, match="callable"):
        jt.checkpoint(3)
    with pytest.raises(TypeError, match="string"):
        jt.checkpoint_name(X, 3)

    def assigns(x: Any) -> Any:
        x[0] = 3.0
        return x

    with pytest.raises(ValueError, match="assigns to its argument"):
        jt.jit(jt.grad(lambda x: jt.sum(jt.checkpoint(assigns)(x * 2))))(X)
