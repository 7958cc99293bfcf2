"""Whether derivative rules are right, as differences of the function tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...ir.autodiff.transform import vjp_graph
from ...ir.graph import Graph
from ...ir.interpreter import evaluate
from ...ir.types import TensorType
from .search import Culprit, Kept, is_tried, window
from .values import Difference

_NEAR = 1e-3  # relative: what differences of functions are good for
_STEP = 1e-5


def is_float(leaf: Any) -> bool:
    """Whether a leaf has a derivative that differences can check: real, of 4 or 8 bytes."""
    dtype = getattr(leaf, "dtype", np.dtype(type(leaf)) if type(leaf) is float else None)
    return dtype in (np.float32, np.float64)


def by_differences(
    function: Callable[..., Any],
    arrays: Sequence[Any],
    along: Sequence[Any],
    weights: Sequence[Any],
) -> float:
    """The derivative of the weighted sum of what `function(*arrays)` gives, along a direction."""

    def weighed(sign: float) -> float:
        moved = [
            np.asarray(a, np.float64) + sign * _STEP * u if u is not None else a
            for a, u in zip(arrays, along, strict=True)
        ]
        outs = function(*moved)
        pairs = zip(outs, weights, strict=True)
        return float(sum(np.sum(np.asarray(y, float) * w) for y, w in pairs if w is not None))

    return (weighed(1.0) - weighed(-1.0)) / (2 * _STEP)


def wrong_rule(kept: Kept) -> Culprit | None:
    """The first op whose derivative rule differences belie."""
    for op, home in kept.ops.items():
        if not is_tried(op):
            continue
        part = window(home, op, 0)
        assert part is not None
        graph, params = part
        arrays = [kept.values[0].get(p) for p in params]
        wrt = [k for k, a in enumerate(arrays) if is_float(a)]
        if not wrt or any(a is None for a in arrays):
            continue
        found = _belied(graph, arrays, wrt)
        if found is not None:
            text = "its derivative rule"
            return Culprit(op.name, op.loc, text, vjp_graph(graph, wrt), tuple(arrays), found)
    return None


def _belied(graph: Graph, arrays: Sequence[Any], wrt: Sequence[int]) -> Difference | None:
    rng = np.random.default_rng(0)
    outs = evaluate(graph, arrays)
    weights = [rng.normal(size=np.shape(y)) if is_float(y) else None for y in outs]
    if not any(w is not None for w in weights):
        return None
    try:
        back = vjp_graph(graph, wrt)
        seeds = [w.astype(y.dtype) for w, y in zip(weights, outs, strict=True) if w is not None]
        gradients = evaluate(back, [*arrays, *seeds])[len(outs) :]
    except Exception:  # an op without a derivative has none that is wrong
        return None
    along: list[Any] = [
        rng.normal(size=np.shape(a)) if k in wrt else None for k, a in enumerate(arrays)
    ]
    pairs = zip(gradients, (along[k] for k in wrt), strict=True)
    told = float(sum(np.sum(np.asarray(g, np.float64) * u) for g, u in pairs))
    wide = _widened(graph)
    if wide is None:
        return None
    measured = by_differences(lambda *moved: evaluate(wide, moved), arrays, along, weights)
    if not np.isfinite(measured) or abs(told - measured) <= _NEAR * max(1.0, abs(measured)):
        return None
    gap = abs(told - measured)
    return Difference("derivative along a direction", 1, 1, gap, gap, (), told, measured)


def _widened(graph: Graph) -> Graph | None:
    """The graph, if it computes in float64; one in float32 is too coarse for differences."""
    types = (*graph.input_types, *graph.output_types)
    coarse = any(isinstance(t, TensorType) and t.dtype == np.float32 for t in types)
    return None if coarse else graph
