"""Traces and tracers: what a call of a Python function becomes as a graph."""

from __future__ import annotations

import contextvars
import threading
from typing import Any

import numpy as np
import pytest

import jitney as jt
import jitney.tracer.functions
from jitney.ir.graph import Graph
from jitney.ir.interpreter import evaluate
from jitney.ir.types import BOOL, F32, F64, I64, TensorType
from jitney.ir.verify import verify
from jitney.tracer.core.specs import Same, Spec, Static
from jitney.tracer.core.trace import Trace, current_trace, tracing
from jitney.tracer.core.tracers import Tracer, as_value, concrete, emit, parameter, weak_kind, wrap
from jitney.tracer.core.tracing import trace_function
from jitney.tracer.data import pytree
from jitney.tracer.data.layout import c_strides
from jitney.tracer.messages.source import source_text, user_line

X3 = TensorType((3,), F64)


def trace(f: Any, *specs: Any, **options: Any) -> Any:
    tree = pytree.flatten((tuple(range(len(specs))), {}))[1]
    return trace_function(f, specs, tree, **options)


def names(graph: Graph) -> list[str]:
    return [op.name for op in graph.ops]


def test_ops_are_recorded_with_the_users_line() -> None:
    def f(x):
        y = x * x
        return np.exp(y)  # the last line

    traced = trace(f, Spec(X3))
    verify(traced.graph)
    assert names(traced.graph) == ["mul", "exp"]
    loc = traced.graph.ops[1].loc
    assert loc is not None and loc.file == __file__ and loc.function.endswith("f")
    assert source_text(loc) == "return np.exp(y)  # the last line"


def test_the_users_line_is_found_through_libraries() -> None:
    here = user_line()
    assert here is not None and source_text(here) == "here = user_line()"
    assert here.function == "test_the_users_line_is_found_through_libraries"
    found = []
    np.apply_along_axis(lambda row: found.append(user_line()) or 0.0, 0, np.ones((2, 1)))
    assert found[0].file == __file__


def test_there_is_no_trace_outside() -> None:
    assert current_trace() is None
    seen = []
    trace(lambda x: seen.append(current_trace()) or x, Spec(X3))
    assert seen[0].done and current_trace() is None

    def fail(x: Any) -> Any:
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        trace(fail, Spec(X3))
    assert current_trace() is None


def test_traces_belong_to_their_context() -> None:
    def f(x):
        found = []
        for run in (lambda g: g(), contextvars.Context().run):
            run(lambda: found.append(current_trace()))
        thread = threading.Thread(target=lambda: found.append(current_trace()))
        thread.start()
        thread.join()
        assert found[0] is not None and found[1:] == [None, None]
        return x

    trace(f, Spec(X3))


@pytest.mark.parametrize(
    "x, dtype", [(True, BOOL), (3, I64), (2**63, np.dtype("u8")), (0.5, F64), (np.float32(1), F32)]
)
def test_scalars_become_constants(x: Any, dtype: Any) -> None:
    with tracing(Trace(Graph("g"))) as t:
        value = as_value(x)
        assert value.dtype == dtype and value.shape == ()
        assert as_value(x, F64).dtype == F64
        assert t.graph.params == []


def test_weak_kinds() -> None:
    assert [weak_kind(x) for x in (True, 1, 1.0, np.float64(1), X3)] == ["b", "i", "f", None, None]
    traced = trace(
        lambda x, s: (x * s, s, s * 2),
        Spec(TensorType((3,), F32)),
        Spec(TensorType((), F64), "f", True),
    )
    assert [str(v.type) for v in traced.graph.outputs] == ["f32[3]", "f64[]", "f64[]"]
    assert traced.weak == [None, "f", "f"]


def test_static_and_same_leaves() -> None:
    seen = []

    def f(a, n, b):
        seen.append((n, a is b))
        return a + b

    traced = trace(f, Spec(X3), Static("static"), Same(0))
    assert seen == [("static", True)]
    assert len(traced.graph.params) == 1


def test_mutated_parameters_become_outputs() -> None:
    def f(x, y):
        x[0] = y[0]
        v = y[1:]
        v *= 2
        return x.sum()

    traced = trace(f, Spec(X3), Spec(X3))
    assert traced.mutated == [0, 1] and len(traced.graph.outputs) == 3
    total, x, y = evaluate(traced.graph, [np.zeros(3), np.arange(1.0, 4)])
    assert total == 1 and list(x) == [1, 0, 0] and list(y) == [1, 4, 6]


def test_arguments_that_are_returned() -> None:
    def f(x, y):
        return x, x.T[::2], y + 0, "text"

    traced = trace(f, Spec(X3), Spec(X3), values_only=False)
    same, view, fresh, text = traced.results
    assert same.argument == 0 and same.views == ()
    assert view.argument == 0 and len(view.views) == 2
    assert fresh.output == 0 and text.static == "text"
    assert len(traced.graph.outputs) == 1
    assert len(trace(lambda x: (x, x), Spec(X3)).graph.outputs) == 1


