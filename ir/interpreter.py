"""The interpreter: runs a graph with NumPy, op by op. It is the law that compiled code is held to.

    evaluate(graph, [x, y])  ->  [result, ...]

Tensors are ndarrays of exactly the declared type, tokens are None, tapes are tuples (`ops.control`).
Results may be views of inputs or of each other, and may be read-only. A failed check raises
IndexError (gather, scatter) or AssertionError (assert).

`watching(watcher)` shows a watcher each op that is evaluated, those of regions too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

import numpy as np

from .graph import Graph, Op, Value
from .types import F32, TensorType, Type, is_small, type_of


class Watcher(Protocol):
    """What sees a graph being interpreted."""

    def enter(self, graph: Graph) -> None:
        """A graph, or a region of the op that is being evaluated, runs now."""

    def evaluate(
        self, op: Op, operands: Sequence[Any], compute: Callable[[], tuple[Any, ...]]
    ) -> tuple[Any, ...]:
        """The results of an op, which `compute` gives."""
        ...


_watcher: ContextVar[Watcher | None] = ContextVar("jitney_watcher", default=None)


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Inside, `watcher` sees what this thread interprets."""
    reset = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(reset)


def evaluate(graph: Graph, arrays: Sequence[Any]) -> list[Any]:
    """The outputs of `graph` for these parameters."""
    if len(arrays) != len(graph.params):
        raise TypeError(f"{graph.name} takes {len(graph.params)} arrays, got {len(arrays)}")
    entered(graph)
    env: dict[Value, Any] = {}
    for param, value in zip(graph.params, arrays, strict=True):
        array = np.asarray(value) if isinstance(param.type, TensorType) else value
        if isinstance(param.type, TensorType) and type_of(array) != param.type:
            raise TypeError(f"parameter {param!r} got {type_of(array)}")
        env[param] = array
    last_use = _last_uses(graph)
    for op in graph.ops:
        results = evaluate_op(op, [env[v] for v in op.operands])
        env.update(zip(op.results, results, strict=True))
        for v in last_use.get(op, ()):
            env.pop(v, None)  # memory follows what is alive, as in compiled code
    return [env[v] for v in graph.outputs]


def entered(graph: Graph) -> None:
    """Tell the watcher, if there is one, that `graph` runs now."""
    watcher = _watcher.get()
    if watcher is not None:
        watcher.enter(graph)


def evaluate_op(op: Op, operands: Sequence[Any]) -> tuple[Any, ...]:
    """The results of one op, of exactly the types that were inferred for it."""
    watcher = _watcher.get()
    if watcher is None:
        return computed(op, operands)
    return watcher.evaluate(op, operands, lambda: computed(op, operands))


def computed(op: Op, operands: Sequence[Any]) -> tuple[Any, ...]:
    """The results of one op, by its reference.

    Floats of 16 and 8 bits are computed with in float32, and each result is rounded once; so are those
    of the ops that a composition is made of.
    """
    regions = {"regions": op.regions} if op.regions else {}
    types = [v.type for v in op.operands]
    small = any(isinstance(t, TensorType) and is_small(t.dtype) for t in types)
    widens = small and not op.definition.only_moves(op.attrs)
    widens = widens and op.definition.family != "composition"
    with np.errstate(all="ignore"):
        if widens:
            operands = [_widened(a) for a in operands]
        results = op.definition.reference(*operands, **regions, **op.attrs)
        results = results if isinstance(results, tuple) else (results,)
        if widens:
            pairs = zip(results, op.results, strict=True)
            results = tuple(_rounded(a, v.type) for a, v in pairs)
    return results


def _widened(operand: Any) -> Any:
    small = isinstance(operand, np.ndarray) and is_small(operand.dtype)
    return operand.astype(F32) if small else operand


def _rounded(result: Any, type: Type) -> Any:
    if isinstance(type, TensorType) and is_small(type.dtype):
        return result.astype(type.dtype)
    return result


def _last_uses(graph: Graph) -> dict[Op, list[Value]]:
    """For each op the values that nothing reads after it."""
    last = {v: op for op in graph.ops for v in op.operands}
    for v in graph.outputs:
        last.pop(v, None)
    dead: dict[Op, list[Value]] = {}
    for v, op in last.items():
        dead.setdefault(op, []).append(v)
    return dead
