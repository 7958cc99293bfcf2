"""Callbacks: Python functions as ops. Pure ones may be moved, merged, dropped; the others are effects.

The function gets ndarrays of its own and gives a tuple of values that fit `function.results` exactly.
What it raises reaches the caller of the graph as it was raised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, NoReturn

import numpy as np

from ...batching.structured import refuse_effect
from ...batching.transform import BatchBuilder, Batched, Marks, batch_each
from ...cost import Cost
from ...graph import Op, Value
from ...opdef import DerivativeError, GraphError, OpDef, register
from ...types import TOKEN, TensorType, Type

_serial = count()


class PythonFunction:
    """A Python function as an attribute of an op, named for printing.

    function: takes arrays, gives a tuple of array-likes
    results:  the types of what it gives
    each:     whether many examples at once may mean one call for each, if it has effects
    raises:   the exception that it raises whenever it is called, if that is all that it does

    Two are equal if their functions are, and so they are merged where nothing forbids it.
    """

    __slots__ = ("function", "results", "name", "each", "raises", "serial", "__weakref__")

    def __init__(
        self,
        function: Callable[..., Any],
        results: tuple[TensorType, ...],
        name: str = "",
        each: bool = False,
        raises: Exception | None = None,
    ) -> None:
        self.function = function
        self.results = results
        self.name = name or getattr(function, "__name__", "function")
        self.each = each
        self.raises = raises
        self.serial = next(_serial)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PythonFunction):
            return NotImplemented
        return bool(self.function == other.function) and self.results == other.results

    def __hash__(self) -> int:
        return hash((self.function, self.results))

    def __repr__(self) -> str:
        return f"<python {self.name} #{self.serial}>"

    def __call__(self, *arrays: Any) -> tuple[np.ndarray[Any, Any], ...]:
        """Call the function on copies, and check what it gives against `results`."""
        returned = self.function(*(np.array(a) for a in arrays))
        if not isinstance(returned, tuple) or len(returned) != len(self.results):
            raise TypeError(f"{self.name} has to give {len(self.results)} values, not {returned!r}")
        fitting = []
        for value, type in zip(returned, self.results, strict=True):
            array = np.asarray(value)
            if array.shape != type.shape or array.dtype != type.dtype:
                raise TypeError(
                    f"{self.name} gave an array of dtype {array.dtype} and shape {array.shape}; its "
                    f"declared result is dtype {type.dtype} and shape {type.shape}"
                )
            fitting.append(array)
        return tuple(fitting)


def _infer_pure(*types: Type, function: PythonFunction) -> tuple[Type, ...]:
    if not all(isinstance(t, TensorType) for t in types):
        raise GraphError("a pure callback takes tensors only")
    return function.results


def _infer_effectful(*types: Type, function: PythonFunction) -> tuple[Type, ...]:
    if not types or types[-1] != TOKEN:
        raise GraphError("the last operand of a callback is the order token")
    return (*function.results, TOKEN)


def _call(*arrays: Any, function: PythonFunction) -> Any:
    results = function(*arrays)
    return results[0] if len(results) == 1 else results


def _call_in_order(*arrays: Any, function: PythonFunction) -> Any:
    return (*function(*arrays[:-1]), None)


def _no_derivative(b: Any, op: Op, *operands: Any) -> NoReturn:
    raise DerivativeError(
        f"{op.attrs['function'].name} is a Python function, and nobody knows its derivative; a "
        "jt.custom_vjp or jt.custom_jvp around the callback gives it one"
    )


def _batch_effect(b: BatchBuilder, op: Op, operands: Sequence[Value], batched: Marks) -> Batched:
    if op.attrs["function"].each:
        results, _ = batch_each(b, op, operands, batched)
        return results, [v.type is not TOKEN for v in op.results]
    return refuse_effect(b, op, operands, batched)


PURE_CALLBACK = register(
    OpDef(
        "pure_callback",
        "opaque",
        _infer_pure,
        _call,
        _no_derivative,
        _no_derivative,
        cost=Cost.DEAR,
        total=False,
        batch=batch_each,
        moves=True,
        attrs=("function",),
        doc="a Python function of its operands and nothing else",
    )
)

IO_CALLBACK = register(
    OpDef(
        "io_callback",
        "effect",
        _infer_effectful,
        _call_in_order,
        _no_derivative,
        _no_derivative,
        total=False,
        batch=_batch_effect,
        moves=True,
        attrs=("function",),
        effect=True,
        doc="a Python function that is called exactly once, in program order",
    )
)
