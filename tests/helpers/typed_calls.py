"""What a type checker sees of jitted and transformed functions: `.ci/run types` checks this file.

An `assert_type` that is wrong, and an ignored error that there is none of, are errors there.
"""

from collections.abc import Callable
from typing import Any, assert_type

import numpy as np

import jitney as jt
from jitney.ir.graph import Graph
from jitney.measure.table import Benchmark
from jitney.tracer.ahead.cost import Cost
from jitney.tracer.compare.compare import Comparison
from jitney.tracer.explain.explanation import Explanation
from jitney.tracer.explain.lowered import Lowered
from jitney.tracer.jit.cache_info import CacheInfo
from jitney.tracer.stages.drawing import Drawing
from jitney.tracer.stages.exploring import Exploration
from jitney.tracer.stages.stages import Stage, Stages

Array = np.ndarray[Any, np.dtype[np.float64]]


@jt.jit
def scaled(x: Array, factor: float = 2.0) -> Array:
    return x * factor


@jt.jit(static_argnames="n", fastmath=True)
def power(x: Array, *, n: int) -> Array:
    return x**n


@jt.checkpoint
def layer(x: Array) -> Array:
    return np.tanh(x)


@jt.checkpoint(policy="dots")
def product(x: Array) -> Array:
    return x @ x


class Model:
    @jt.jit
    def forward(self, x: Array, bias: float) -> Array:
        return x + bias


def pair(x: Array) -> tuple[Array, str]:
    return x * 2, "note"


def calls(x: Array) -> None:
    assert_type(scaled(x), Array)
    assert_type(scaled(x, factor=3.0), Array)
    assert_type(power(x, n=2), Array)
    assert_type(Model().forward(x, 1.0), Array)
    assert_type(layer(x), Array)
    assert_type(product(np.eye(2)), Array)


def inspections(x: Array) -> None:
    assert_type(scaled.lower(x), Lowered)
    assert_type(scaled.trace(jt.ShapeDtype((3,), np.float64)), Graph)
    assert_type(scaled.explain(x), Explanation)
    assert_type(scaled.ptx(x, arch="sm_80"), str)
    assert_type(scaled.draw(x), Drawing)
    assert_type(scaled.explore(x), Exploration)
    assert_type(scaled.stages(x), Stages)
    assert_type(scaled.stages(x, after="fuse"), Stage)
    assert_type(scaled.cache_info(), CacheInfo)
    assert_type(jt.cost(scaled, x), Cost)
    assert_type(jt.bench(scaled, x, seconds=0.001), Benchmark)
    assert_type(jt.compare(scaled, x), Comparison)
    assert_type(jt.materialize(x), Array)
    model = Model()
    assert_type(model.forward.lower(x, 1.0), Lowered)
    assert_type(scaled.__wrapped__(x), Array)


def derivatives(x: Array) -> None:
    assert_type(jt.value_and_grad(loss)(x, x), tuple[np.floating[Any], Any])
    jt.grad(loss)(x, y=x)
    out, pulled = jt.vjp(layer, x)
    assert_type(out, Array)
    assert_type(pulled, Callable[[Any], tuple[Any, ...]])
    assert_type(jt.vjp(pair, x, has_aux=True)[2], str)
    assert_type(jt.jvp(layer, (x,), (x,))[0], Array)
    assert_type(jt.linearize(layer, x)[0], Array)


def loss(x: Array, y: Array) -> np.floating[Any]:
    return np.sum(x * y)


def refused(x: Array) -> None:
    scaled("no array")  # type: ignore[arg-type]
    scaled(x, scale=2.0)  # type: ignore[call-arg]
    power(x)  # type: ignore[call-arg]
    Model().forward(x)  # type: ignore[call-arg]
    jt.grad(loss)(x)  # type: ignore[call-arg]
    jt.hessian(loss)(x)  # type: ignore[call-arg]
    layer()  # type: ignore[call-arg]
    jt.jit(loss, fast_math=True)  # type: ignore[call-overload]
    jt.jit(loss, backend="gpu")  # type: ignore[call-overload]
