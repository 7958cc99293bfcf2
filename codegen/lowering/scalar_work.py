"""How much work the body of a loop is as scalar code, about, and whether it should be that."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...ir.graph import Op, Value
from ..limits import limits
from . import scalar_rules
from .extents import cuts, has_counts
from .lower import HOMES, memory_type, rule_of
from .scalar_builder import RULES, SMALL, Unfit

MOST_WORK = 4096  # scalar operations in a body
MOST_PRODUCT = 1 << 16  # multiply-adds of a product that is no kernel
KERNEL = 60  # what one kernel call costs beside its work, in scalar operations
LANES = 8  # elements that a kernel does for the cost of one
FEW = 16  # trips of a loop that nobody can count
SCALAR_NS = 0.05  # of one scalar operation, about: most loops become vectors


def work_of(op: Op) -> int:
    """Scalar operations in one trip; Unfit if it has ops that need kernels or that kernels do better."""
    if has_counts(op):
        return _counted_work(op)
    scalar, kernels = _costs(op)
    if scalar > MOST_WORK or scalar > kernels:
        raise Unfit
    return scalar


def _counted_work(op: Op) -> int:
    """The same of a loop over windows whose length is a value: kernels would run over whole axes. Unfit
    if it has products that kernels do much better."""
    work = 0
    for region in op.regions:
        for inner in region.ops:
            if not inner.definition.pointwise and not has_rule(inner.name):
                raise Unfit
            if inner.regions and inner.name != "lanes_while":
                work += _counted_work(inner)
                continue
            sizes = _sizes(inner.results)
            work += min(max(sizes, default=0), SMALL)
            if inner.name == "dot":
                (over, _), _ = inner.attrs["contract"], inner.attrs["batch"]
                left = inner.operands[0]
                terms = math.prod(left.shape[d] for d in over)
                if inner.result.tensor.size * terms > MOST_PRODUCT and not any(
                    cuts(v, d, 0) for v in inner.operands for d in range(len(v.shape))
                ):
                    raise Unfit
    return work


def has_rule(name: str) -> bool:
    """Whether an op that is not pointwise can be scalar code; a kernel family may say how to."""
    if name not in RULES and name in HOMES:
        rule_of(name)
    return name in RULES


def _costs(op: Op) -> tuple[int, int]:
    """What one trip of a loop costs as scalar code, and what it costs as kernels."""
    scalar, kernels = 0, KERNEL
    for region in op.regions:
        for inner in region.ops:
            if not inner.definition.pointwise and not has_rule(inner.name):
                raise Unfit
            if inner.regions and inner.name != "lanes_while":
                if is_shared(inner) and not op.attrs.get("independent", False):
                    raise Unfit
                s, k = _costs(inner)
                trips = min(inner.attrs.get("length", 8), 1024)
                scalar, kernels = scalar + s, kernels + k * trips
                if s * trips > k * trips:
                    raise Unfit
                continue
            sizes = _sizes(inner.results)
            if inner.definition.updates:
                sizes = [inner.operands[1].tensor.size]
            elif not inner.definition.pointwise:
                sizes += _sizes(inner.operands)
                kernels += KERNEL
            size = max(sizes, default=0)
            if size > SMALL and inner.name in ("gather", "scatter") and scalar_rules.is_part(inner):
                size = 1  # it stays where it is
            if inner.name == "dot":
                (over, _), _ = inner.attrs["contract"], inner.attrs["batch"]
                left = inner.operands[0].shape
                size = inner.result.tensor.size * math.prod(left[d] for d in over)
            cost = inner.definition.cost.work if inner.definition.pointwise else 1
            scalar += cost * size
            kernels += cost * -(-size // LANES)
    return scalar, kernels


def _sizes(values: Sequence[Value]) -> list[int]:
    """How many elements values have, those that have memory."""
    return [type.size for v in values if (type := memory_type(v)) is not None]


def is_shared(op: Op) -> bool:
    """Whether threads should share the iterations of a loop, which the user says are independent. Then
    it is a step of its own, also in the body of another loop."""
    if op.name != "scan" or not op.attrs.get("independent", False):
        return False
    rule_of(op.name)  # from here on there are rules of scalar code
    try:
        _costs(op)
    except Unfit:
        return False
    return _operations(op) * SCALAR_NS > limits().parallel_ns


def _operations(op: Op) -> int:
    """Scalar operations of a loop, about, those of loops in it included."""
    once = 0
    for region in op.regions:
        for inner in region.ops:
            known = inner.definition.pointwise and not inner.regions
            once += inner.definition.cost.work if known else 1
            once += _operations(inner) if inner.regions else 0
    trips: int = op.attrs.get("length", FEW) if op.name in ("scan", "while") else 1
    return once * trips
