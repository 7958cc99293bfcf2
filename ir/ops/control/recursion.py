"""`recursion`: a function that calls itself, by `recurse` ops in its region.

    recursion(*operands; consts, label, depth, states; regions = (body,))
        the first `consts` operands are the same in all calls, the rest are the arguments of the first:
        body(consts..., arguments..., states...) gives (results..., states...).
    recurse(*operands; label, dtypes, shapes, states)
        what the body gives for other arguments, in the innermost `recursion` of that label; its results
        before the states have these dtypes and shapes

The last `states` arguments are what the calls change: each gives them back as it leaves them, of the
same types. Native code takes numbers, and arrays only among the states: these have one memory. A token
comes after all others. Calls that are more than `depth` deep raise RecursionError, as Python's do.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from ...batching.transform import BatchBuilder, Batched, Marks, batching_error
from ...build import Builder
from ...graph import Graph, Op, Value
from ...interpreter import evaluate
from ...opdef import OPS, GraphError, OpDef, register
from ...types import BOOL, DTYPE_NAMES, I32, TOKEN, TensorType, Type
from .structured import check_params, listed

TOO_DEEP = "maximum recursion depth exceeded: more than {} calls inside of each other"

_running = threading.local()


def _check_states(types: Sequence[Type], out: Sequence[Type], states: int) -> None:
    """Unless the last of the arguments and of the results, before a token, are the same states."""
    taken, given = ([t for t in some if t != TOKEN] for some in (types, out))
    if not 0 <= states <= min(len(taken), len(given)):
        raise GraphError(f"states={states} of {listed(taken)}, which gives {listed(given)}")
    if states and taken[-states:] != given[-states:]:
        raise GraphError(
            f"the states are {listed(taken[-states:])} before, and {listed(given[-states:])} after"
        )


def _infer_recursion(
    *types: Type, consts: int, label: str, depth: int, states: int, regions: tuple[Graph, ...]
) -> tuple[Type, ...]:
    if len(regions) != 1:
        raise GraphError(f"needs one region, the body, got {len(regions)}")
    if not 0 <= consts <= len(types):
        raise GraphError(f"consts={consts} with {len(types)} operands")
    if depth < 1:
        raise GraphError(f"depth={depth} allows no call")
    (body,) = regions
    check_params(body, types, "body")
    out = tuple(body.output_types)
    _check_states(types[consts:], out, states)
    own = (label, tuple(types[consts:]), out)
    for op in body.walk():
        if op.name == "recurse" and op.attrs["label"] == label:
            inner = (label, tuple(v.type for v in op.operands), tuple(v.type for v in op.results))
            if inner != own:
                raise GraphError(
                    f"{label} takes {listed(own[1])} and gives {listed(out)}, and calls itself as "
                    f"one that takes {listed(inner[1])} and gives {listed(inner[2])}"
                )
    return out


def _recursion(
    *arrays: Any, consts: int, label: str, depth: int, states: int, regions: tuple[Graph, ...]
) -> tuple[Any, ...]:
    calls: list[Any] = _running.__dict__.setdefault("calls", [])
    calls.append((label, regions[0], arrays[:consts], depth))
    before, _running.depth = getattr(_running, "depth", 0), 0
    try:
        return tuple(evaluate(regions[0], arrays))
    finally:
        _running.depth = before
        calls.pop()


def _infer_recurse(
    *types: Type,
    label: str,
    dtypes: tuple[str, ...],
    shapes: tuple[tuple[int, ...], ...],
    states: int,
) -> tuple[Type, ...]:
    pairs = zip(shapes, dtypes, strict=True)
    results: list[Type] = [TensorType(shape, DTYPE_NAMES[name]) for shape, name in pairs]
    taken = [t for t in types if t != TOKEN]
    if not 0 <= states <= len(taken):
        raise GraphError(f"states={states} with {len(taken)} arguments")
    kept = taken[len(taken) - states :]
    return (*results, *kept, *(TOKEN for t in types if t == TOKEN))


def _recurse(*arrays: Any, label: str, **_: Any) -> tuple[Any, ...]:
    calls = getattr(_running, "calls", [])
    call = next((c for c in reversed(calls) if c[0] == label), None)
    if call is None:
        raise GraphError(f"recurse outside of the recursion {label!r}")
    _, body, fixed, depth = call
    if _running.depth >= depth:
        raise RecursionError(TOO_DEEP.format(depth))
    _running.depth += 1
    try:
        return tuple(evaluate(body, [*fixed, *arrays]))
    finally:
        _running.depth -= 1


def _batch_recursion(b: BatchBuilder, op: Op, operands: Sequence[Value], batched: Marks) -> Batched:
    """A loop over the examples, each of which has calls of its own."""
    if any(v.type == TOKEN for v in op.operands):
        raise batching_error(
            op, "what it checks, it checks in program order, example after example"
        )
    fixed = [i for i, flag in enumerate(batched) if not flag]
    moving = [i for i, flag in enumerate(batched) if flag]
    active = [] if b.active is None else [b.active]
    body = Graph(op.attrs["label"])
    inner = Builder(body, op.loc)
    env = {i: body.add_param(op.operands[i].type) for i in fixed}
    env |= {i: body.add_param(op.operands[i].type) for i in moving}
    own = [env[i] for i in range(len(operands))]
    if active:
        runs = body.add_param(TensorType((), BOOL))
        body.outputs = _if_active(inner, op, runs, own)
    else:
        body.outputs = list(inner.append(op.definition, own, op.attrs, op.regions).results)
    attrs = {"consts": len(fixed), "carries": 0, "length": b.size, "reverse": False}
    slices = [*(operands[i] for i in moving), *active]
    loop = b.append(OPS["scan"], [*(operands[i] for i in fixed), *slices], attrs, [body])
    return loop.results, [True] * len(op.results)


def _if_active(b: Builder, op: Op, runs: Value, operands: Sequence[Value]) -> list[Value]:
    """The op's results, or zeros for an example that does not count."""
    off, on = Graph("off"), Graph("on")
    own = {region: [region.add_param(v.type) for v in operands] for region in (off, on)}
    off.outputs = [Builder(off, op.loc).zeros(v.type) for v in op.results]
    inner = Builder(on, op.loc)
    on.outputs = list(inner.append(op.definition, own[on], op.attrs, op.regions).results)
    index = b.convert(runs, dtype=I32)
    return list(b.append(OPS["cond"], [index, *operands], {}, [off, on]).results)


register(
    OpDef(
        "recursion",
        "structured",
        _infer_recursion,
        _recursion,
        total=False,
        batch=_batch_recursion,
        attrs=("consts", "label", "depth", "states"),
        regions=1,
        doc="a function that calls itself",
    )
)
register(
    OpDef(
        "recurse",
        "structured",
        _infer_recurse,
        _recurse,
        total=False,
        attrs=("label", "dtypes", "shapes", "states"),
        doc="the call of a function by itself",
    )
)
