"""Results that may stay in the memory of an operand: updates, and loops and branches around them.

What a program overwrites is an array that nothing can read any more; otherwise it is copied first, and
the copy is reported with its reason. Which of the two is decided here, once, from the uses of the old
value: for an update, for what a loop carries, and for what a branch gives back.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ...ir.graph import Graph, Op, Value
from ...ir.types import TensorType
from ..loop_ir.kernel import Array
from ..module import CopySite

if TYPE_CHECKING:
    from ..lowering.lower import Lowering

NEARBY = 32  # ops that are moved for the sake of one


def keeps_memory(value: Value, param: Value) -> bool:
    """Whether `value` is `param` with updates."""
    while value is not param:
        before = updated(value)
        if before is None:
            return False
        value = before
    return True


def updated(value: Value) -> Value | None:
    """The value that this one is after one update, loop or branch that changes it in place."""
    op = value.op
    if op is None:
        return None
    if op.definition.updates or (op.name in ("tape_push", "tape_pop") and value.index == 0):
        return op.operands[0]
    if op.name in ("while", "scan"):
        first = op.attrs["consts"]
        if value.index >= op.attrs.get("carries", len(op.results)):
            return None
        body, param = op.regions[-1], first + value.index
        stays = keeps_memory(body.outputs[value.index], body.params[param])
        return op.operands[param] if stays else None
    if op.name in ("recursion", "recurse"):
        shift = len(op.operands) - len(op.results)  # what calls change comes last, and a token
        last = len(op.results) - (not isinstance(op.results[-1].type, TensorType))
        is_state = last - op.attrs["states"] <= value.index < last
        return op.operands[shift + value.index] if is_state else None
    if op.name == "cond":
        roots = {_root(region.outputs[value.index]) for region in op.regions}
        params = {root.index if root.op is None else -1 for root in roots}
        return op.operands[1 + params.pop()] if len(params) == 1 and -1 not in params else None
    return None


def _root(value: Value) -> Value:
    while (before := updated(value)) is not None:
        value = before
    return value


def reads_first(graph: Graph, users: Mapping[Value, Sequence[Op]]) -> Sequence[Op]:
    """The ops of a graph in an order in which what reads a value comes before what overwrites it.

        before: y = scatter x ...; r = gather x ...      after: r = gather x ...; y = scatter x ...

    Only what does not depend on the new value can come first, of course, and neither does what
    overwrites something itself. What can be moved is sought nearby.
    """
    late = {op: readers for op in graph.ops if (readers := _late_readers(op, users))}
    if not late:
        return graph.ops
    order_of = {op: k for k, op in enumerate(graph.ops)}
    order: dict[Op, None] = {}
    for op in graph.ops:
        for reader in late.get(op, ()):
            if order_of[op] < order_of[reader]:
                order.update(dict.fromkeys(_needed(reader, op, order_of)))
        order[op] = None
    return list(order)


def _late_readers(op: Op, users: Mapping[Value, Sequence[Op]]) -> list[Op]:
    """What reads a value beside this op, which overwrites it."""
    readers: list[Op] = []
    for result in op.results:
        base = updated(result)
        if base is not None and len(users[base]) > 1:
            readers += [user for user in users[base] if user is not op]
    return readers


def _needed(reader: Op, writer: Op, number: Mapping[Op, int]) -> list[Op]:
    """What has to be done between `writer` and `reader` for `reader` to be done, that last: nothing if
    it cannot come before `writer`."""
    start, needed, pending = number[writer], {reader}, [reader]
    while pending:
        op = pending.pop()
        if op.has_effect or any(updated(result) is not None for result in op.results):
            return []
        for value in op.operands:
            made = value.op
            if made is None or number[made] < start or made in needed:
                continue
            if made is writer or len(needed) == NEARBY:
                return []
            needed.add(made)
            pending.append(made)
    return sorted(needed, key=number.__getitem__)


def report_copy(low: Lowering, op: Op, base: Value, overwritten: int = 0) -> None:
    """Note that an update copies what it does not overwrite, and why. What was never in memory is
    computed where it is wanted: that is no copy."""
    here = low.arrays.get(base)
    if here is None:
        return
    if here.kind == "const":
        why = "it is a constant"
    elif here in low.borrowed and here in low.stay:
        why = "the next iteration of the loop needs it too"
    elif here in low.borrowed:
        name = f"`{base.name}`" if base.name else "it"
        why = f"{name} belongs to somebody else, who may read it later (an argument can be donated)"
    elif base in low.outputs:
        why = "its value before the update is a result too"
    else:
        lines = {user.loc.line for user in low.users[base] if user is not op and user.loc}
        where = f", at line {max(lines)}" if lines else ""
        why = f"its value before the update is needed afterwards{where}"
    low.copies.append(CopySite(base.tensor.nbytes - overwritten, why, op.loc))


def updatable(low: Lowering, op: Op) -> Array:
    """The array that an update writes, of its first operand or a new one."""
    base, *others = op.operands
    here = low.arrays.get(base)
    if here is not None and _is_free(low, op, base, op.result, others):
        return here
    return _new_array(low, op.result)


def _is_free(
    low: Lowering, op: Op, base: Value, result: Value, others: Sequence[Value] = ()
) -> bool:
    """Whether `op` may overwrite the memory of `base`, since nothing reads it any more. (Who writes
    there says so: `Lowering.overwrite`.)

    `others` are operands that are computed while base is overwritten, if they have no memory.
    """
    here = low.arrays[base]
    if here in low.borrowed or here.kind == "const" or result in low.target_of:
        return False
    _read_parts(low, base, op)
    once = op.operands.count(base) == 1
    return once and dead_after(low, base, op) and _detached(low, base, others)


def dead_after(low: Lowering, base: Value, op: Op) -> bool:
    """Whether no stage after `op` can read base's memory; op's own operands are another matter.

    A user that was inlined reads the memory when its consumers run. So every other user must have
    memory of its own by now, or have only users for which the same holds. (Two values share
    memory only if they are parameters, and those are not overwritten.)
    """
    if base in low.outputs:
        return False
    pending = [user for user in low.users[base] if user is not op]
    seen: set[Op] = {op}
    while pending:
        user = pending.pop()
        if user in seen:
            continue
        seen.add(user)
        read = [v for v in user.results if v in low.outputs or low.users[v]]
        for result in read or user.results:
            if result in low.arrays or result in low.overwritten:
                continue
            if result in low.outputs or result not in low.inlined:
                return False
            pending += low.users[result]
    return True


def read_now(low: Lowering, base: Value, op: Op) -> bool:
    """Whether no stage after `op` can read base's memory, now that what was computed of it, for
    users that come later, has memory of its own. That costs no more than a copy of base would."""
    pending = [user for user in low.users[base] if user is not op]
    kept: list[Value] = []
    seen: set[Op] = {op}
    while pending:
        user = pending.pop()
        if user in seen:
            continue
        seen.add(user)
        for result in user.results:
            if result in low.arrays or result in low.overwritten or result not in low.inlined:
                continue
            waits = any(u is not op and not _is_lowered(low, u) for u in low.users[result])
            if waits and result.tensor.nbytes <= base.tensor.nbytes:
                kept.append(result)
            else:
                pending += low.users[result]
    for value in kept:
        low.materialise(value)
    return bool(kept) and dead_after(low, base, op)


def _is_lowered(low: Lowering, op: Op) -> bool:
    known = (low.arrays, low.inlined, low.overwritten)
    return all(any(result in table for table in known) for result in op.results)


def _new_array(low: Lowering, result: Value, strided: bool = True) -> Array:
    """Memory for a result: the graph output's where it begins a chain of updates that ends there.

    An output that is not contiguous, such as a part of a complex one, only serves who takes `strided`
    memory.
    """
    last: Value | None = result
    while last is not None:
        for targets in (low.target_of, low.other_target_of):
            if last in targets and (strided or targets[last].contiguous):
                return targets.pop(last)
        last = _next(low, last)
    return low.array_for(result)


def _next(low: Lowering, value: Value) -> Value | None:
    """What becomes of a value in its memory, if that is all that becomes of it."""
    if value in low.outputs or len(low.users[value]) != 1:
        return None
    return next((v for v in low.users[value][0].results if updated(v) is value), None)


def _read_parts(low: Lowering, base: Value, op: Op) -> None:
    """Give values that are small parts of `base`, inlined so far, memory of their own.

    That costs less than the copy of base that would keep them readable after the update: as in
    `u = x[i]; x[i] = 0`, of which reverse mode is full.
    """
    pending = [user for user in low.users[base] if user is not op]
    while pending:
        for result in pending.pop().results:
            if result not in low.inlined or result in low.arrays:
                continue
            if 2 * result.tensor.size <= base.tensor.size:
                low.materialise(result)
            else:
                pending += [user for user in low.users[result] if user is not op]


def _detached(low: Lowering, base: Value, others: Sequence[Value]) -> bool:
    """Make the other operands independent of base's memory, if that costs less than copying base.

    `x[i] = x[i - 1] + x[i - 2]` computes the new element first, then writes it.
    """
    attached = [v for v in others if depends(v, base, low.arrays)]
    if any(2 * v.tensor.size > base.tensor.size for v in attached):
        return False
    for v in attached:
        low.materialise(v)
    return True


def depends(value: Value, base: Value, made: Container[Value] = ()) -> bool:
    """Whether computing `value` reads `base`; values in `made` need not be computed."""
    pending, seen = [value], {value}
    while pending:
        v = pending.pop()
        if v is base:
            return True
        if v.op is not None and v not in made:
            pending += [w for w in v.op.operands if w not in seen]
            seen.update(v.op.operands)
    return False


class Carried(NamedTuple):
    """Where a loop keeps a carry, and where its first value is by now: there, or in an array that is
    to be copied there."""

    array: Array
    source: Array


def carried(
    low: Lowering,
    op: Op,
    base: Value,
    result: Value,
    others: Sequence[Value] = (),
    strided: bool = False,
) -> Carried:
    """The array in which a loop keeps a carry, from its first value `base` to its last, `result`: one
    without gaps but for who takes `strided` memory."""
    here = low.arrays.get(base)
    if here is None:
        array = _new_array(low, result, strided=False)
        low.store(base, array)
        return Carried(array, array)
    if (strided or here.contiguous) and _is_free(low, op, base, result, others):
        return Carried(here, here)
    if updated(result) is base:
        report_copy(low, op, base)
    return Carried(_new_array(low, result, strided=False), here)


def joined(low: Lowering, op: Op) -> list[Array | None]:
    """For each result of a branch the operand's memory that it may stay in, whichever way is taken."""
    homes: list[Array | None] = []
    for result in op.results:
        base = updated(result)
        if base is None or base not in low.arrays or not _is_free(low, op, base, result):
            homes.append(None)
        else:
            here = low.arrays[base]
            homes.append(None if here in homes else here)
    return homes