# Captured arrays


def test_an_outside_array_is_a_hidden_parameter() -> None:
    w = np.ones(3)
    traced = trace(lambda x: x * w + w[:2].sum(), Spec(X3))
    assert [c.outer is w for c in traced.captures] == [True]
    assert len(traced.graph.params) == 2 and traced.graph.params[1].index == 1
    w[:] = 3.0
    assert "mul" in names(traced.graph)


def test_an_array_made_inside_is_a_constant() -> None:
    def f(x):
        return x + np.array([1.0, 2.0, 3.0]) + np.zeros(3) + np.arange(6.0)[::2]

    traced = trace(f, Spec(X3))
    verify(traced.graph)
    assert traced.captures == [] and len(traced.graph.params) == 1
    np.testing.assert_array_equal(evaluate(traced.graph, [np.zeros(3)])[0], [1, 4, 7])


def test_a_large_array_made_inside_stays_outside_of_the_code() -> None:
    big = trace(
        lambda x: x + np.arange(10_000.0)[:3].sum() + np.arange(10_000.0),
        Spec(TensorType((10_000,), F64)),
    )
    assert len(big.captures) == 1
    uniform = trace(lambda x: x + np.full(10_000, 7.0), Spec(TensorType((10_000,), F64)))
    assert uniform.captures == [] and "broadcast" in names(uniform.graph)


def test_a_buffer_that_changes_while_traced_keeps_each_state() -> None:
    buffer = np.zeros(3)

    def f(x):
        buffer[:] = 1
        y = x + buffer
        buffer[:] = 2
        return y, x + buffer

    traced = trace(f, Spec(X3))
    assert traced.captures == []
    one, two = evaluate(traced.graph, [np.zeros(3)])
    assert one[0] == 1 and two[0] == 2


# Nested traces


def test_values_of_enclosing_traces_are_lifted() -> None:
    w = np.full(3, 5.0)
    inner: list[Any] = []

    def f(x):
        y = x + 1

        def g(z):
            def h(q):
                return q * y + w

            inner.append(trace(h, Spec(X3)))
            return z + y

        inner.append(trace(g, Spec(X3)))
        return y

    outer = trace(f, Spec(X3))
    h, g = inner
    assert [c.outer is w for c in outer.captures] == [True]
    assert len(g.captures) == 2 and len(h.captures) == 2  # y and w
    assert all(c.outer in g.graph.params for c in h.captures)
    assert h.graph.params[1:] == [c.param for c in h.captures]
    for graph in (h.graph, g.graph, outer.graph):
        verify(graph)


def test_views_of_outer_arrays_read_inside_and_cannot_be_written() -> None:
    def f(x):
        v = x[1:]
        inner = trace(lambda z: z + v.sum() + x.T[0], Spec(X3))
        assert len(inner.captures) >= 1
        with pytest.raises(ValueError, match="outside of it"):
            trace(lambda z: v.__setitem__(0, 1.0), Spec(X3), what="a body")
        return x

    trace(f, Spec(X3))


# Eager traces


def test_an_eager_trace_knows_its_values() -> None:
    def f(x):
        if x[0] > 0:
            for _ in range(int(x[1])):
                x = x * 2
        assert float(x[2]) == 12.0 and np.asarray(x).dtype == np.float64
        assert "12" in repr(x)
        return x + concrete(x)

    traced = trace(f, Spec(X3), eager=True, concrete=[np.array([1.0, 2.0, 3.0])])
    assert names(traced.graph).count("mul") == 2
    assert traced.arrays is not None
    np.testing.assert_array_equal(traced.arrays[traced.graph.outputs[0]], [8, 16, 24])


# Tracers


def test_attributes_of_a_tracer() -> None:
    def f(x, s):
        assert (x.shape, x.ndim, x.size, x.dtype) == ((2, 3), 2, 6, np.float32)
        assert (x.itemsize, x.nbytes, len(x), x.strides) == (4, 24, 2, (12, 4))
        assert x.T.strides == (4, 12) and x[::-1, ::2].strides == (-12, 8)
        assert isinstance(x, Tracer) and "f32[2,3]" in repr(x) and "weak 'i'" in repr(s)
        with pytest.raises(TypeError, match="unhashable"):
            hash(x)
        return [row.shape for row in x]

    traced = trace(
        f,
        Spec(TensorType((2, 3), F32)),
        Spec(TensorType((), I64), "i", True),
        values_only=False,
        adapted=True,
    )
    assert [r.static for r in traced.results] == [3, 3]


def test_a_view_reads_what_was_written() -> None:
    def f(x):
        v = x[1:]
        before = v.value
        assert v.value is before
        x[0] = 1.0
        assert v.value is not before
        after = v.value
        v[:] = 2.0
        assert v.value is not after
        assert v._view.version == x._storage.version
        return x

    trace(f, Spec(X3))


