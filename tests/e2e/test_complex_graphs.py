"""Random programs over complex numbers: compiled against interpreted, forward against reverse."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from jitney.ir.autodiff.transform import jvp_graph, vjp_graph
from jitney.ir.batching.transform import batch_graph
from jitney.ir.build import Builder
from jitney.ir.graph import Graph, Value
from jitney.ir.interpreter import evaluate
from jitney.ir.ops.control.structured import region
from jitney.ir.passes import optimise, split_complex
from jitney.ir.text import print_graph
from jitney.ir.text_parser import parse_graph
from jitney.ir.types import C64, C128, I32, I64, TensorType
from jitney.ir.verify import verify
from jitney.runtime.compile import compile

SHAPES = [(), (3,), (2, 3), (1, 3), (0, 2)]
TAME = "sin cos tanh arcsinh conj neg exp arctan sqrt".split()


class Draw:
    """A graph that grows by random ops; values stay moderate, so that rounding is all that differs."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.graph = Graph("random")
        self.b = Builder(self.graph)
        self.values: list[Value] = []

    def pick(self, choices: Any) -> Any:
        return self.draw(st.sampled_from(list(choices)))

    def value(self) -> Value:
        return self.pick(self.values[-6:])

    def like(self, x: Value) -> Value:
        fitting = [v for v in self.values if v.type == x.type]
        return self.pick(fitting) if self.draw(st.booleans()) else self.b.full_like(x, 0.5 - 0.25j)

    def tame(self, x: Value) -> Value:
        """A value of modulus at most about 1."""
        b = self.b
        size = b.add(b.abs(x), b.full(x.shape, 1, b.abs(x).dtype))
        return b.div(x, b.complex(size, b.full_like(size, 0)))

    def step(self) -> Value:
        b, x = self.b, self.value()
        kind = self.pick(
            "unary binary select move reduce dot parts scan cond while gather sort power".split()
        )
        if kind == "unary":
            return b.op(self.pick(TAME), self.tame(x))
        if kind == "binary":
            return b.op(self.pick(["add", "sub", "mul"]), x, self.like(x))
        if kind == "select":
            y = self.like(x)
            return b.select(b.op(self.pick(["lt", "ge", "ne"]), x, y), x, y)
        if kind == "parts":
            return b.complex(b.imag(x), b.mul(b.real(x), b.abs(x)))
        if kind == "power":
            return b.pow(self.tame(x), b.full_like(x, self.pick([2, 3, -1, 0.5])))
        if kind == "cond":
            types = [x.type]
            branches = (
                region("one", types, lambda b, x: [b.mul(x, x)]),
                region("other", types, lambda b, x: [b.conj(x)]),
            )
            made: Value = b.op("cond", b.const(self.pick([0, 1, 5]), I32), x, regions=branches)
            return made
        if kind == "while":
            types = [TensorType((), I64), x.type]
            test = region("test", types, lambda b, n, x: [b.gt(n, b.const(0, I64))])
            half = region(
                "half",
                types,
                lambda b, n, x: [b.sub(n, b.const(1, I64)), b.mul(x, b.full_like(x, 0.5j))],
            )
            n = b.const(self.pick([0, 1, 3]), I64)
            return b.op("while", n, x, consts=0, checkpoint="all", regions=(test, half))[1]
        rank = len(x.shape)
        if rank == 0 or 0 in x.shape:
            return b.conj(x)
        axis = self.pick(range(rank))
        if kind == "move":
            moved = b.transpose(x, perm=tuple(reversed(range(rank))))
            return self.pick([moved, b.flip(x, axes=(axis,)), b.concat(x, x, axis=axis)])
        if kind == "reduce":
            return b.op(self.pick(["sum", "prod", "max", "min"]), self.tame(x), axes=(axis,))
        if kind == "dot":
            y = self.like(x)
            return b.dot(x, y, contract=((axis,), (axis,)), batch=((), ()))
        if kind == "gather":
            index = b.const([0, -1, 0], I64)
            return b.gather(x, index, axes=(axis,), mode="check")
        if kind == "sort":
            return b.sort(x, axis=axis, stable=True)
        row = x.tensor.with_shape(x.shape[1:])
        body = region(
            "body", [row, row], lambda b, c, v: [b.mul(b.add(c, v), b.full_like(c, 0.5)), c]
        )
        init = b.zeros(row)
        attrs = {
            "consts": 0,
            "carries": 1,
            "length": x.shape[0],
            "reverse": self.pick([True, False]),
        }
        return b.op("scan", init, x, regions=(body,), **attrs)[self.pick([0, 1])]


