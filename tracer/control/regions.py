"""Functions traced as regions of structured ops: the branches of cond, the bodies of loops.

A region captures nothing: whatever its function closes over (arrays, values of enclosing traces)
comes in through extra operands, shared by all regions of one op. If it has effects, the order token
comes in and goes out likewise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...ir.build import Builder
from ...ir.graph import Graph, Value
from ...ir.record import record
from ...ir.types import TOKEN, TensorType, dtype_kind, is_extended
from ..core.specs import Spec, Static
from ..core.threaded_state import BorrowedStates
from ..core.tracers import WEAK_DTYPES, Tracer, wrap
from ..core.tracing import Traced, trace_function
from ..data import pytree
from ..data.layout import c_strides


@record
class Out:
    """One leaf of what a region takes or returns: its type, and how it promotes (see `Tracer`)."""

    type: TensorType
    weak: str | None
    scalar: bool
    strides: tuple[int, ...] | None = None

    def wrap(self, value: Value) -> Tracer:
        """A tracer for what an op made of it."""
        made = wrap(value, self.weak, scalar=self.scalar)
        made._strides = self.strides
        return made

    def __str__(self) -> str:
        kind = {"b": "bool", "i": "int", "f": "float", "c": "complex"}
        return f"a Python {kind[self.weak]}" if self.weak else str(self.type)


def fits(weak: str, dtype: np.dtype[Any]) -> bool:
    """Whether a Python scalar of that kind becomes `dtype` when it meets an array of `dtype`."""
    return dtype_kind(dtype) in {"b": "b", "i": "iufc", "f": "fc", "c": "c"}[weak]


def common_type(outs: Sequence[Out]) -> Out | None:
    """The type that all of `outs` can take without a change of an array's dtype, or None.

    Python scalars take the dtype of the arrays among them; an int among floats becomes a float, and
    both become complex among complex numbers.
    """
    if len({out.type.shape for out in outs}) > 1:
        return None
    scalar = any(out.scalar for out in outs)
    strong = {out.type for out in outs if out.weak is None}
    kinds = {out.weak for out in outs if out.weak is not None}
    if not strong:
        if "b" in kinds and len(kinds) > 1:
            return None
        weak = max(kinds, key="bifc".index)
        return Out(TensorType((), WEAK_DTYPES[weak]), weak, True)
    if len(strong) > 1:
        return None
    (type,) = strong
    orders = {out.strides or c_strides(out.type.shape) for out in outs if out.weak is None}
    strides = orders.pop() if len(orders) == 1 else None  # of several nobody knows which: C
    fit = all(fits(kind, type.dtype) for kind in kinds)
    return Out(type, None, scalar, strides) if fit else None


def promoted(outs: Sequence[Out]) -> Out | None:
    """The type of a number that stands for numbers of several types; None if they are no such."""
    dtypes = {out.type.dtype for out in outs}
    if any(out.type.shape or not out.scalar or out.type.dtype.kind not in "iufc" for out in outs):
        return None
    if any(is_extended(dtype) for dtype in dtypes):
        return None
    return Out(TensorType((), np.result_type(*dtypes)), None, True)


class _Star:
    def __repr__(self) -> str:
        return "*"


def show_tree(tree: pytree.TreeDef) -> str:
    """A structure as Python would print it, with `*` for each array: `{'a': *, 'b': (*, *)}`."""
    return repr(pytree.unflatten(tree, [_Star()] * tree.num_leaves))


class TracedRegion:
    """A traced function, not yet closed over its captures."""

    def __init__(self, traced: Traced) -> None:
        self.traced = traced
        self.tree = traced.out_tree
        self.token = traced.token  # after its last effect; None without effects
        graph = traced.graph
        results = [graph.outputs[r.output] for r in traced.results if r.output is not None]
        self.values = results
        self.outs = [
            Out(v.tensor, r.weak, r.scalar, r.strides)
            for v, r in zip(results, traced.results, strict=True)
        ]
        count = len(graph.outputs) - len(traced.mutated)
        self.mutated = dict(zip(traced.mutated, graph.outputs[count:], strict=True))

    @property
    def captured(self) -> list[Value]:
        """The values of the enclosing trace that the function closes over."""
        values = [capture.outer for capture in self.traced.captures]
        assert all(isinstance(v, Value) for v in values), "a region lives inside a trace"
        return values

    def close(
        self,
        captured: Sequence[Value],
        outputs: Sequence[Value | None],
        types: Sequence[TensorType | None],
        *,
        captures_first: bool = False,
        token_at: int | None = None,
    ) -> Graph:
        """The region's graph with one parameter per value of `captured` after (or before) its own.

        Gives `outputs`, values of the region, converted to `types`. With `token_at` its own
        parameters have the order token among them, at that position, and a None in `outputs`
        stands for the token after its last effect.
        """
        inner = self.traced.graph
        explicit = inner.params[: len(inner.params) - len(self.traced.captures)]
        graph = Graph(inner.name)
        lifted: dict[Value, Value] = {}
        env: dict[Value, Value] = {}
        token = None
        if captures_first:
            lifted = {v: graph.add_param(v.type, v.name) for v in captured}
        for i, value in enumerate([*explicit, None]):
            if i == token_at:
                token = graph.add_param(TOKEN)
            if value is not None:
                env[value] = graph.add_param(value.type, value.name)
        if not captures_first:
            lifted = {v: graph.add_param(v.type, v.name) for v in captured}
        builder = Builder(graph)
        env.update((c.param, lifted[c.outer]) for c in self.traced.captures)
        for op in inner.ops:
            if op.name == "create_token" and token is not None:
                env[op.result] = token  # the region's thread goes on from the outer one
            else:
                builder.copy(op, env)
        last = token if self.token is None else env[self.token]
        for value, type in zip(outputs, types, strict=True):
            output = last if value is None else env[value]
            assert output is not None
            if type is not None and output.tensor.dtype != type.dtype:
                output = builder.convert(output, dtype=type.dtype)
            graph.outputs.append(output)
        return graph

    def made_at(self, index: int) -> str:
        """`, made at file:line` for result `index`, or nothing where that is not known."""
        op = self.values[index].op
        return f", made at {op.loc}" if op is not None and op.loc else ""


def trace_region(
    function: Callable[..., Any],
    specs: Sequence[Spec | Static],
    tree: pytree.TreeDef,
    what: str,
    *,
    conditional: bool = True,
    borrowed: BorrowedStates | None = None,
) -> TracedRegion:
    """Trace `function` as a region of the current trace. `what` names it in error messages.

    `conditional` says that it may run never or often; `borrowed`: see `trace_function`.
    """
    return TracedRegion(
        trace_function(function, specs, tree, what=what, conditional=conditional, borrowed=borrowed)
    )


def union(regions: Sequence[TracedRegion]) -> list[Value]:
    """What the regions close over, each value once."""
    return list(dict.fromkeys(v for region in regions for v in region.captured))


def have_effects(regions: Sequence[TracedRegion]) -> bool:
    """Whether one of the regions has effects in program order."""
    return any(region.token is not None for region in regions)
