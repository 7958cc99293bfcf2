"""What each op of a loop body becomes in scalar code: reductions, products, writes, checks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...ir.graph import Op, Value
from ...ir.integers.interval_rules import TRUE
from ...ir.opdef import OPS
from ..loop_ir.index import Data, Index
from ..loop_ir.scalar_code import Let, Require
from ..math import EXPANSIONS
from ..math.combiners import COMBINE, FOLDS, fold
from ..scalar import const, select
from . import elements
from .elements import RUNNING, Elements, along_last, at, reached
from .pointwise import IndexTuple, gathered, window_starts
from .scalar_arrays import (
    dot,
    fold_large,
    is_large,
    place_of_best,
    running,
    update_part,
    update_window,
)
from .scalar_builder import SMALL, ScalarBuilder, Stored, Unfit, rule


@rule("constant")
def _constant(c: ScalarBuilder, op: Op) -> None:
    value = op.attrs["value"]
    if value.size > SMALL:
        c.bind(op.result, Stored(c.low.context.constant(value)))
        return
    consts = np.empty(value.shape, object)
    for index in np.ndindex(*value.shape):
        consts[index] = const(value[index].item(), value.dtype)
    c.bind(op.result, consts)


@rule("materialize")
def _same(c: ScalarBuilder, op: Op) -> None:
    c.bind(op.result, c.get(op.operands[0]))


@rule("assert")
def _check(c: ScalarBuilder, op: Op) -> None:
    flag, *values, _ = op.operands
    if c.p.interval(flag) == TRUE:
        return
    site = c.low.context.assertion(op, values)
    scalars = [c.scalar(v) for v in values]
    require = Require(c.scalar(flag), site, scalars, c.taken)
    _ask_once(c, op, require)
    c.checks[op] = require
    c.block.statements.append(require)


def _ask_once(c: ScalarBuilder, op: Op, require: Require) -> None:
    """not (a and b), not a   ->   if a: not b, not a

    A check that can only fail where the next one does asks the same first.
    """
    last = op.operands[-1].op
    before = None if last is None else c.checks.get(last)
    if last is None or before is None:
        return
    both = _operands(last.operands[0], "invert", "bitwise_and")
    if len(both) == 2 and _operands(both[0], "invert") == (op.operands[0],):
        also = c.scalar(both[1])
        before.flag, before.taken = (
            require.flag,
            also if before.taken is None else before.taken & also,
        )


def _operands(value: Value, *names: str) -> Sequence[Value]:
    """The operands of the last of some ops of which the first one makes the value of the next one's."""
    operands: Sequence[Value] = (value,)
    for name in names:
        op = operands[0].op
        if len(operands) != 1 or op is None or op.name != name:
            return ()
        operands = op.operands
    return operands


@rule("create_token")
def _token(c: ScalarBuilder, op: Op) -> None:
    """Statements are in order."""


@rule(*FOLDS)
def _fold(c: ScalarBuilder, op: Op) -> None:
    if is_large(c, op.operands[0]):
        fold_large(c, op)
        return
    source, axes = c.elements(op.operands[0]), op.attrs["axes"]
    remaining = [d for d in range(source.ndim) if d not in axes]
    length = math.prod(source.shape[d] for d in axes)
    rows = source.transpose([*remaining, *axes]).reshape(
        *(source.shape[d] for d in remaining), length
    )
    c.result(op, along_last(lambda row: fold(op.name, row, op.result.dtype), rows))


@rule("argmax", "argmin")
def _place_of_best(c: ScalarBuilder, op: Op) -> None:
    if is_large(c, op.operands[0]):
        place_of_best(c, op)
        return
    rows = np.moveaxis(c.elements(op.operands[0]), op.attrs["axis"], -1)
    c.result(op, along_last(lambda row: elements.index_of_best(op.name, row), rows))


@rule(*RUNNING)
def _running(c: ScalarBuilder, op: Op) -> None:
    if is_large(c, op.operands[0]):
        running(c, op, RUNNING[op.name])
        return
    source = c.elements(op.operands[0])
    result = elements.running(op.name, source, op.attrs["axis"], op.attrs["reverse"])
    c.result(op, result)


@rule("dot")
def _dot(c: ScalarBuilder, op: Op) -> None:
    if any(is_large(c, v) for v in op.operands):
        dot(c, op)
        return
    a, b = (c.elements(v) for v in op.operands)
    result = elements.products(a, b, op.attrs["contract"], op.attrs["batch"], op.result.dtype)
    c.result(op, result)


