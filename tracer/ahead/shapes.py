"""`jt.eval_shape`: the shapes and dtypes of a result, from those of the arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from ...ir.graph import Value
from ..captures.captured_variables import CapturedVariables
from ..captures.effects.recipes import build
from ..containers.leaving import Leaving
from ..core.finish import finisher
from ..core.tracers import Tracer
from ..core.tracing import Result, Traced
from ..data.pytree import tree_map
from ..data.shapes import ShapeDtype
from ..jit.decorator import unbound
from ..jit.dispatch import Call
from ..jit.function import JitFunction
from ..jit.traces import trace_call
from ..messages import errors
from ..messages.errors import complain
from ..messages.tracebacks import shortened


@shortened
def eval_shape(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What `function(*args, **kwargs)` would give, with a `ShapeDtype` in the place of each array.

    Arguments are arrays, numbers, `ShapeDtype`s, and pytrees of them; only shapes and dtypes matter.
    The function is traced, as `jit` does it, and nothing is computed: arrays may be of any size. Where
    it is compiled already (`@jit`), its options hold. What is no array in a result stays as it is.

    Raises what tracing raises, with the line, and TransformError for a list, dict or set in a result
    whose length is known at run time only.

    >>> rows, weights = jt.ShapeDtype((9000, 4)), jt.ShapeDtype(4, np.float32)
    >>> eval_shape(lambda a, b: {"y": a @ b, "n": 3}, rows, weights)
    {'y': ShapeDtype((9000,), float64), 'n': 3}
    """
    compiled, args = unbound(function, args)
    args, kwargs = tree_map(bare, (args, kwargs))

    def shapes(compiled: JitFunction, call: Call) -> Any:
        with compiled._lock:
            return _shapes(*trace_call(compiled, call))

    return compiled._looked_at(shapes, args, kwargs)


def bare(leaf: Any) -> Any:
    """A tracer is as good as its shape and dtype; DynamicShapeError for one of any length."""
    if isinstance(leaf, ShapeDtype):
        return ShapeDtype(leaf.type.shape, leaf.dtype)
    return ShapeDtype.like(leaf) if isinstance(leaf, Tracer) else leaf


def _shapes(traced: Traced, captured: CapturedVariables) -> Any:
    graph, effects = traced.graph, captured.effects
    leaves = finisher(traced, _shape)(_like(graph.outputs), _like(graph.params))
    if effects is None:
        return leaves
    nodes = [] if captured.heap is None else captured.heap.objects()
    return build(effects.result, leaves, nodes, {})


def _like(values: Sequence[Value]) -> list[Any]:
    """Shapes and dtypes; None for the tokens of effects."""
    types = [getattr(value.type, "shape", None) for value in values]
    return [
        None if shape is None else ShapeDtype(shape, value.dtype)
        for shape, value in zip(types, values, strict=True)
    ]


def _shape(result: Result, outputs: list[Any], inputs: Sequence[Any]) -> Any:
    if result.output is not None:
        known = outputs[result.output]
    elif result.argument is not None:
        known = inputs[result.argument]
    else:
        return ShapeDtype.like(result.static) if _is_array(result.static) else result.static
    array: Any = np.broadcast_to(np.zeros((), known.dtype), known.shape)  # of one element
    for view in result.views:
        if isinstance(view, Leaving):
            _refuse_container()
        array = view(array)
    return tree_map(ShapeDtype.like, array)


def _refuse_container() -> NoReturn:
    complain(
        errors.TransformError,
        "the result has a list, dict or set that grows while the function runs, and so no shape",
        "return an array, such as np.array(items), or look at what a call returns.",
    )


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray)
