"""`graph.to_function()`: a graph as a function, compiled, or part of what is traced."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

import numpy as np

from ...ir.graph import Graph, Value, serve
from ...ir.text import printed_names
from ...ir.types import TOKEN, TensorType
from ..core.effects import advance, order_token
from ..core.trace import current_trace, require_trace
from ..core.tracers import as_value, wrap
from ..jit.decorator import jit
from ..messages import errors
from ..messages.errors import complain
from ..stages.drawing import draw


def function_of(graph: Graph) -> Callable[..., Any]:
    """A function of the graph's parameters."""
    params = [v for v in graph.params if v.type is not TOKEN]
    names = printed_names(graph)
    signature = Signature(
        [
            Parameter(_identifier(names[v], k), Parameter.POSITIONAL_OR_KEYWORD)
            for k, v in enumerate(params)
        ]
    )

    def traced(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments.values()
        values = iter([_operand(v, x) for v, x in zip(params, given, strict=True)])
        inputs = [order_token() if v.type is TOKEN else next(values) for v in graph.params]
        outputs = require_trace().builder.inline(graph, inputs)
        advance(tuple(outputs))
        results = [wrap(v) for v in outputs if isinstance(v.type, TensorType)]
        return results[0] if len(results) == 1 else tuple(results)

    compiled = jit(traced)

    def function(*args: Any, **kwargs: Any) -> Any:
        if current_trace() is not None:
            return traced(*args, **kwargs)
        bound = signature.bind(*args, **kwargs).arguments.values()
        return compiled(*[_array(v, x) for v, x in zip(params, bound, strict=True)])

    function.__name__ = traced.__name__ = graph.name
    function.__qualname__ = traced.__qualname__ = graph.name
    function.__doc__ = f"The graph {graph.name}: {', '.join(map(str, graph.output_types))}."
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


serve(to_function=function_of, draw=draw)


def _identifier(name: str, position: int) -> str:
    text = name.removeprefix("%").replace("/", "_")
    return text if text.isidentifier() else f"arg{position}"


def _array(value: Value, x: Any) -> np.ndarray[Any, Any]:
    """An argument of the type that the graph wants."""
    array = np.asarray(x)
    if array.shape != value.shape or not np.can_cast(array.dtype, value.dtype, "same_kind"):
        _refuse(value, x)
    return array.astype(value.dtype, copy=False)


def _operand(value: Value, x: Any) -> Value:
    """An argument of the trace, of the type that the graph wants."""
    operand = as_value(x)
    if operand.shape != value.shape or not np.can_cast(operand.dtype, value.dtype, "same_kind"):
        _refuse(value, x)
    return as_value(x, value.dtype)


def _refuse(value: Value, x: Any) -> None:
    complain(
        errors.ShapeError,
        f"the graph's parameter {value.name or value.index} is {value.type}",
        "give an array of that shape and dtype.",
        operands={value.name or "argument": x},
    )
