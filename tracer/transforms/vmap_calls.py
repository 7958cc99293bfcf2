"""Calls of what `vmap` gives: the examples are computed together.

The function is traced once, for one example, and its graph is batched (`ir.batching`): there is no
loop over examples unless the program has one. So inside of the function a value stands for every
example at once, and Python cannot branch on it, within jit or outside; `jt.cond`, `jt.where` and
`jt.while_loop` branch for each example by itself.

What the function closes over, and arguments with the axis None, are the same for all examples. In-place
assignment to an argument works and stays inside of the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ...ir.batching.examples import by_example, draws, runs_in_turn
from ...ir.batching.transform import BatchingError, batch_graph, talks_along
from ...ir.build import Builder
from ...ir.graph import Graph, Value
from ...ir.interpreter import evaluate
from ...ir.record import record, replace
from ..arrays.whole import Rows, whole_rows
from ..control.regions import show_tree
from ..core.specs import Spec, Static, is_array, spec_of
from ..core.threaded_state import BorrowedStates, settle
from ..core.trace import current_trace
from ..core.tracers import Tracer, as_value
from ..core.tracing import Result, Traced, trace_function
from ..data import pytree
from ..data.callables import Function
from ..data.entering import open_call
from ..data.layout import c_strides
from ..data.opened import closed
from ..messages import errors
from ..messages.errors import complain
from ..messages.source import user_line
from .application import append
from .named_axes import Examples, bound
from .outer_state import OuterState
from .presented import Leaf, present
from .vmap_axes import Argument, Axis, arguments, common_size, spread_axes


@record
class Axes:
    """What `vmap` was told: the axes of the examples, how many there are, and the axis' name."""

    into: Any
    out: Any
    size: int | None
    name: str | None


