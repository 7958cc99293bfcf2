"""What the backward part of a region needs of its forward part: saved, or computed again.

`vjp_graph` of a region is one graph, which takes the region's parameters and cotangents. `split`
cuts it in two, for regions whose backward part runs later:

    forward(params...)               ->  outputs..., saved...
    backward(free..., saved..., cts...)  ->  the gradients

*Free* parameters are there for the backward part at no cost: loop invariants, and the slices of
arrays that stay. What follows from loop invariants alone is computed again, and then moved out of
both loops (`passes.hoist`). What else the backward part reads of the forward part is computed again
from what is free or saved anyway where that is cheap (arithmetic, comparisons, movement), and saved
where it is not (contractions, reductions, transcendental functions, loops, whatever is taken from a
tape), or where its operands would weigh more than itself.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..cost import Cost
from ..graph import Graph, Op, Value
from ..record import record
from ..subgraphs import extract, reached, readers
from ..types import is_linear

_LIGHT = 1024  # elements up to which `is_heavy` does not count a transcendental function


def is_cheap(op: Op) -> bool:
    """Whether computing `op` again costs no more than memory for its result."""
    return op.definition.cost < Cost.FUNCTION and not _stays(op)


def can_hoist(op: Op) -> bool:
    """Whether `op` may run although the loop around it makes no iteration: it neither raises nor
    loops."""
    if op.regions or op.attrs.get("mode") == "check":
        return False
    return op.definition.total and not _stays(op)


def is_heavy(op: Op) -> bool:
    """Whether a branch with `op` is worth a tape, rather than being computed twice."""
    cost = op.definition.cost
    if cost is Cost.FUNCTION:
        return any(v.tensor.size > _LIGHT for v in op.results)
    if op.name == "cond":
        return any(is_heavy(inner) for region in op.regions for inner in region.ops)
    if op.definition.effect and len(op.results) == 1:
        return False  # an effect without a value
    return not is_cheap(op) and cost is not Cost.FOLD


def can_run_twice(op: Op) -> bool:
    """Whether the op may be computed again: no effect, no token or tape."""
    return not op.has_effect and not any(is_linear(v.type) for v in [*op.operands, *op.results])


def _stays(op: Op) -> bool:
    """Whether `op` is computed where it stands alone: a barrier, and what makes or takes a tape."""
    return op.name == "optimization_barrier" or any(is_linear(v.type) for v in op.results)


@record
class Split:
    """The two parts, and what goes from one to the other beside free parameters."""

    forward: Graph
    backward: Graph
    saved: list[Value]  # of the joint graph
    free: list[int]  # the free parameters that `backward` takes: those that it reads
    shares_tape: bool = False  # both take one tape, last, and give it (see `shared_tapes`)


def split(
    joint: Graph,
    params: int,
    outputs: int,
    free: Collection[int],
    invariant: Collection[int] = (),
    *,
    keep: bool = True,
) -> Split:
    """Cut `joint`: `params` and `outputs` of it are the region's own, the others are cotangents.

    `backward` takes the free parameters that it reads, in increasing order: what surrounds the region
    would have to keep the others for nothing. Those in `invariant` are the same for all iterations.
    Without `keep`, all is computed again that can be, dear or not.
    """
    own, gradients = joint.outputs[:outputs], joint.outputs[outputs:]
    unknown = _dependent(joint, joint.params[params:], own)
    live, _ = reached(joint.ops, joint.outputs, effects=True)
    late = [op for op in joint.ops if op in live and op in unknown]
    wanted = [v for op in late for v in op.operands] + list(gradients)
    early_values = set(joint.params[:params])
    early_values.update(v for op in joint.ops if op not in unknown for v in op.results)
    needed = list(dict.fromkeys(v for v in wanted if v in early_values))
    at_hand = {joint.params[i] for i in free}
    early = [op for op in joint.ops if op not in unknown]
    saved = _choose(early, needed, at_hand, {joint.params[i] for i in invariant}, keep)
    again, _ = reached(early, needed, stop={*saved, *at_hand})

    ends = [*own, *saved]
    effects, _ = reached(early, ends, effects=True)
    forward = extract(joint.name.removesuffix("_vjp"), joint.params[:params], early, effects, ends)
    behind = {*late, *again}
    read = {v for op in behind for v in op.operands}.union(gradients)
    taken = [i for i in sorted(free) if joint.params[i] in read]
    sources = [*(joint.params[i] for i in taken), *saved, *joint.params[params:]]
    backward = extract(joint.name, sources, joint.ops, behind, gradients)
    return Split(forward, backward, saved, taken)


def _dependent(graph: Graph, sources: Sequence[Value], own: Sequence[Value]) -> set[Op]:
    """The ops that read `sources`, directly or not; and new tapes, and threads of effects, that the
    forward part never sees."""
    dependent = readers(graph.ops, sources)
    users = graph.users()
    for op in graph.ops:
        if (
            op.name in ("tape_new", "create_token")
            and dependent.issuperset(users[op.result])
            and op.result not in own
        ):
            dependent.add(op)
    return dependent


def _choose(
    ops: Sequence[Op], needed: Sequence[Value], free: set[Value], still: set[Value], keep: bool
) -> list[Value]:
    """The values to save, so that `needed` follow from them and `free` by cheap ops."""
    still = set(still)
    for op in ops:
        if can_hoist(op) and still.issuperset(op.operands):
            still.update(op.results)

    def again(op: Op) -> bool:
        if keep and not still.issuperset(op.results):
            return is_cheap(op)
        return can_run_twice(op)

    demanded = set(needed)
    # Whatever is needed and dear is saved, so it weighs nothing in other choices.
    certain = {v for v in needed if v not in free and (v.op is None or not again(v.op))}
    sources: dict[Value, frozenset[Value]] = {v: frozenset() for v in free}
    order: dict[Value, int] = {}
    for op in ops:
        cheap = again(op)
        for v in op.results:
            order[v] = len(order) + 1
            if not cheap:
                sources[v] = frozenset((v,))
                continue
            union = frozenset(s for x in op.operands for s in _sources(x, sources))
            weight = sum(s.nbytes for s in union if s not in certain)
            heavier = weight > (1 if v in demanded else 2) * v.nbytes
            sources[v] = frozenset((v,)) if heavier and keep else union
    chosen = {s for v in needed for s in _sources(v, sources)}
    return sorted(chosen, key=lambda v: (order.get(v, 0), v.index))


def _sources(v: Value, sources: dict[Value, frozenset[Value]]) -> frozenset[Value]:
    return sources.get(v) or (frozenset() if v in sources else frozenset((v,)))
