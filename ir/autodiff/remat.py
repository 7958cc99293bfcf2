"""What is kept for the backward pass, and what is computed again: by a policy, or by a minimum cut.

`recompute` cuts the derivative of a region in two by a policy of `jt.checkpoint`:

    forward(params...)                    ->  outputs..., saved...
    backward(params[i]..., saved..., cts...)  ->  the gradients

The backward part computes again whatever it needs of the forward part and is not saved.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..graph import Graph, Op, Value
from ..record import record
from ..subgraphs import extract, reached, readers
from ..types import TOKEN
from .transform import vjp_graph

Policy = str | tuple[str, ...]  # "nothing", "dots", "everything", or names given by checkpoint_name


@record
class Recomputed:
    """The two parts. `params` are the parameters of the region that the backward part reads."""

    forward: Graph
    backward: Graph
    params: list[int]


def recompute(
    region: Graph, wrt: Sequence[int], outputs: Sequence[int], policy: Policy
) -> Recomputed:
    """The derivative of `region` with respect to the parameters `wrt`, for cotangents of `outputs`.

    Results of ops with effects are saved whatever the policy: they happen once.
    """
    joint = vjp_graph(region, wrt, outputs)
    count, results = len(region.params), len(region.outputs)
    gradients, seeds = joint.outputs[results:], joint.params[count:]
    late = readers(joint.ops, seeds)
    needed = [v for op in joint.ops if op in late for v in op.operands] + gradients
    early = [op for op in joint.ops if op not in late]
    stored = {v for op in early for v in _stored(op, policy) if v.type is not TOKEN}
    again, sources = reached(early, needed, stop={*stored, *joint.params})
    saved = [v for op in early for v in op.results if v in stored and v in sources]
    params = [i for i, v in enumerate(joint.params[:count]) if v in sources]

    forward = region
    if saved:
        ends = [*joint.outputs[:results], *saved]
        runs, _ = reached(early, ends, stop=joint.params, effects=True)
        forward = extract(region.name, joint.params[:count], early, runs, ends)
    inputs = [*(joint.params[i] for i in params), *saved, *seeds]
    backward = extract(joint.name, inputs, joint.ops, {*late, *again}, gradients)
    return Recomputed(forward, backward, params)


def _stored(op: Op, policy: Policy) -> Sequence[Value]:
    """What is kept because of `op`. Of a name it is what was named, which derivatives read, too."""
    if op.has_effect or policy == "everything" or (policy == "dots" and op.name == "dot"):
        return op.results
    if op.name == "checkpoint_name" and isinstance(policy, tuple) and op.attrs["label"] in policy:
        return [v for v in op.operands if v.op is not None]
    return ()
