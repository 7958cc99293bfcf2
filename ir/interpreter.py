"""The interpreter: runs a graph with NumPy, op by op. It is the law that compiled code is held to.

    evaluate(graph, [x, y])  ->  [result, ...]

Tensors are ndarrays of exactly the declared type, tokens are None, tapes are tuples (`ops.control`).
Results may be views of inputs or of each other, and may be read-only. A failed check raises
IndexError (gather, scatter) or AssertionError (assert).

`watching(watcher)` shows a watcher each op that is evaluated, those of regions too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import partial
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
    return runner(graph)(arrays)


def runner(graph: Graph) -> Callable[[Sequence[Any]], list[Any]]:
    """`evaluate` of this graph, for who evaluates it more than once: a loop its body."""
    last_use = _last_uses(graph)
    steps = [(op, op.operands, op.results, last_use.get(op, ()), *_rule(op)) for op in graph.ops]
    params, outputs = graph.params, graph.outputs

    def run(arrays: Sequence[Any]) -> list[Any]:
        env = _parameters(graph, params, arrays)
        watcher = _watcher.get()
        if watcher is not None:
            watcher.enter(graph)
        with np.errstate(all="ignore") if watcher is None else nullcontext():
            for op, operands, results, dead, reference, options, widens in steps:
                given = [env[v] for v in operands]
                if watcher is not None:
                    found = watcher.evaluate(op, given, partial(computed, op, given))
                elif widens:
                    found = _in_single(op, given, reference, options)
                else:
                    found = reference(*given, **options)
                if len(results) == 1 and not isinstance(found, tuple):
                    env[results[0]] = found
                else:
                    env.update(zip(results, found, strict=True))
                for v in dead:
                    env.pop(v, None)  # memory follows what is alive, as in compiled code
        return [env[v] for v in outputs]

    return run


def _parameters(graph: Graph, params: Sequence[Value], arrays: Sequence[Any]) -> dict[Value, Any]:
    """What `arrays` are: the values of the parameters, of exactly their types."""
    if len(arrays) != len(params):
        raise TypeError(f"{graph.name} takes {len(params)} arrays, got {len(arrays)}")
    env: dict[Value, Any] = {}
    for param, value in zip(params, arrays, strict=True):
        type = param.type
        if isinstance(type, TensorType):
            value = np.asarray(value)
            if value.shape != type.shape or value.dtype != type.dtype:
                raise TypeError(f"parameter {param!r} got {type_of(value)}")
        env[param] = value
    return env


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
    reference, options, widens = _rule(op)
    with np.errstate(all="ignore"):
        if widens:
            return _in_single(op, operands, reference, options)
        results = reference(*operands, **options)
    return results if isinstance(results, tuple) else (results,)


def _rule(op: Op) -> tuple[Callable[..., Any], dict[str, Any], bool]:
    """The reference of an op, what it is given beside operands, and whether these become float32."""
    definition = op.definition
    options = {"regions": op.regions, **op.attrs} if op.regions else op.attrs
    small = False
    for v in op.operands:
        small = small or (isinstance(v.type, TensorType) and is_small(v.type.dtype))
    widens = small and definition.family != "composition" and not definition.only_moves(op.attrs)
    return definition.reference, options, widens


def _in_single(
    op: Op, operands: Sequence[Any], reference: Callable[..., Any], options: dict[str, Any]
) -> tuple[Any, ...]:
    results = reference(*[_widened(a) for a in operands], **options)
    results = results if isinstance(results, tuple) else (results,)
    return tuple([_rounded(a, v.type) for a, v in zip(results, op.results, strict=True)])


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