def batched_call(fun: Function, told: Axes, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What `vmap(fun, ...)(*args, **kwargs)` gives."""
    batched = partial(_batched, fun, told)
    if current_trace() is not None:
        return batched(*args, **kwargs)
    leaves, tree = pytree.flatten((args, kwargs))
    state = OuterState.of(fun, leaves)
    return state.run(batched, leaves, tree) if state.changes else batched(*args, **kwargs)


def _batched(fun: Function, told: Axes, /, *args: Any, **kwargs: Any) -> Any:
    axes = told.into if isinstance(told.into, tuple) else (told.into,) * len(args)
    mapped = [i for i, axis in enumerate(axes) if axis is not None]
    function, args = open_call(fun, args, mapped, gradient=False)
    rows = None if told.name is not None else whole_rows((args, kwargs))
    if rows is not None:
        args, kwargs = rows.tree
    leaves, tree = pytree.flatten((args, kwargs))
    leaves_and_axes = arguments(fun, args, kwargs, leaves, told.into)
    size = common_size(fun, leaves_and_axes, told.size)
    if rows is not None:
        _check_rows(rows, leaves_and_axes, told.out)
    call = _BatchedCall(function, leaves_and_axes, tree, size, told.name)
    results = call.results(_out_axes(told.out, call.traced))
    result = pytree.unflatten(call.traced.out_tree, results)
    return closed(result if rows is None else rows.counted(result))


def _check_rows(rows: Rows, arguments: Sequence[Argument], out_axes: Any) -> None:
    """Examples that are as many as the length of an axis are along the first one, in and out."""
    padded = {id(x) for x in rows.padded}
    first = all(a.axis == 0 for a in arguments if id(a.leaf) in padded)
    if not first or any(axis != 0 for axis in pytree.flatten_with_none(out_axes)[0]):
        complain(
            errors.DynamicShapeError,
            "vmap over another axis than the first of an array whose length is a value",
            "give such arrays, and the results, the axis 0.",
        )


class _BatchedCall:
    """One call: the traced function of one example, and its batched graph at work here."""

    def __init__(
        self,
        fun: Function,
        leaves: Sequence[Argument],
        tree: pytree.TreeDef,
        size: int,
        axis_name: str | None = None,
    ) -> None:
        self.size = size
        self.label: str | None = None
        traced = [a for a in leaves if a.axis is not None or is_array(a.leaf)]
        self.inputs = [_first(a) for a in traced]
        with bound(axis_name, self._axis):
            self.traced = trace_function(
                *(fun, [_spec(a) for a in leaves], tree),
                what="vmap",
                refuse_as=fun,
                borrowed=BorrowedStates(),
            )
        self._states = [value for _, value in self.traced.advanced]
        self.traced.graph.outputs += self._states
        captured = [c.outer for c in self.traced.captures]
        self.inputs += captured
        flags = [a.axis is not None for a in traced] + [False] * len(captured)
        try:
            self.graph, self.flags = self._batched(flags)
        except BatchingError as error:
            complain(
                errors.TransformError,
                f"this program cannot be batched: {error}",
                "call the function in a Python loop, or in jt.fori_loop, over the examples.",
                line=getattr(error.op, "loc", None),
                cause=error,
            )
        count = len(self.flags) - len(self._states)
        if any(self.flags[count:]):
            value = self._states[self.flags[count:].index(True)]
            complain(
                errors.OuterMutationError,
                "a function under jt.vmap assigns what differs from example to example to an "
                "attribute, or an array, that is there once",
                "reduce it first: return the values of the examples, and assign their sum or mean "
                "outside.",
                line=None if value.op is None else value.op.loc,
            )

    def _axis(self, label: str) -> Examples:
        self.label = label
        return Examples(label, self.size)

    def _batched(self, flags: list[bool]) -> tuple[Graph, list[bool]]:
        """All examples at once; or in turn, where the program compiled for a CPU loops over elements,
        and where each example has a generator of its own."""
        graph, trace = self.traced.graph, current_trace()
        if self.label is not None and any(talks_along(op, self.label) for op in graph.ops):
            return batch_graph(graph, flags, self.size, self.label)
        in_turn = (
            trace is not None and not trace.eager and trace.options.on_cpu and not self._states
        )
        if draws(graph) or (in_turn and runs_in_turn(graph, flags, self.size)):
            return by_example(graph, flags, self.size), [True] * len(graph.outputs)
        return batch_graph(graph, flags, self.size)

    def results(self, axes: Sequence[Axis]) -> list[Any]:
        """The leaves of the result, with the examples along `axes`."""
        graph = Graph(self.graph.name)
        graph.params, graph.ops = self.graph.params, list(self.graph.ops)
        b = Builder(graph, user_line())
        for result, axis in zip(self.traced.results, axes, strict=True):
            graph.outputs.append(self._placed(b, result, axis))
        graph.outputs += self.graph.outputs[len(self.graph.outputs) - len(self._states) :]
        outputs = _run(graph, self.inputs)
        after = [v for v in outputs[len(axes) :] if isinstance(v, Value)]
        settle([storage for storage, _ in self.traced.advanced], after)
        seen = {id(x) for x in self.inputs}
        leaves = []
        for leaf, result, axis in zip(outputs, self.traced.results, axes, strict=False):
            alone = axis is None  # then it is what the function returns
            fresh = id(leaf) not in seen
            leaves.append(
                present(leaf, result.weak if alone else None, alone and result.scalar, fresh=fresh)
            )
            seen.add(id(leaf))
        return leaves

    def _placed(self, b: Builder, result: Result, axis: Axis) -> Value:
        assert result.output is not None
        value, batched = self.graph.outputs[result.output], self.flags[result.output]
        one = self.traced.graph.outputs[result.output]
        if axis is None:
            if batched:
                complain(
                    errors.TransformError,
                    f"out_axes is None for a result of type {one.type} that differs from example "
                    "to example",
                    "give it an axis, or reduce it over the examples outside of the function.",
                )
            return value
        rank = len(one.shape) + 1
        if not -rank <= axis < rank:
            complain(
                errors.AxisBoundsError,
                f"out_axes has the axis {axis} for a result of type {one.type}; with the axis of "
                f"the examples it has {rank} {'axis' if rank == 1 else 'axes'}",
                f"axes go from {-rank} to {rank - 1} there.",
            )
        axis %= rank
        if not batched:
            shape = (*one.shape[:axis], self.size, *one.shape[axis:])
            return b.broadcast(value, shape=shape, dims=tuple(d for d in range(rank) if d != axis))
        if axis == 0:
            return value
        perm = list(range(1, rank))
        perm.insert(axis, 0)
        return b.transpose(value, perm=tuple(perm))


def _out_axes(out_axes: Any, traced: Traced) -> list[Axis]:
    out = pytree.unflatten(traced.out_tree, range(len(traced.results)))
    axes = spread_axes(out_axes, out)
    if axes is None:
        complain(
            errors.TransformError,
            f"out_axes={out_axes!r} is no upper part of the structure of the result, "
            f"{show_tree(traced.out_tree)}",
            "give an int or None for the whole result, or a tree of them like it.",
        )
    return axes


def _run(graph: Graph, inputs: Sequence[Leaf]) -> list[Leaf]:
    """The outputs of `graph`: computed, or appended to the current trace."""
    if current_trace() is None:
        return list(evaluate(graph, inputs))
    env: dict[Value, Leaf] = dict(zip(graph.params, inputs, strict=True))
    append(graph.ops, env)
    return [env[v] for v in graph.outputs]


def _spec(argument: Argument) -> Spec | Static:
    """How one example of the argument looks inside of the function."""
    leaf, axis = argument.leaf, argument.axis
    if axis is None:
        return spec_of(leaf) if is_array(leaf) else Static(leaf)
    whole = spec_of(leaf)
    shape = _without(whole.type.shape, axis)
    strides = None if whole.strides is None else _without(whole.strides, axis)
    if axis > 0 and strides is None:
        strides = _without(c_strides(whole.type.shape), axis)
    return replace(whole, type=whole.type.with_shape(shape), scalar=not shape, strides=strides)


def _without(entries: Sequence[int], axis: int) -> tuple[int, ...]:
    return (*entries[:axis], *entries[axis + 1 :])


def _first(argument: Argument) -> Leaf:
    """The argument with its examples along the first axis, as the current trace has it."""
    leaf, axis = argument.leaf, argument.axis
    trace = current_trace()
    if trace is None and not isinstance(leaf, Tracer):
        return np.asarray(leaf) if axis is None else np.moveaxis(leaf, axis, 0)
    value = as_value(leaf)
    if not axis:
        return value
    assert trace is not None
    with trace.builder.at(user_line()):
        perm = (axis, *(d for d in range(len(value.shape)) if d != axis))
        return trace.builder.transpose(value, perm=perm)