@rule("concat")
def _concat(c: ScalarBuilder, op: Op) -> None:
    parts = [c.elements(v) for v in op.operands]
    c.result(op, np.concatenate(parts, axis=op.attrs["axis"]))


@rule("gather")
def _part(c: ScalarBuilder, op: Op) -> None:
    """A row of an array in memory stays there: it is the memory from a position on."""
    base, *where = op.operands
    if not c.in_memory(op.result) or not is_part(op):
        if not is_large(c, op.result) and op.result.tensor.size <= SMALL:
            c.elements(op.result)
        return
    held = c.p.views.get(base) if c.counted and base.op is not None else c.get(base)
    if not isinstance(held, Stored):
        return
    c.p.check(held)
    prefix = held.pinned(op.attrs["axes"], _first(c, op, base, where))
    version = c.versions.get(held.array, held.version)
    c.bind(op.result, Stored(held.array, prefix, held.owned, version, version))


def is_part(op: Op) -> bool:
    """Whether a gather reads, or a scatter writes, all that is at certain positions along its axes."""
    axes = op.attrs["axes"]
    where = op.operands[-len(axes) :] if axes else []
    return not any(v.shape for v in where)


def _first(c: ScalarBuilder, op: Op, base: Value, where: list[Value]) -> IndexTuple:
    """The positions of the part, computed now."""
    inside = (Index(),) * (len(base.shape) - len(where))
    positions = gathered(c.p, op, base, where, inside, None)
    positions = tuple(positions[axis] for axis in op.attrs["axes"])
    known = [atom.expr for index in positions for atom in index.terms if isinstance(atom, Data)]
    if known:
        c.block.statements.append(Let(known))
    return positions


def _put_back(c: ScalarBuilder, op: Op, base: Value, update: Value) -> bool:
    """A part that was overwritten where it is need not be written back."""
    if op.name != "scatter" or op.attrs.get("combine", "set") != "set" or not is_part(op):
        return False
    part, whole = c.p.views.get(update), c.p.views.get(base)
    if part is None or whole is None or not whole.owned or part.array is not whole.array:
        return False
    position = whole.pinned(op.attrs["axes"], _first(c, op, base, list(op.operands[2:])))
    if part.prefix != position or part.origin != whole.version:
        return False
    c.p.check(part)
    c.bind(op.result, c.newest(whole))
    return True


@rule("bounded_update_slice")
def _update_window(c: ScalarBuilder, op: Op) -> None:
    update_window(c, op)


@rule(*(name for name, definition in OPS.items() if definition.updates))
def _write(c: ScalarBuilder, op: Op) -> None:
    base, update = op.operands[:2]
    if _put_back(c, op, base, update):
        return
    if is_large(c, update):
        held = c.get(base)
        if not isinstance(held, Stored):
            raise Unfit
        update_part(c, op, held, lambda position: _target(c, op, position))
        return
    held, new = c.get(base), c.elements(update)
    if not isinstance(held, Stored):
        assert held is not None
        c.result(op, _replaced(c, op, held, new))
        return
    if not held.owned:
        raise Unfit
    combine = COMBINE.get(op.attrs.get("combine", "set"))
    for place in np.ndindex(*new.shape):
        index = held.at(_target(c, op, at(place)))
        value = new.item(place)
        if combine is not None:
            value = EXPANSIONS[combine](c.p.load(held.array, index, None), value)
        c.put(held.array, index, value)
        held = c.renew(held)
    c.bind(op.result, held)


def _target(c: ScalarBuilder, op: Op, index: IndexTuple) -> IndexTuple:
    """Where in the base an op writes the element `index` of its update."""
    base, update, *where = op.operands
    if op.name == "update_slice":
        start, step = op.attrs["start"], op.attrs["step"]
        return tuple(i * s + a for i, s, a in zip(index, step, start, strict=True))
    if op.name == "scatter":
        return gathered(c.p, op, base, where, index, None)
    corner = window_starts(c.p, tuple(where), base.shape, update.shape)
    return tuple(c + i for c, i in zip(corner, index, strict=True))


def _replaced(c: ScalarBuilder, op: Op, old: Elements, new: Elements) -> Elements:
    """The elements of a small array after an update of some."""
    if op.name != "update_slice" and old.size * new.size > 8 * SMALL:
        raise Unfit
    result = old.copy()
    combine = COMBINE.get(op.attrs.get("combine", "set"))
    for place in np.ndindex(*new.shape):
        index = _target(c, op, at(place))
        for spot, here in reached(index, result.shape):
            value = new.item(place)
            if combine is not None:
                value = EXPANSIONS[combine](result[spot], value)
            result[spot] = value if here is None else select(here, value, result[spot])
    return result