def test_emit_and_wrap() -> None:
    with tracing(Trace(Graph("g"))) as t:
        x = parameter(t, X3, "x")
        y = emit("exp", as_value(x))
        assert isinstance(y, Tracer) and y.value.op.loc.file == __file__
        assert wrap(as_value(1.0)).scalar and not wrap(as_value(1.0), scalar=False).scalar
        assert c_strides((2, 3, 4)) == (12, 4, 1)


def test_python_containers_of_tracers() -> None:
    def f(x):
        rows = [x, x + 1]
        best = sorted([3, 1, 2])
        a, b, c = x
        return np.stack(rows), sum([a, b, c]), best, {"k": (x, None)}

    jitted = jt.jit(f, backend="interpreter")
    got, want = jitted(np.arange(3.0)), f(np.arange(3.0))
    np.testing.assert_array_equal(got[0], want[0])
    assert got[1] == want[1] and got[2] == [1, 2, 3]
    assert got[3]["k"][1] is None


# Programs as people write them


def black_scholes(s, k, t, r, v):
    d1 = (np.log(s / k) + (r + 0.5 * v * v) * t) / (v * np.sqrt(t))
    d2 = d1 - v * np.sqrt(t)

    def cdf(z):
        a = np.abs(z)
        u = 1 / (1 + 0.2316419 * a)
        poly = u * (
            0.31938153
            + u * (-0.356563782 + u * (1.781477937 + u * (-1.821255978 + u * 1.330274429)))
        )
        tail = np.exp(-0.5 * a * a) / np.sqrt(2 * np.pi) * poly
        return np.where(z > 0, 1 - tail, tail)

    return s * cdf(d1) - k * np.exp(-r * t) * cdf(d2)


def softmax(x):
    x = x - x.max(axis=-1, keepdims=True)
    np.exp(x, out=x)
    x /= x.sum(axis=-1, keepdims=True)
    return x


def kmeans_step(points, centres):
    d = ((points[:, None] - centres[None]) ** 2).sum(-1)
    nearest = d.argmin(axis=1)
    member = nearest[:, None] == np.arange(len(centres))
    counts = np.maximum(member.sum(axis=0), 1)
    return (member[..., None] * points[:, None]).sum(axis=0) / counts[:, None], nearest


def heat(u, steps=4):
    for _ in range(steps):
        u[1:-1, 1:-1] += 0.1 * (
            u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        )
        u[0], u[-1] = u[1], u[-2]
        u[:, 0] = u[:, 1]
    return u


def nbody(x, v, m):
    d = x[None] - x[:, None]
    r3 = ((d**2).sum(-1) + 1e-2) ** 1.5
    a = (m[None, :, None] * d / r3[..., None]).sum(1)
    v += 0.01 * a
    x += 0.01 * v
    return 0.5 * (m * (v**2).sum(-1)).sum()


def gram_schmidt(a):
    q = np.zeros_like(a)
    for j in range(a.shape[1]):
        v = a[:, j].copy()
        for i in range(j):
            v -= (q[:, i] @ a[:, j]) * q[:, i]
        q[:, j] = v / np.linalg.norm(v)
    return q


def two_layers(params, x):
    (w1, b1), (w2, b2) = params
    h = np.maximum(x @ w1 + b1, 0)
    return softmax(h @ w2 + b2)


RNG = np.random.default_rng(7)
PROGRAMS: list[tuple[Any, tuple[Any, ...]]] = [
    (black_scholes, (np.linspace(50, 150, 20), 100.0, 1.5, 0.02, 0.3)),
    (softmax, (RNG.normal(size=(5, 7)),)),
    (kmeans_step, (RNG.normal(size=(30, 2)), RNG.normal(size=(4, 2)))),
    (heat, (RNG.normal(size=(8, 9)),)),
    (nbody, (RNG.normal(size=(6, 3)), np.zeros((6, 3)), np.ones(6))),
    (gram_schmidt, (RNG.normal(size=(6, 4)),)),
    (
        two_layers,
        (
            ((RNG.normal(size=(4, 8)), np.zeros(8)), (RNG.normal(size=(8, 3)), np.zeros(3))),
            RNG.normal(size=(5, 4)),
        ),
    ),
]


@pytest.mark.parametrize("backend", ["interpreter", "native"])
@pytest.mark.parametrize("f, args", PROGRAMS, ids=[f.__name__ for f, _ in PROGRAMS])
def test_numpy_programs_unchanged(f: Any, args: Any, backend: str) -> None:
    want_args, got_args = (
        pytree.tree_map(lambda a: np.array(a) if np.ndim(a) else a, args) for _ in range(2)
    )
    want = f(*want_args)
    got = jt.jit(f, backend=backend)(*got_args)
    for a, b in zip(
        pytree.flatten((want, want_args))[0], pytree.flatten((got, got_args))[0], strict=True
    ):
        np.testing.assert_allclose(b, a, rtol=1e-12, atol=1e-13)
        assert np.asarray(a).dtype == np.asarray(b).dtype and np.shape(a) == np.shape(b)
