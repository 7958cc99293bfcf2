"""`jt.vjp` and `jt.linearize` called with DeviceArrays outside of tracing: two programs.

They are traced at each call as elsewhere: what the second one, the function that they return, reads of
the first stays on the device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir.graph import Value
from ...ir.types import TensorType, is_inexact
from ...runtime.cuda.array import DeviceArray
from ..core.finish import device_finisher
from ..core.specs import Spec, Static
from ..core.trace import current_trace
from ..core.tracers import WEAK_DTYPES, Tracer, as_tracer, wrap
from ..core.tracing import Traced, trace_function
from ..data import pytree
from ..devices.devices import client, device_of, put_all
from .differentiable import tangent_leaves

Split = Callable[..., tuple[Any, Callable[[Any], Any], Any]]


def run_apart(
    split: Split, primals: tuple[Any, ...], what: str
) -> tuple[Any, Callable[[Any], Any]]:
    """`result, later, like = split(*primals)`, as two programs; gives the result and `later`.

    `later` takes a tree of tangents or cotangents of `like`.
    """
    leaves, tree = pytree.flatten((primals, {}))
    device = device_of(leaves)
    assert device is not None
    here = client(device)
    specs = [_spec(leaf) for leaf in leaves]
    parts: list[_Later] = []

    def first(*primals: Any) -> tuple[Any, list[Any]]:
        result, later, like = split(*primals)
        part = _Later(later, like, what)
        parts.append(part)
        return result, part.residuals

    traced = trace_function(
        first, specs, tree, what=what, name=what, values_only=False, views=False
    )
    operands = [leaf for leaf, spec in zip(leaves, specs, strict=True) if isinstance(spec, Spec)]
    captures = [capture.outer for capture in traced.captures]
    arrays = put_all(here, [*operands, *captures])
    result, residuals = device_finisher(traced)(here.compile(traced.graph).run(arrays), arrays)
    (part,) = parts
    inputs = part.inputs(residuals)
    program: list[Any] = []

    def later(tree: Any) -> Any:
        if current_trace() is not None:
            again = split(*pytree.tree_map(_traced, primals))[1]
            return again(tree)
        seeds = tangent_leaves(tree, part.tree, part.types, *_WORDS[what])
        if not program:
            program.append(here.compile(part.traced.graph))
        arrays = put_all(here, [*seeds, *inputs])
        return device_finisher(part.traced)(program[0].run(arrays), arrays)

    return result, later


_WORDS = {"vjp": ("cotangent", "result"), "linearize": ("tangent", "primal")}


class _Later:
    """The second part, traced inside of the first: what it captures of it are the residuals."""

    def __init__(self, later: Callable[[Any], Any], like: Any, what: str) -> None:
        leaves, self.tree = pytree.flatten(like)
        self.types: list[TensorType] = [_type(leaf) for leaf in leaves]
        floats = [is_inexact(t.dtype) for t in self.types]

        def flat(*operands: Any) -> Any:
            left = iter(operands)
            return later(pytree.unflatten(self.tree, [next(left) if f else None for f in floats]))

        specs = [Spec(t) for t, f in zip(self.types, floats, strict=True) if f]
        tree = pytree.flatten((tuple(specs), {}))[1]
        self.traced: Traced = trace_function(
            flat, specs, tree, what=what, name=f"{what}_later", values_only=False, views=False
        )
        self._outer = [capture.outer for capture in self.traced.captures]
        self.residuals = [wrap(v, scalar=False) for v in self._outer if isinstance(v, Value)]

    def inputs(self, residuals: list[Any]) -> list[Any]:
        """What the captures are when the first part has run."""
        remaining = iter(residuals)
        return [next(remaining) if isinstance(v, Value) else v for v in self._outer]


def _type(leaf: Any) -> TensorType:
    if isinstance(leaf, Tracer):
        return leaf.type
    array = np.asarray(leaf)
    return TensorType(array.shape, array.dtype)


def _spec(leaf: Any) -> Spec | Static:
    if isinstance(leaf, (DeviceArray, np.ndarray)):
        return Spec(TensorType(leaf.shape, leaf.dtype), writeable=False)
    if isinstance(leaf, np.generic):
        return Spec(TensorType((), leaf.dtype), None, True)
    if type(leaf) in (float, complex):
        kind = "f" if type(leaf) is float else "c"
        return Spec(TensorType((), WEAK_DTYPES[kind]), kind, True)
    return Static(leaf)


def _traced(leaf: Any) -> Any:
    return as_tracer(leaf) if isinstance(leaf, DeviceArray) else leaf