@st.composite
def complex_graphs(draw: Any, dtypes: Any = (C64, C128)) -> Any:
    d = Draw(draw)
    dtype = d.pick(dtypes)
    for _ in range(draw(st.integers(1, 3))):
        d.values.append(d.graph.add_param(TensorType(d.pick(SHAPES), dtype), "z"))
    for _ in range(draw(st.integers(2, 9))):
        made = d.step()
        if made.tensor.size <= 64:
            d.values.append(made)
    d.graph.outputs = [d.values[-1], draw(st.sampled_from(d.values))]
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    arrays = [
        np.asarray(rng.normal(size=v.shape) + 1j * rng.normal(size=v.shape), dtype)
        for v in d.graph.params
    ]
    return d.graph, arrays


def close(got: np.ndarray, want: np.ndarray) -> None:
    assert got.dtype == want.dtype and got.shape == want.shape
    tolerance = 2e-4 if want.dtype in (np.complex64, np.float32) else 1e-11
    scale = float(np.max(np.abs(want), initial=0))
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * (1 + scale))


@settings(max_examples=30, deadline=None)
@given(complex_graphs(dtypes=(C128,)))
def test_compiled_is_interpreted(case: Any) -> None:
    graph, arrays = case
    verify(graph)
    assert print_graph(parse_graph(print_graph(graph))) == print_graph(graph)
    verify(optimise(split_complex(graph), verify=True))
    for got, want in zip(compile(graph).run(arrays), evaluate(graph, arrays), strict=True):
        close(got, want)


@settings(max_examples=20, deadline=None)
@given(complex_graphs(dtypes=(C128,)))
def test_reverse_is_forward(case: Any) -> None:
    graph, arrays = case
    wrt = range(len(arrays))
    rng = np.random.default_rng(0)

    def direction(v: Any) -> np.ndarray:
        return np.asarray(rng.normal(size=v.shape) + 1j * rng.normal(size=v.shape))

    tangents, cts = [direction(a) for a in arrays], [direction(v) for v in graph.outputs]
    pushed = evaluate(jvp_graph(graph, wrt), [*arrays, *tangents])[2:]
    backward = vjp_graph(graph, wrt)
    pulled = evaluate(backward, [*arrays, *cts])[2:]
    left = sum(np.sum((c * t).real) for c, t in zip(cts, pushed, strict=True))
    right = sum(np.sum((c * t).real) for c, t in zip(pulled, tangents, strict=True))
    size = sum(np.sum(np.abs(c * t)) for c, t in zip(cts, pushed, strict=True))
    if np.isfinite(size):
        np.testing.assert_allclose(left, right, rtol=1e-8, atol=1e-8 * (1 + size))
        verify(split_complex(backward))


@settings(max_examples=15, deadline=None)
@given(complex_graphs(dtypes=(C128,)))
def test_batched_is_one_by_one(case: Any) -> None:
    graph, arrays = case
    batch, flags = batch_graph(graph, [True] * len(arrays), 2)
    stacked = [np.stack([a, a * 0.5j]) for a in arrays]
    found = evaluate(batch, stacked)
    compiled = compile(batch).run(stacked)
    for k, scale in enumerate((1, 0.5j)):
        want = evaluate(graph, [np.asarray(a * scale) for a in arrays])
        for got, native, flag, w in zip(found, compiled, flags, want, strict=True):
            close(got[k] if flag else got, w)
            close(native[k] if flag else native, w)
