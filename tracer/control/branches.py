"""The branches of `cond` and `switch` as regions of one op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ...ir.graph import Value
from ...ir.opdef import OPS
from ...ir.types import TensorType
from ..core import threaded_state
from ..core.effects import advance, order_token
from ..core.specs import Static, is_array, spec_of
from ..core.trace import require_trace
from ..core.tracers import Storage, Tracer, as_value
from ..data import pytree
from ..messages import errors
from ..messages.errors import complain
from ..messages.source import user_line
from .regions import Out, TracedRegion, common_type, have_effects, show_tree, trace_region, union


def branch_region(
    what: str,
    index: Value,
    branches: Sequence[Callable[..., Any]],
    names: Sequence[str],
    operands: tuple[Any, ...],
) -> Any:
    """Append a `cond` op that runs branch number `index`, an i32 value, on the operands.

    States that branches advance (`streams`) are operands and results of it, too.
    """

    def build(storages: list[Storage]) -> Any:
        if not storages:
            return _branch_region(what, index, branches, names, operands)
        within = [partial(_advancing, storages, branch) for branch in branches]
        arguments = (threaded_state.states(storages), *operands)
        result, after = _branch_region(what, index, within, names, arguments)
        threaded_state.settle(storages, after)
        return result

    return threaded_state.threaded(build)


def _advancing(
    storages: list[Storage], branch: Callable[..., Any], states: Any, *operands: Any
) -> Any:
    return threaded_state.inside(storages, states, branch, *operands)


def _branch_region(
    what: str,
    index: Value,
    branches: Sequence[Callable[..., Any]],
    names: Sequence[str],
    operands: tuple[Any, ...],
) -> Any:
    leaves, tree = pytree.flatten((operands, {}))
    arrays = [leaf for leaf in leaves if is_array(leaf)]
    specs = [spec_of(leaf) if is_array(leaf) else Static(leaf) for leaf in leaves]
    inputs = [as_value(leaf) for leaf in arrays]
    regions = [
        trace_region(branch, specs, tree, f"{name} of {what}")
        for branch, name in zip(branches, names, strict=True)
    ]
    out_tree = _common_tree(what, regions, names)
    outs = _common_types(what, regions, names)
    mutated = sorted({p for region in regions for p in region.mutated})
    targets = [_assignable(arrays[p], arrays, what) for p in mutated]

    captured = union(regions)
    types: list[TensorType | None] = [out.type for out in outs]
    types += [inputs[p].tensor for p in mutated]
    token = [order_token()] if have_effects(regions) else []
    graphs = []
    for region in regions:
        params = region.traced.graph.params
        final = [region.mutated.get(p, params[p]) for p in mutated]
        results = [*region.values, *final, *(None for _ in token)]
        graphs.append(
            region.close(
                captured,
                results,
                [*types, *(None for _ in token)],
                token_at=len(inputs) if token else None,
            )
        )
    builder = require_trace().builder
    with builder.at(user_line()):
        op = builder.append(OPS["cond"], [index, *inputs, *token, *captured], {}, graphs)
    advance(op.results)
    for target, value in zip(targets, op.results[len(outs) :], strict=False):
        target.assign(value)
    wrapped = [o.wrap(v) for v, o in zip(op.results, outs, strict=False)]
    return pytree.unflatten(out_tree, wrapped)


def _common_tree(
    what: str, regions: Sequence[TracedRegion], names: Sequence[str]
) -> pytree.TreeDef:
    for region, name in zip(regions, names, strict=True):
        if not pytree.same_as_written(region.tree, regions[0].tree):
            complain(
                errors.CarryError,
                f"the branches of {what} return different structures:\n"
                f"  {name}: {show_tree(region.tree)}\n  {names[0]}: {show_tree(regions[0].tree)}",
                "give the TensorArray its element_shape: only one branch writes to it."
                if "TensorArray" in f"{show_tree(region.tree)}"
                else "return the same containers with the same keys, in one order, from every branch.",
            )
    return regions[0].tree


def _common_types(what: str, regions: Sequence[TracedRegion], names: Sequence[str]) -> list[Out]:
    tree = regions[0].tree
    common_types = []
    for i, outs in enumerate(zip(*(region.outs for region in regions), strict=True)):
        common = common_type(outs)
        if common is None:
            leaf = pytree.leaf_names(pytree.unflatten(tree, range(tree.num_leaves)), "result")[i]
            lines = [
                f"  {name}: {out}{region.made_at(i)}"
                for name, out, region in zip(names, outs, regions, strict=True)
            ]
            shown = "\n".join(reversed(lines) if what == "cond" else lines)  # true_fn first
            complain(
                errors.CarryError,
                f"the branches of {what} return different types for {leaf}:\n{shown}",
                "make shapes and dtypes equal in every branch, with np.broadcast_to, reshape or "
                ".astype.",
            )
        common_types.append(common)
    return common_types


def _assignable(operand: Any, operands: Sequence[Any], what: str) -> Tracer:
    """The operand, into which a branch assigns, if that assignment can reach the caller's array."""
    if not isinstance(operand, Tracer):
        complain(
            errors.OuterMutationError,
            f"a branch of {what} assigns to an operand that is a NumPy array; NumPy cannot hold "
            "the traced result",
            "make the array with jt.zeros or jt.asarray, or assign to a copy in the branch.",
            operands={"operand": operand},
        )
    shared = [x for x in operands if isinstance(x, Tracer) and x._storage is operand._storage]
    if len(shared) > 1:
        complain(
            errors.OuterMutationError,
            f"a branch of {what} assigns to an operand that shares memory with another operand",
            "pass the array once and take its views inside of the branch, or pass copies.",
            operands={"operand": operand},
        )
    return operand
